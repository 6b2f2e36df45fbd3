// Every metric of the host and of its plugins has a sample in a run that exercises it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "plugin_host/metrics/prometheus_metrics.h"
#include "plugin_host/runtime/host.h"
#include "plugin_host/runtime/plugin_times.h"
#include "plugin_host/sdk/plugin_registry.h"
#include "plugin_host/sdk/testing/builders.h"
#include "plugins/builtin_plugins.h"

namespace outboard::host_metrics {
namespace {

using namespace v1beta1;  // NOLINT: the contract's messages are this file's vocabulary.
using sdk::testing::NodeBuilder;
using sdk::testing::PodBuilder;

// The families with a sample other than 0; a histogram, an observation.
std::set<std::string> FamiliesWithSamples(const std::string& page) {
  std::set<std::string> histograms, found;
  for (absl::string_view line : absl::StrSplit(page, '\n', absl::SkipEmpty())) {
    if (absl::ConsumePrefix(&line, "# TYPE ")) {
      if (absl::ConsumeSuffix(&line, " histogram")) histograms.emplace(line);
      continue;
    }
    double value = 0;
    if (line[0] == '#' || !absl::SimpleAtod(line.substr(line.rfind(' ') + 1), &value) || value == 0)
      continue;
    absl::string_view name = line.substr(0, line.find_first_of("{ "));
    absl::string_view family = name;
    if (absl::ConsumeSuffix(&family, "_count") && histograms.contains(std::string(family)))
      name = family;
    found.emplace(name);
  }
  return found;
}

// Its samples of n1 and of an unknown host are ten seconds old; n1 has a price.
class FakePrometheus {
 public:
  FakePrometheus() : port_(server_.bind_to_any_port("127.0.0.1")) {
    // Of two threads the thread sanitizer would take the library's own set of methods, a static of
    // a function, for a race: Debian's library is not instrumented.
    server_.new_task_queue = [] { return new httplib::ThreadPool(1); };
    server_.Post(".*", [](const httplib::Request&, httplib::Response& response) {
      std::string rows = R"({"metric":{"node":"n1","outboard":"node"},"value":[100,"2"]})";
      for (const char* host : {"n1", "stranger"}) {
        absl::StrAppend(&rows, R"(,{"metric":{"node":")", host,
                        R"(","outboard":"use"},"value":[100,"0.5"]},{"metric":{"node":")", host,
                        R"(","outboard":"sampled"},"value":[100,"90"]})");
      }
      response.set_content(
          absl::StrCat(R"({"status":"success","data":{"resultType":"vector","result":[)", rows,
                       "]}}"),
          "application/json");
    });
    thread_ = std::thread([this] { server_.listen_after_bind(); });
    // A stop before it accepts would be ignored.
    while (!server_.is_running()) std::this_thread::yield();
  }
  ~FakePrometheus() {
    server_.stop();
    thread_.join();
  }
  std::string address() const { return absl::StrCat("http://127.0.0.1:", port_); }

 private:
  httplib::Server server_;
  const int port_;
  std::thread thread_;
};

