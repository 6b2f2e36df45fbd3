#include "plugin_host/runtime/plugin_times.h"

#include <glog/logging.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "plugin_host/runtime/host.h"
#include "plugin_host/sdk/testing/builders.h"

namespace outboard::runtime {
namespace {

using ::testing::HasSubstr;

constexpr auto kFilter = v1beta1::EXTENSION_POINT_FILTER;

// Keeps counts and sums, by `plugin/point`.
class CountingSink : public MetricSink {
 public:
  struct Kept {
    std::vector<uint32_t> counts;
    double sum = 0;
  };
  struct Child : CountedHistogram {
    explicit Child(Kept* kept) : kept(kept) {}
    void Add(absl::Span<const uint32_t> counts, double sum) override {
      kept->counts.resize(counts.size());
      for (size_t i = 0; i < counts.size(); ++i) kept->counts[i] += counts[i];
      kept->sum += sum;
    }
    Kept* kept;
  };
  std::shared_ptr<sdk::Counter> NewCounter(const sdk::MetricSpec& spec,
                                           const std::vector<std::string>& labels) override {
    return sdk::NoMetrics()->NewCounter(spec.name, labels);
  }
  std::shared_ptr<sdk::Gauge> NewGauge(const sdk::MetricSpec& spec,
                                       const std::vector<std::string>& labels) override {
    return sdk::NoMetrics()->NewGauge(spec.name, labels);
  }
  std::shared_ptr<sdk::Histogram> NewHistogram(const sdk::MetricSpec& spec,
                                               const std::vector<std::string>& labels) override {
    return sdk::NoMetrics()->NewHistogram(spec.name, labels);
  }
  std::shared_ptr<CountedHistogram> NewCountedHistogram(
      const sdk::MetricSpec& spec, const std::vector<std::string>& labels) override {
    EXPECT_EQ(spec.name, PluginDurationMetric().name);
    return std::make_shared<Child>(&kept[labels[0] + "/" + labels[1]]);
  }
  uint32_t CountOf(const std::string& child) {
    const std::vector<uint32_t>& counts = kept[child].counts;
    return std::accumulate(counts.begin(), counts.end(), uint32_t{0});
  }
  std::map<std::string, Kept> kept;
};

class LogLines : public google::LogSink {
 public:
  LogLines() { google::AddLogSink(this); }
  ~LogLines() override { google::RemoveLogSink(this); }
  void send(google::LogSeverity, const char*, const char*, int, const google::LogMessageTime&,
            const char* text, size_t size) override {
    lines.emplace_back(text, size);
  }
  std::vector<std::string> lines;
};

TEST(PluginTimesTest, BoundsAreThoseOfTheMetric) {
  const std::vector<double>& bounds = PluginDurationMetric().buckets;
  ASSERT_EQ(bounds.size(), PluginTimes::kBuckets - 1);
  EXPECT_EQ(PluginTimes::BucketOf(0), 0);
  for (size_t i = 0; i < bounds.size(); ++i) {
    const auto nanos = static_cast<int64_t>(bounds[i] * 1e9 + 0.5);
    EXPECT_EQ(PluginTimes::BucketOf(nanos), static_cast<int>(i)) << "an upper bound is inclusive";
    EXPECT_EQ(PluginTimes::BucketOf(nanos + 1), static_cast<int>(i) + 1);
  }
  EXPECT_EQ(PluginTimes::BucketOf(int64_t{1} << 62), PluginTimes::kBuckets - 1);
}

TEST(PluginTimesTest, CountsUntilTheyAreHandedOn) {
  CountingSink sink;
  const sdk::PodRecord pod;
  const sdk::LogName name{sdk::PodView(&pod)};
  {
    PluginTimes times(&sink);
    times.Add(0, "A");
    times.Add(1, "B");
    times.Record(0, kFilter, 1500, {}, name);
    times.Record(0, kFilter, 900, {}, name);
    times.Record(1, v1beta1::EXTENSION_POINT_PRE_FILTER, 900, {}, name);
    EXPECT_TRUE(sink.kept.empty());
    times.Flush();
    times.Flush();
    ASSERT_EQ(sink.kept.size(), 2u);
    EXPECT_EQ(sink.kept["A/Filter"].counts[0], 1u);
    EXPECT_EQ(sink.kept["A/Filter"].counts[1], 1u);
    EXPECT_DOUBLE_EQ(sink.kept["A/Filter"].sum, 2.4e-6);
    EXPECT_EQ(sink.CountOf("B/PreFilter"), 1u);
    times.Record(0, kFilter, 900, {}, name);
  }
  EXPECT_EQ(sink.CountOf("A/Filter"), 3u) << "the profile is gone";
}

TEST(PluginTimesTest, WarnsOfSlowCallsOnceAMinute) {
  PluginTimes times(nullptr);
  times.Add(0, "Slow");
  sdk::PodRecord pod;
  pod.pod = sdk::testing::PodBuilder("web").proto();
  const sdk::LogName name{sdk::PodView(&pod)};
  PluginTimes::Clock::time_point now{std::chrono::hours(1)};
  LogLines log;
  times.Record(0, kFilter, 50'000'000, now, name);
  EXPECT_TRUE(log.lines.empty()) << "the limit itself is not slow";
  times.Record(0, kFilter, 72'000'000, now, name);
  ASSERT_EQ(log.lines.size(), 1u);
  EXPECT_THAT(log.lines[0], HasSubstr("Plugin Slow took 72ms at Filter for pod default/web"));
  now += std::chrono::seconds(59);
  for (int i = 0; i < 3; ++i) times.Record(0, kFilter, 72'000'000, now, name);
  EXPECT_EQ(log.lines.size(), 1u);
  times.Record(0, v1beta1::EXTENSION_POINT_PERMIT, 72'000'000, now, name);
  EXPECT_EQ(log.lines.size(), 2u) << "another point";
  now += std::chrono::seconds(1);
  times.Record(0, kFilter, 72'000'000, now, name);
  ASSERT_EQ(log.lines.size(), 3u);
  EXPECT_THAT(log.lines[2], HasSubstr("longer than 50ms for 3 pods since its last warning"));
}

TEST(PluginTimesTest, WithoutUseItDoesNotReadTheClock) {
  EXPECT_TRUE(PluginTimes(nullptr).enabled()) << "for warnings";
  SetSlowPluginCall(absl::ZeroDuration());
  CountingSink sink;
  EXPECT_FALSE(PluginTimes(nullptr).enabled());
  EXPECT_TRUE(PluginTimes(&sink).enabled());
  LogLines log;
  PluginTimes times(&sink);
  times.Add(0, "A");
  const sdk::PodRecord pod;
  times.Record(0, kFilter, int64_t{1} << 40, {}, sdk::LogName(sdk::PodView(&pod)));
  EXPECT_TRUE(log.lines.empty());
  SetSlowPluginCall(absl::Milliseconds(50));
}

// A clock that stands still unless it is moved.
PluginTimes::Clock::time_point frozen;
PluginTimes::Clock::time_point Frozen() { return frozen; }

class PluginSamplesTest : public ::testing::Test {
 protected:
  PluginSamplesTest() : times_(&sink_, &Frozen) {
    frozen = PluginTimes::Clock::time_point(std::chrono::hours(1));
    times_.Add(0, "A");
    times_.Add(1, "B");
    pod_.pod = sdk::testing::PodBuilder("web").proto();
  }
  // A takes 3 us, B the rest of `took` in two calls, between which 1 us passes.
  void Evaluate(sdk::ExtensionPoint point, std::chrono::microseconds took) {
    const std::chrono::microseconds half = (took - std::chrono::microseconds(3)) / 2;
    PluginTimes::Evaluation evaluation(&times_, point, sdk::LogName(sdk::PodView(&pod_)));
    frozen += std::chrono::microseconds(3);
    evaluation.Ended(0);
    frozen += half;
    evaluation.Ended(1);
    frozen += std::chrono::microseconds(1);
    evaluation.Continue();
    frozen += half;
    evaluation.Ended(1);
  }
  uint32_t CountOf(const std::string& child) {
    times_.Flush();
    return sink_.CountOf(child);
  }
  CountingSink sink_;
  PluginTimes times_;
  sdk::PodRecord pod_;
  LogLines log_;
};

TEST_F(PluginSamplesTest, OneInAPeriodOfEachPoint) {
  const std::chrono::microseconds took(23);
  for (int i = 0; i < 10; ++i) {
    Evaluate(kFilter, took);
    Evaluate(v1beta1::EXTENSION_POINT_SCORE, took);
  }
  EXPECT_EQ(CountOf("A/Filter"), 1u);
  EXPECT_EQ(CountOf("B/Filter"), 1u) << "calls for one pod are added up";
  EXPECT_EQ(CountOf("B/Score"), 1u);
  EXPECT_DOUBLE_EQ(sink_.kept["A/Filter"].sum, 3e-6);
  EXPECT_DOUBLE_EQ(sink_.kept["B/Filter"].sum, 20e-6);
  frozen += PluginTimes::kSamplePeriod;
  Evaluate(kFilter, took);
  Evaluate(kFilter, took);
  EXPECT_EQ(CountOf("A/Filter"), 2u);
  EXPECT_TRUE(log_.lines.empty());
}

TEST_F(PluginSamplesTest, AllAfterASlowOneOutsideTheSample) {
  const std::chrono::milliseconds slow(80);
  Evaluate(kFilter, std::chrono::microseconds(23));
  Evaluate(kFilter, slow);
  EXPECT_EQ(CountOf("B/Filter"), 1u);
  ASSERT_EQ(log_.lines.size(), 1u);
  EXPECT_THAT(log_.lines[0], HasSubstr("All plugins together took 80ms"));
  EXPECT_THAT(log_.lines[0], HasSubstr("at Filter for pod default/web"));
  Evaluate(kFilter, slow);
  ASSERT_EQ(log_.lines.size(), 2u);
  EXPECT_THAT(log_.lines[1], HasSubstr("Plugin B took 79.9"));
  for (int i = 0; i < 5; ++i) Evaluate(kFilter, std::chrono::microseconds(23));
  EXPECT_EQ(CountOf("B/Filter"), 7u) << "each is measured";
  frozen += PluginTimes::kAttention;
  for (int i = 0; i < 5; ++i) Evaluate(kFilter, std::chrono::microseconds(23));
  EXPECT_EQ(CountOf("B/Filter"), 8u) << "the sample again";
}

// A plugin of three points.
class Steps : public sdk::Plugin,
              public sdk::PreFilterPlugin,
              public sdk::NodeFilterPlugin,
              public sdk::ScorePlugin {
 public:
  sdk::Verdict PreFilter(const sdk::Attempt&, sdk::PreFilterResult*) const override {
    return sdk::Verdict::Success();
  }
  sdk::Verdict FilterNode(const sdk::Attempt&, const sdk::NodeView&) const override {
    return sdk::Verdict::Success();
  }
  sdk::Verdict Score(const sdk::Attempt&, absl::Span<const sdk::Slot>,
                     absl::Span<int64_t>) const override {
    return sdk::Verdict::Success();
  }
};

// Each point counts once for a pod, whatever the number of nodes.
TEST(PluginTimesTest, OfACycle) {
  const std::vector<sdk::ExtensionPoint> points = {v1beta1::EXTENSION_POINT_PRE_FILTER, kFilter,
                                                   v1beta1::EXTENSION_POINT_SCORE};
  sdk::PluginDescriptor descriptor;
  descriptor.name = "Steps";
  descriptor.extension_points = points;
  descriptor.create =
      [](const sdk::PluginContext&) -> absl::StatusOr<std::unique_ptr<sdk::Plugin>> {
    return std::make_unique<Steps>();
  };
  sdk::PluginRegistry registry;
  ASSERT_TRUE(registry.Add(descriptor).ok());
  CountingSink sink;
  Session session("s", &registry, &sink);
  v1beta1::ConfigureRequest configure;
  v1beta1::ProfileConfig* const profile = configure.add_profiles();
  profile->set_name("p");
  for (const auto point : points) {
    v1beta1::PointConfig* const config = profile->add_points();
    config->set_extension_point(point);
    config->add_plugins("Steps");
  }
  v1beta1::ConfigureResponse configured;
  ASSERT_TRUE(session.Configure(configure, &configured)) << configured.DebugString();
  session.BeginSync();
  v1beta1::SyncRequest sync;
  sync.set_version(1);
  sync.set_phase(v1beta1::SyncRequest::PHASE_SNAPSHOT_BEGIN);
  constexpr uint32_t kNodes = 2000;  // More than are filtered together.
  for (uint32_t i = 0; i < kNodes; ++i) {
    auto* const node = sync.add_changes()->mutable_node_upsert();
    node->set_slot(i);
    node->mutable_node()->CopyFrom(sdk::testing::NodeBuilder("n" + std::to_string(i)).Build());
    sync.mutable_node_order()->add_slots(i);
  }
  *sync.add_changes()->mutable_pod_upsert()->mutable_pod() =
      sdk::testing::PodBuilder("web").proto();
  ASSERT_TRUE(session.Apply(sync, absl::UnixEpoch()).ok());
  sync.Clear();
  sync.set_version(1);
  sync.set_phase(v1beta1::SyncRequest::PHASE_SNAPSHOT_END);
  ASSERT_TRUE(session.Apply(sync, absl::UnixEpoch()).ok());
  v1beta1::CycleRequest cycle;
  cycle.mutable_header()->set_attempt_id(1);
  cycle.mutable_header()->set_exact_version(1);
  cycle.mutable_header()->set_profile("p");
  cycle.set_pod_uid("default/web");
  cycle.set_percentage_of_nodes_to_score(100);
  v1beta1::CycleResponse answer;
  ASSERT_TRUE(session.Cycle(cycle, absl::UnixEpoch(), &answer).ok());
  ASSERT_EQ(answer.evaluation().filter().processed(), kNodes);
  session.FlushTimes();
  EXPECT_EQ(sink.kept.size(), 3u);
  for (const char* point : {"Steps/PreFilter", "Steps/Filter", "Steps/Score"}) {
    EXPECT_EQ(sink.CountOf(point), 1u) << point;
    EXPECT_GT(sink.kept[point].sum, 0) << point;
  }
}

}  // namespace
}  // namespace outboard::runtime
