#include "plugins/objectives/objectives.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "plugin_host/sdk/post_filter.h"
#include "plugin_host/sdk/testing/builders.h"
#include "plugin_host/sdk/testing/case_runner.h"
#include "plugin_host/sdk/testing/plugin_harness.h"
#include "plugin_host/sdk/testing/preemption_harness.h"

namespace outboard::objectives {
namespace {

using sdk::testing::NodeBuilder;
using sdk::testing::PluginHarness;
using sdk::testing::PodBuilder;
using sdk::testing::PreemptionHarness;

std::unique_ptr<PluginHarness> Make(const std::string& args) {
  absl::StatusOr<std::unique_ptr<PluginHarness>> harness =
      PluginHarness::Create(Descriptor(), args);
  EXPECT_TRUE(harness.ok()) << harness.status();
  return *std::move(harness);
}

// Has the values of one reading.
class FakeSource : public prometheus::MetricSource {
 public:
  std::shared_ptr<const prometheus::MetricSnapshot> Latest() const override { return latest; }
  std::shared_ptr<const prometheus::MetricSnapshot> latest;
};

// Of the cases, at 2026-01-01T00:00:00Z: values of the query `latency`; no other query has any.
std::shared_ptr<prometheus::MetricSource> SourceOfCases(
    const prometheus::MetricReadOptions& options, sdk::Metrics*) {
  auto source = std::make_shared<FakeSource>();
  if (options.read.query != "latency") return source;
  auto snapshot = std::make_shared<prometheus::MetricSnapshot>();
  snapshot->asked = absl::FromCivil(absl::CivilSecond(2026, 1, 1), absl::UTCTimeZone());
  snapshot->values = {{{"fast"}, 20}, {{"slow"}, 180}, {{"middle"}, 100}};
  source->latest = std::move(snapshot);
  return source;
}

TEST(Objectives, Cases) {
  sdk::testing::RunCases(DescriptorWith(SourceOfCases), "plugins/objectives/testdata");
}

// A bound of a metric rejects also pods without bounds of their own, and wakes them.
TEST(Objectives, PodsThatAMetricRejectedAreWoken) {
  auto source = std::make_shared<FakeSource>();
  const auto say = [&](double latency, absl::Time asked) {
    auto snapshot = std::make_shared<prometheus::MetricSnapshot>();
    snapshot->asked = asked;
    snapshot->values = {{{"a"}, latency}};
    source->latest = std::move(snapshot);
  };
  auto harness = PluginHarness::Create(
      DescriptorWith([&](const prometheus::MetricReadOptions&, sdk::Metrics*) { return source; }),
      R"({"prometheus": {"address": "http://p"}, "metrics": [{"name": "latency", "query": "l",
          "direction": "lower", "filter": {"above": 100}}]})");
  ASSERT_TRUE(harness.ok()) << harness.status();
  const absl::Time start = absl::FromUnixSeconds(1767600000);
  (*harness)->SetNow(start);
  (*harness)->AddNode(NodeBuilder("a"));
  say(101, start);
  EXPECT_EQ((*harness)->Filter(PodBuilder("p")).at("a"),
            sdk::Verdict::Unresolvable("metric latency is 101, at most 100"));
  say(99, start + absl::Seconds(10));
  (*harness)->SetNow(start + absl::Seconds(11));
  (*harness)->Tick();
  EXPECT_EQ((*harness)->TakeActivated(), std::vector<std::string>{"default/p"});
  EXPECT_TRUE((*harness)->Filter(PodBuilder("p")).at("a").ok());
}

