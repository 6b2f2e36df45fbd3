#include "plugins/metric_score/metric_score.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "plugin_host/sdk/prometheus/node_names.h"
#include "plugin_host/sdk/testing/builders.h"
#include "plugin_host/sdk/testing/case_runner.h"
#include "plugin_host/sdk/testing/plugin_harness.h"

namespace outboard::metric_score::metric_score_test {

using prometheus::MetricReadOptions;
using prometheus::MetricSnapshot;
using sdk::testing::NodeBuilder;
using sdk::testing::PluginHarness;
using sdk::testing::PodBuilder;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

using Values = std::vector<std::pair<std::vector<std::string>, double>>;

absl::Time At(int seconds) {
  return absl::FromCivil(absl::CivilSecond(2026, 1, 1), absl::UTCTimeZone()) +
         absl::Seconds(seconds);
}

// Returns what the test sets.
class FakeSource : public prometheus::MetricSource {
 public:
  std::shared_ptr<const MetricSnapshot> Latest() const override { return latest; }
  std::shared_ptr<const MetricSnapshot> latest;
};

class MetricScoreTest : public ::testing::Test {
 protected:
  void Start(const std::string& metrics) {
    auto harness = PluginHarness::Create(
        DescriptorWith([this](const MetricReadOptions& options, sdk::Metrics*) {
          seen_.push_back(options);
          return SourceOf(options.read.query);
        }),
        absl::StrCat(R"({"prometheus": {"address": "http://p:9090"}, "metrics": [)", metrics,
                     "]}"));
    ASSERT_TRUE(harness.ok()) << harness.status();
    harness_ = *std::move(harness);
    harness_->SetNow(At(0));
    for (const char* name : {"n1", "n2"}) harness_->AddNode(NodeBuilder(name));
  }
  std::shared_ptr<FakeSource> SourceOf(const std::string& query) {
    auto& source = sources_[query];
    if (source == nullptr) source = std::make_shared<FakeSource>();
    return source;
  }
  void Publish(const std::string& query, int asked, Values values) {
    SourceOf(query)->latest =
        std::make_shared<MetricSnapshot>(MetricSnapshot{At(asked), std::move(values)});
  }
  void Tick(int seconds) {
    harness_->SetNow(At(seconds));
    harness_->Tick();
  }
  std::map<std::string, int64_t> Scores(const std::string& pod) {
    const auto scores = harness_->Score(PodBuilder(pod));
    EXPECT_TRUE(scores.ok()) << scores.status();
    return scores.ok() ? *scores : std::map<std::string, int64_t>();
  }
  double Nodes(const std::string& metric, const std::string& state) {
    return harness_->Metric("outboard_metric_score_nodes", {"default-scheduler", metric, state})
        .value_or(-1);
  }

  std::map<std::string, std::shared_ptr<FakeSource>> sources_;  // By query.
  std::vector<MetricReadOptions> seen_;
  std::unique_ptr<PluginHarness> harness_;
};

constexpr char kLatency[] =
    R"({"name": "latency", "query": "l", "direction": "lower", "maxAge": "1m",
        "range": {"from": 0, "to": 200}})";

// The cases' values follow from their queries.
TEST(MetricScoreCases, Cases) {
  const std::map<std::string, Values> values = {
      {"latency",
       {{{"fast"}, 20},
        {{"slow:9100"}, 180},
        {{"beyond"}, 1000},
        {{"negative"}, -5},
        {{"10.0.0.1", "second-label"}, 100},
        {{"twice"}, 10},
        {{"twice"}, 20},
        {{"same"}, 100},
        {{"same"}, 100},
        {{"elsewhere"}, 0}}},
      {"throughput", {{{"fast"}, 1000}, {{"slow"}, 4000}, {{"beyond"}, 2000}}},
      {"equal", {{{"fast"}, 7}, {{"slow"}, 7}}},
      {"huge", {{{"fast"}, 1.7e308}, {{"slow"}, -1.7e308}, {{"beyond"}, 0}}},
      {"empty", {}}};
  sdk::testing::RunCases(
      DescriptorWith([&](const MetricReadOptions& options, sdk::Metrics*) {
        auto source = std::make_shared<FakeSource>();
        const auto known = values.find(options.read.query);
        if (known != values.end())
          source->latest = std::make_shared<MetricSnapshot>(MetricSnapshot{At(-10), known->second});
        return source;
      }),
      "plugins/metric_score/testdata");
}

TEST_F(MetricScoreTest, WithoutDataAllNodesAreEqual) {
  Start(kLatency);
  Tick(0);
  EXPECT_THAT(Scores("a"), UnorderedElementsAre(Pair("n1", 50), Pair("n2", 50)));
  EXPECT_EQ(Nodes("latency", "unmeasured"), 2);
}