class MetricsRunTest : public ::testing::Test {
 protected:
  MetricsRunTest() {
    EXPECT_TRUE(RegisterBuiltinPlugins(&registry_).ok());
    host_ = std::make_unique<runtime::Host>(runtime::HostIdentity{"i-1", "test", ""}, &registry_,
                                            &metrics_);
    ConfigureRequest request;
    request.set_session_id("s");
    request.set_instance("i-1");
    ProfileConfig* const profile = request.add_profiles();
    profile->set_name("p");
    // The plugins with metrics, and a plugin that rejects.
    std::vector<std::string> plugins = {"NodeResourcesFit"};
    for (const auto& [name, descriptor] : registry_.descriptors()) {
      if (!descriptor.metrics.empty()) plugins.push_back(name);
    }
    for (const auto point :
         {EXTENSION_POINT_PRE_FILTER, EXTENSION_POINT_FILTER, EXTENSION_POINT_POST_FILTER,
          EXTENSION_POINT_PRE_SCORE, EXTENSION_POINT_SCORE, EXTENSION_POINT_RESERVE}) {
      PointConfig* const config = profile->add_points();
      config->set_extension_point(point);
      for (const std::string& plugin : plugins) {
        const auto& points = registry_.Find(plugin)->extension_points;
        if (std::find(points.begin(), points.end(), point) == points.end()) continue;
        config->add_plugins(plugin);
        if (point == EXTENSION_POINT_SCORE) config->add_weights(1);
      }
    }
    PluginArgs* const args = profile->add_args();
    args->set_plugin("GPULoad");
    args->set_args_json(absl::StrCat(R"({"prometheus": {"address": ")", prometheus_.address(),
                                     R"("}, "period": "1s"})"));
    for (const char* plugin : {"MetricScore", "Objectives"}) {
      PluginArgs* const metrics = profile->add_args();
      metrics->set_plugin(plugin);
      metrics->set_args_json(absl::StrCat(
          R"({"prometheus": {"address": ")", prometheus_.address(),
          R"("}, "metrics": [{"name": "m", "query": "m", "direction": "lower", "period": "1s"}]})"));
    }
    PluginArgs* const prices = profile->add_args();
    prices->set_plugin("CostOptimized");
    prices->set_args_json(
        absl::StrCat(R"({"prices": {"file": "/nonexistent.csv", "period": "1s", )",
                     R"("prometheus": {"address": ")", prometheus_.address(), R"("}}})"));
    ConfigureResponse response;
    EXPECT_TRUE(host_->Configure(request, absl::Now(), &response).ok());
    EXPECT_TRUE(response.problems().empty()) << response.DebugString();
    host_->Connected("s");
  }

  void SetCluster(const std::vector<Node>& nodes, const std::vector<Pod>& pods) {
    runtime::Session* const session = host_->FindSession("s");
    session->BeginSync();
    SyncRequest request;
    request.set_version(1);
    request.set_phase(SyncRequest::PHASE_SNAPSHOT_BEGIN);
    for (size_t i = 0; i < nodes.size(); ++i) {
      auto* const upsert = request.add_changes()->mutable_node_upsert();
      upsert->set_slot(static_cast<uint32_t>(i));
      *upsert->mutable_node() = nodes[i];
      request.mutable_node_order()->add_slots(static_cast<uint32_t>(i));
    }
    for (const Pod& pod : pods) *request.add_changes()->mutable_pod_upsert()->mutable_pod() = pod;
    ASSERT_TRUE(session->Apply(request, absl::Now()).ok());
    request.Clear();
    request.set_version(1);
    request.set_phase(SyncRequest::PHASE_SNAPSHOT_END);
    ASSERT_TRUE(session->Apply(request, absl::Now()).ok());
  }
  // The attempt stays in flight.
  PostFilterResponse FailToPlace(const std::string& uid) {
    runtime::Session* const session = host_->FindSession("s");
    CycleRequest cycle;
    cycle.mutable_header()->set_attempt_id(1);
    cycle.mutable_header()->set_exact_version(1);
    cycle.mutable_header()->set_profile("p");
    cycle.set_pod_uid(uid);
    CycleResponse answer;
    EXPECT_TRUE(session->Cycle(cycle, absl::Now(), &answer).ok());
    EXPECT_FALSE(answer.evaluation().has_score()) << answer.DebugString();
    PostFilterRequest request;
    *request.mutable_header() = cycle.header();
    PostFilterResponse response;
    EXPECT_TRUE(session->PostFilter(request, absl::Now(), &response).ok());
    return response;
  }

  FakePrometheus prometheus_;
  sdk::PluginRegistry registry_;
  PrometheusMetrics metrics_{"test"};
  std::unique_ptr<runtime::Host> host_;
};

TEST_F(MetricsRunTest, EveryFamilyHasASampleInARunThatExercisesIt) {
  const auto node = [](const char* name, const char* gpus) {
    return NodeBuilder(name).Allocatable({{"cpu", "32"}, {"pods", "9"}, {"nvidia.com/gpu", gpus}});
  };
  PodBuilder trains = PodBuilder("trains").OnNode("n1").Label("workload-type", "training");
  trains.Requests({{"nvidia.com/gpu", "2"}})
      .Annotation("outboard/checkpointing", "true")
      .Annotation("outboard/last-checkpoint-time",
                  absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", absl::Now() - absl::Minutes(10),
                                   absl::UTCTimeZone()));
  PodBuilder half = PodBuilder("half").OnNode("n2").Annotation("gpu-fraction", "0.5");
  half.Annotation("outboard/estimated-end", "2026-01-05T12:00:00Z");
  PodBuilder pod = PodBuilder("p").Priority(10).Requests({{"nvidia.com/gpu", "2"}});
  SetCluster({node("n1", "2"), node("n2", "1")}, {trains, half, pod});
  EXPECT_FALSE(FailToPlace("default/p").has_rejection());

  // Without WritesMetric: no plugin here writes; runtime/write_results_test.cc.
  std::set<std::string> families = {runtime::SessionsMetric().name,
                                    runtime::AttemptsInFlightMetric().name,
                                    runtime::PluginDurationMetric().name};
  for (const sdk::MetricSpec& spec : ProcessMetricSpecs()) families.insert(spec.name);
  families.erase("outboard_log_lines_dropped_total");  // 0 here; logging/stderr_log_test.cc
  for (const auto& [name, descriptor] : registry_.descriptors()) {
    for (const sdk::MetricSpec& spec : descriptor.metrics) families.insert(spec.name);
  }
  // Prometheus is read on a thread of the plugin, and its metrics follow at a tick.
  const absl::Time limit = absl::Now() + absl::Seconds(30);
  std::vector<std::string> missing;
  do {
    host_->Tick(absl::Now());
    const std::set<std::string> found = FamiliesWithSamples(metrics_.Text());
    missing.clear();
    std::set_difference(families.begin(), families.end(), found.begin(), found.end(),
                        std::back_inserter(missing));
    if (!missing.empty()) absl::SleepFor(absl::Milliseconds(20));
  } while (!missing.empty() && absl::Now() < limit);
  EXPECT_THAT(missing, ::testing::IsEmpty());
}

}  // namespace
}  // namespace outboard::host_metrics