// After any pod events, licences in use equal those of pods on nodes.
TEST(Objectives, LicencesAreCountedThroughAllThatPodsDo) {
  auto harness = Make(R"({"licences": {"m": 1000}})");
  for (const char* name : {"a", "b", "c"}) harness->AddNode(NodeBuilder(name));
  std::mt19937 random(3);
  const std::vector<std::string> nodes = {"", "a", "b", "c"};
  const std::vector<std::string> counts = {"1", "2", "3", "0", "x", ""};
  std::map<std::string, int64_t> held;  // By pod.
  for (int round = 0; round < 2000; ++round) {
    const std::string name = absl::StrCat("p", random() % 8);
    const std::string uid = "default/" + name;
    const bool is_there = held.contains(uid);
    switch (random() % 4) {
      case 0:
      case 1: {
        // A pod with a node keeps it.
        const sdk::PodRecord* record = harness->cluster().FindPod(uid);
        const std::string node = record != nullptr && !record->pod.node_name().empty()
                                     ? record->pod.node_name()
                                     : nodes[random() % 4];
        const size_t count = random() % counts.size();
        harness->AddPod(PodBuilder(name)
                            .Label("licence.outboard/m", counts[count])
                            .Label("round", absl::StrCat(round))
                            .OnNode(node));
        const bool on_node = harness->cluster().FindPod(uid)->on_node();
        held[uid] = on_node && count < 3 ? static_cast<int64_t>(count) + 1 : 0;
        break;
      }
      case 2:
        if (is_there) harness->RemovePod(uid);
        held.erase(uid);
        break;
      default: {
        const sdk::PodRecord* record = harness->cluster().FindPod(uid);
        if (record == nullptr || !record->pod.node_name().empty()) break;
        const bool assume = random() % 2 == 0;
        harness->Place(
            uid, assume ? v1beta1::PLACEMENT_STATE_ASSUMED : v1beta1::PLACEMENT_STATE_UNPLACED,
            "b");
        int64_t count = 0;
        if (!absl::SimpleAtoi(record->pod.labels().at("licence.outboard/m"), &count)) count = 0;
        held[uid] = assume ? count : 0;
      }
    }
    int64_t used = 0;
    for (const auto& [pod, count] : held) used += count;
    const auto verdicts = harness->Filter(PodBuilder("probe").Label("licence.outboard/m", "1000"));
    if (used == 0) {
      EXPECT_TRUE(verdicts.at("a").ok());
    } else {
      EXPECT_EQ(verdicts.at("a").reasons(),
                std::vector<std::string>{absl::StrCat(
                    "insufficient licences of m: need 1000, available ", 1000 - used)});
    }
    harness->RemovePod("default/probe");
  }
}

// Removes all pods from each node in turn, and returns the nodes where that helps.
class EvictAll : public sdk::Plugin, public sdk::PostFilterPlugin {
 public:
  sdk::Verdict PostFilter(const sdk::Attempt& attempt, sdk::DryRun& dry_run,
                          sdk::PostFilterAnswer* answer) const override {
    std::vector<std::string> helps;
    for (const sdk::Slot slot : attempt.cluster().node_order()) {
      const sdk::NodeView node = attempt.cluster().node(slot);
      const std::string name = node.name();
      const std::vector<sdk::PodRecord*> pods = node.pods();
      dry_run.Begin(slot);
      for (sdk::PodRecord* pod : pods) EXPECT_TRUE(dry_run.RemovePod(*pod).ok());
      if (dry_run.Filter().ok()) helps.push_back(name);
      for (sdk::PodRecord* pod : pods) EXPECT_TRUE(dry_run.AddPod(*pod).ok());
      EXPECT_FALSE(dry_run.Filter().ok()) << "RemovePod does not undo AddPod";
      dry_run.End();
    }
    return sdk::Verdict::Unschedulable(absl::StrJoin(helps, ","));
  }
};

// Otherwise preemption would evict pods without licences, or with too few.
TEST(Objectives, OnlyEvictionsThatGiveLicencesBackHelp) {
  sdk::PluginDescriptor evict_all;
  evict_all.name = "EvictAll";
  evict_all.extension_points = {v1beta1::EXTENSION_POINT_POST_FILTER};
  evict_all.create = [](const sdk::PluginContext&) -> absl::StatusOr<std::unique_ptr<sdk::Plugin>> {
    return std::make_unique<EvictAll>();
  };
  sdk::PluginDescriptor objectives = Descriptor();
  objectives.create =
      [](const sdk::PluginContext& context) -> absl::StatusOr<std::unique_ptr<sdk::Plugin>> {
    sdk::ArgsReader args(R"({"licences": {"m": 5}})");
    sdk::PluginContext with_args = context;
    with_args.args = &args;
    return Descriptor().create(with_args);
  };
  auto harness = PreemptionHarness::Create(evict_all, {objectives});
  ASSERT_TRUE(harness.ok()) << harness.status();
  for (const char* name : {"many", "few", "none"}) (*harness)->AddNode(NodeBuilder(name));
  (*harness)->AddPod(PodBuilder("a").OnNode("many").Label("licence.outboard/m", "4"));
  (*harness)->AddPod(PodBuilder("b").OnNode("few").Label("licence.outboard/m", "1"));
  (*harness)->AddPod(PodBuilder("c").OnNode("none").Label("licence.outboard/x", "4"));
  const v1beta1::PostFilterResponse response =
      (*harness)->Attempt(PodBuilder("p").Label("licence.outboard/m", "2"));
  ASSERT_EQ(response.rejection().status().reasons_size(), 1);
  EXPECT_EQ(response.rejection().status().reasons(0), "many");
}