// A value counts until its reading is too old, even without a newer one.
TEST_F(MetricScoreTest, ReadingsGrowOld) {
  Start(kLatency);
  Publish("l", 0, {{{"n1"}, 20}, {{"n2"}, 180}});
  Tick(1);
  EXPECT_THAT(Scores("a"), UnorderedElementsAre(Pair("n1", 90), Pair("n2", 10)));
  Tick(60);
  EXPECT_THAT(Scores("b"), UnorderedElementsAre(Pair("n1", 90), Pair("n2", 10)));
  EXPECT_EQ(Nodes("latency", "measured"), 2);
  EXPECT_EQ(harness_->Metric("outboard_metric_score_age_seconds", {"default-scheduler", "latency"}),
            60);
  Tick(61);
  EXPECT_THAT(Scores("c"), UnorderedElementsAre(Pair("n1", 50), Pair("n2", 50)));
  EXPECT_EQ(Nodes("latency", "measured"), 0);
  Publish("l", 62, {{{"n1"}, 100}});
  Tick(63);
  EXPECT_THAT(Scores("d"), UnorderedElementsAre(Pair("n1", 50), Pair("n2", 50)));
  EXPECT_EQ(Nodes("latency", "measured"), 1);
}

TEST_F(MetricScoreTest, BoundsRejectAndWakeThoseThatTheyRejected) {
  Start(R"({"name": "latency", "query": "l", "direction": "lower", "maxAge": "1m",
            "filter": {"above": 100}})");
  Publish("l", 0, {{{"n1"}, 120}, {{"n2"}, 100}});
  Tick(0);
  const auto verdict = [&](const char* pod, const char* node) {
    return harness_->Filter(PodBuilder(pod)).at(node);
  };
  EXPECT_EQ(verdict("a", "n1"), sdk::Verdict::Unresolvable("metric latency is 120, at most 100"));
  EXPECT_TRUE(verdict("a", "n2").ok());
  EXPECT_THAT(harness_->TakeActivated(), IsEmpty());
  Publish("l", 10, {{{"n1"}, 99}, {{"n2"}, 100}});
  Tick(10);
  EXPECT_THAT(harness_->TakeActivated(), UnorderedElementsAre("default/a"));
  EXPECT_TRUE(verdict("a", "n1").ok());
  // Old readings reject no pod.
  Publish("l", 20, {{{"n1"}, 500}});
  Tick(20);
  EXPECT_FALSE(verdict("b", "n1").ok());
  harness_->RemovePod("default/a");
  Tick(81);
  EXPECT_THAT(harness_->TakeActivated(), UnorderedElementsAre("default/b"));
  EXPECT_TRUE(verdict("b", "n1").ok());
}

// Nothing is guessed for a node whose samples differ, or that has none.
TEST_F(MetricScoreTest, AmbiguousAndUnknownNodesAreCounted) {
  Start(kLatency);
  Publish("l", 0, {{{"n1"}, 20}, {{"n1"}, 30}, {{"n1"}, 20}, {{"n9"}, 1}, {{"n2"}, 20}});
  Tick(1);
  EXPECT_THAT(Scores("a"), UnorderedElementsAre(Pair("n1", 50), Pair("n2", 90)));
  EXPECT_EQ(Nodes("latency", "ambiguous"), 1);
  EXPECT_EQ(Nodes("latency", "unknown"), 1);
  EXPECT_EQ(Nodes("latency", "measured"), 1);
  EXPECT_EQ(Nodes("latency", "unmeasured"), 0);
}

TEST_F(MetricScoreTest, NodesThatComeAndGo) {
  Start(R"({"name": "latency", "query": "l", "direction": "lower", "range": {"from": 0, "to": 200},
            "filter": {"above": 100}})");
  Publish("l", 0, {{{"n1"}, 180}, {{"n3"}, 20}});
  Tick(0);
  EXPECT_FALSE(harness_->Filter(PodBuilder("a")).at("n1").ok());
  // Another node gets its slot, without its value.
  harness_->RemoveNode("n1");
  harness_->AddNode(NodeBuilder("n4"));
  EXPECT_TRUE(harness_->Filter(PodBuilder("b")).at("n4").ok());
  EXPECT_EQ(Scores("b")["n4"], 50);
  harness_->AddNode(NodeBuilder("n3"));
  Tick(1);
  EXPECT_EQ(Scores("c")["n3"], 90);
}

TEST_F(MetricScoreTest, EveryArgReachesTheReader) {
  Start(R"json({"name": "a", "query": "sum by (node) (x)", "direction": "higher", "maxAge": "90s",
            "period": "30s", "nodeLabels": ["node", "host"]},
           {"name": "b", "query": "y", "direction": "lower"})json");
  ASSERT_EQ(seen_.size(), 2u);
  EXPECT_EQ(seen_[0].read.server.address, "http://p:9090");
  EXPECT_EQ(seen_[0].read.query, "sum by (node) (x)");
  EXPECT_EQ(seen_[0].read.lookback, absl::Seconds(90));
  EXPECT_EQ(seen_[0].read.period, absl::Seconds(30));
  EXPECT_EQ(seen_[0].node_labels, (std::vector<std::string>{"node", "host"}));
  EXPECT_EQ(seen_[0].report.label_values, std::vector<std::string>{"a"});
  EXPECT_EQ(seen_[1].read.period, absl::Seconds(15));
  EXPECT_EQ(seen_[1].node_labels, prometheus::DefaultNodeLabels());
}

}  // namespace outboard::metric_score::metric_score_test
