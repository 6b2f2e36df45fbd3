#include "plugin_host/runtime/metric_sink.h"

#include <gtest/gtest.h>

#include <map>

#include "plugin_host/runtime/host.h"
#include "plugin_host/runtime/profile.h"
#include "plugin_host/sdk/plugin_registry.h"

namespace outboard::runtime {
namespace {

// Keeps the last value of each child, by `name/label/label`.
class FakeSink : public MetricSink {
 public:
  struct Child : sdk::Counter, sdk::Gauge, sdk::Histogram {
    explicit Child(double* value) : value(value) {}
    void Add(double amount) override { *value += amount; }
    void Set(double to) override { *value = to; }
    void Observe(double observed) override { *value = observed; }
    double* value;
  };
  std::shared_ptr<sdk::Counter> NewCounter(const sdk::MetricSpec& spec,
                                           const std::vector<std::string>& labels) override {
    return Make(spec, labels);
  }
  std::shared_ptr<sdk::Gauge> NewGauge(const sdk::MetricSpec& spec,
                                       const std::vector<std::string>& labels) override {
    return Make(spec, labels);
  }
  std::shared_ptr<sdk::Histogram> NewHistogram(const sdk::MetricSpec& spec,
                                               const std::vector<std::string>& labels) override {
    return Make(spec, labels);
  }
  std::map<std::string, double> values;

 private:
  std::shared_ptr<Child> Make(const sdk::MetricSpec& spec, const std::vector<std::string>& labels) {
    std::string key = spec.name;
    for (const std::string& label : labels) key += "/" + label;
    return std::make_shared<Child>(&values[key]);
  }
};

const std::vector<sdk::MetricSpec>& Specs() {
  static const auto& specs = *new std::vector<sdk::MetricSpec>{
      {"seen_total", sdk::MetricType::kCounter, {"profile", "kind"}, "Seen."},
      {"depth", sdk::MetricType::kGauge, {}, "Depth."},
      {"wait_seconds", sdk::MetricType::kHistogram, {}, "Wait.", {1, 2}}};
  return specs;
}

TEST(PluginMetricsTest, PassesOnWhatTheDescriptorDeclares) {
  FakeSink sink;
  PluginMetrics metrics("P", &Specs(), &sink);
  EXPECT_TRUE(metrics.enabled());
  metrics.NewCounter("seen_total", {"p", "k"})->Add(2);
  metrics.NewGauge("depth", {})->Set(3);
  metrics.NewHistogram("wait_seconds", {})->Observe(4);
  EXPECT_EQ(sink.values, (std::map<std::string, double>{
                             {"seen_total/p/k", 2}, {"depth", 3}, {"wait_seconds", 4}}));
}

TEST(PluginMetricsTest, WhatIsNotDeclaredDoesNothing) {
  FakeSink sink;
  PluginMetrics metrics("P", &Specs(), &sink);
  metrics.NewCounter("unseen_total", {})->Add();
  metrics.NewCounter("seen_total", {"one label too few"})->Add();
  metrics.NewGauge("seen_total", {"another", "type"})->Set(1);
  metrics.NewHistogram("depth", {})->Observe(1);
  EXPECT_TRUE(sink.values.empty());
}

TEST(PluginMetricsTest, WithoutASinkNoMetricIsComputed) {
  PluginMetrics metrics("P", &Specs(), nullptr);
  EXPECT_FALSE(metrics.enabled());
  metrics.NewCounter("seen_total", {"p", "k"})->Add();
  metrics.NewGauge("depth", {})->Set(1);
  metrics.NewHistogram("wait_seconds", {})->Observe(1);
}

class Counting : public sdk::Plugin, public sdk::ClusterObserver {
 public:
  explicit Counting(std::shared_ptr<sdk::Counter> ticks) : ticks_(std::move(ticks)) {}
  void OnTick(absl::Time) override { ticks_->Add(); }

 private:
  const std::shared_ptr<sdk::Counter> ticks_;
};

// From the host's constructor to a plugin of a session.
TEST(HostMetricsTest, PluginsUseTheHostsSinkAndTheHostHasItsOwnMetrics) {
  sdk::PluginDescriptor descriptor;
  descriptor.name = "Counting";
  descriptor.extension_points = {v1beta1::EXTENSION_POINT_POST_BIND};
  descriptor.metrics = {{"ticks_total", sdk::MetricType::kCounter, {"profile"}, "Ticks."}};
  descriptor.create =
      [](const sdk::PluginContext& context) -> absl::StatusOr<std::unique_ptr<sdk::Plugin>> {
    return std::make_unique<Counting>(
        context.metrics->NewCounter("ticks_total", {context.profile}));
  };
  sdk::PluginRegistry registry;
  ASSERT_TRUE(registry.Add(descriptor).ok());
  FakeSink sink;
  Host host({"host-1", "", "", absl::UnixEpoch()}, &registry, &sink);
  v1beta1::ConfigureRequest request;
  request.set_session_id("s");
  request.set_instance("host-1");
  v1beta1::ProfileConfig* profile = request.add_profiles();
  profile->set_name("p");
  v1beta1::PointConfig* point = profile->add_points();
  point->set_extension_point(v1beta1::EXTENSION_POINT_POST_BIND);
  point->add_plugins("Counting");
  v1beta1::ConfigureResponse response;
  ASSERT_TRUE(host.Configure(request, absl::UnixEpoch(), &response).ok());
  ASSERT_TRUE(response.problems().empty()) << response.DebugString();
  host.Connected("s");
  // Plugins get ticks once they have the cluster.
  v1beta1::CallHeader header;
  header.set_session_id("s");
  Session* session = nullptr;
  ASSERT_TRUE(host.FindSession(header, &session).ok());
  session->BeginSync();
  v1beta1::SyncRequest snapshot;
  snapshot.set_version(1);
  for (const auto phase :
       {v1beta1::SyncRequest::PHASE_SNAPSHOT_BEGIN, v1beta1::SyncRequest::PHASE_SNAPSHOT_END}) {
    snapshot.set_phase(phase);
    ASSERT_TRUE(session->Apply(snapshot, absl::UnixEpoch()).ok());
  }
  host.Tick(absl::UnixEpoch());
  host.Tick(absl::UnixEpoch());
  EXPECT_EQ(sink.values,
            (std::map<std::string, double>{{"ticks_total/p", 2},
                                           {"outboard_plugin_host_sessions/host-1", 1},
                                           {"outboard_plugin_host_attempts_in_flight/host-1", 0}}));
}

}  // namespace
}  // namespace outboard::runtime