// A profile may enable the plugin at single extension points.
TEST(Objectives, EvaluatesWithoutPreFilterAndPreScore) {
  sdk::PluginDescriptor descriptor = Descriptor();
  descriptor.extension_points = {v1beta1::EXTENSION_POINT_FILTER, v1beta1::EXTENSION_POINT_SCORE};
  auto harness = PluginHarness::Create(descriptor, "");
  ASSERT_TRUE(harness.ok()) << harness.status();
  (*harness)->AddNode(NodeBuilder("a").Label("node-cost-per-hour", "3"));
  const v1beta1::Pod bounded = PodBuilder("p").Annotation("outboard/sla-highest-cost", "2");
  EXPECT_EQ((*harness)->Filter(bounded).at("a").reasons()[0], "node costs 3, highest cost 2");
  EXPECT_EQ((*harness)->RawScore(bounded)->at("a"), 25);
  const v1beta1::Pod late =
      PodBuilder("q").Annotation("outboard/sla-latest-start", "1969-01-01T00:00:00Z");
  EXPECT_EQ((*harness)->Filter(late).at("a").reasons()[0],
            "latest start 1969-01-01T00:00:00Z is past");
  const v1beta1::Pod plain =
      PodBuilder("r").Annotation("outboard/objectives", "cost=0,distance=0,gpu=0,cpu=0");
  EXPECT_TRUE((*harness)->Filter(plain).at("a").ok());
  EXPECT_EQ((*harness)->RawScore(plain)->at("a"), 0);
}

TEST(Objectives, NodesThatGoLeaveNothingBehind) {
  auto harness = Make(R"({"levels": ["zone"]})");
  harness->AddNode(NodeBuilder("a")
                       .Label("node-cost-per-hour", "1")
                       .Label("zone", "z")
                       .Label("data.outboard/d", "true"));
  harness->RemoveNode("a");
  harness->AddNode(NodeBuilder("b"));
  const auto verdicts = harness->Filter(
      PodBuilder("p").Annotation("outboard/data", "d").Annotation("outboard/data-within", "zone"));
  EXPECT_EQ(verdicts.at("b").reasons()[0], "no node holds data d");
  const auto costly = harness->Filter(PodBuilder("q").Annotation("outboard/sla-highest-cost", "9"));
  EXPECT_EQ(costly.at("b").reasons()[0], "cost of the node is unknown");
}

// An invalid label or annotation never moves a score out of 0..100, never lets a node win by cost,
// and never becomes a bound.
TEST(Objectives, NothingAbsurdWins) {
  const std::vector<std::string> absurd = {"",
                                           "-1",
                                           "-0",
                                           "1e309",
                                           "nan",
                                           "inf",
                                           "0x0",
                                           "1,5",
                                           "٣",
                                           "999999999999999999999",
                                           "NULL",
                                           "$1",
                                           "=",
                                           "a=",
                                           ",",
                                           "\xff",
                                           "--",
                                           "cost=1e9",
                                           "infinite-future",
                                           std::string(300, '9')};
  std::mt19937 random(1);
  const auto pick = [&] { return absurd[random() % absurd.size()]; };
  auto harness = Make(R"({"levels": ["rack", "zone"], "licences": {"m": 1}})");
  harness->AddNode(NodeBuilder("sane").Label("node-cost-per-hour", "5"));
  for (int round = 0; round < 500; ++round) {
    harness->AddNode(NodeBuilder("odd")
                         .Label("node-cost-per-hour", pick())
                         .Label("rack", pick())
                         .Label("zone", pick())
                         .Label("data.outboard/d", pick()));
    PodBuilder pod("p");
    pod.Label("licence.outboard/m", pick());
    for (const char* key : {"objectives", "data-within", "sla-latest-start", "sla-highest-cost"})
      pod.Annotation(absl::StrCat("outboard/", key), pick());
    pod.Annotation("outboard/data", "d");
    for (const auto& [node, verdict] : harness->Filter(pod)) EXPECT_TRUE(verdict.ok()) << node;
    const auto raw = harness->RawScore(pod);
    ASSERT_TRUE(raw.ok());
    EXPECT_EQ(raw->at("odd"), 0);
    EXPECT_EQ(raw->at("sane"), 25);  // 0.5 of cost, 0 of cpu.
    harness->RemovePod("default/p");
  }
}

}  // namespace
}  // namespace outboard::objectives
