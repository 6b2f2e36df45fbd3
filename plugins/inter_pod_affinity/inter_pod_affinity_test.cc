#include "plugins/inter_pod_affinity/inter_pod_affinity.h"

#include <gtest/gtest.h>

#include <array>

#include "absl/strings/str_cat.h"
#include "plugin_host/sdk/testing/builders.h"
#include "plugin_host/sdk/testing/case_runner.h"
#include "plugin_host/sdk/testing/plugin_harness.h"
#include "plugins/inter_pod_affinity/affinity_index.h"

namespace outboard::inter_pod_affinity {
namespace {

using sdk::testing::NodeBuilder;
using sdk::testing::PluginHarness;
using sdk::testing::PodBuilder;

TEST(InterPodAffinityTest, Cases) {
  sdk::testing::RunCases(Descriptor(), "plugins/inter_pod_affinity/testdata");
}

// A profile may enable Filter without PreFilter, and Score without PreScore.
TEST(InterPodAffinityTest, WithoutPreFilterOrPreScoreItIsAnErrorAsInKubeScheduler) {
  auto harness = *PluginHarness::Create(Descriptor());
  harness->AddNode(NodeBuilder("n1"));
  harness->AddPod(PodBuilder("p"));
  sdk::PluginState state;
  const sdk::Attempt attempt(1, sdk::PodView(harness->cluster().FindPod("default/p")),
                             harness->cluster(), absl::UnixEpoch(), &state);
  const std::vector<sdk::Slot> slots = {0};
  sdk::VerdictTable table;
  sdk::BlockVerdicts ids;
  sdk::FilterSink sink(&table, 0, 1, &ids);
  dynamic_cast<sdk::FilterPlugin&>(harness->plugin())
      .Filter(attempt, sdk::NodeBlock{slots, 1}, sink);
  EXPECT_EQ(sink.failed(), 1u);
  const sdk::Verdict no_filter_state =
      sdk::Verdict::Error("error reading \"PreFilterInterPodAffinity\" from cycleState: not found");
  EXPECT_EQ(table.entries()[ids[0]].verdict, no_filter_state);
  const auto& pre_filter = dynamic_cast<sdk::PreFilterPlugin&>(harness->plugin());
  EXPECT_EQ(pre_filter.AddPod(attempt, attempt.pod(), harness->cluster().node(0)), no_filter_state);

  const auto& scores = dynamic_cast<sdk::ScorePlugin&>(harness->plugin());
  std::vector<int64_t> raw = {0};
  const sdk::Verdict no_score_state =
      sdk::Verdict::Error("failed to read \"PreScoreInterPodAffinity\" from cycleState: not found");
  EXPECT_EQ(scores.Score(attempt, slots, absl::MakeSpan(raw)), no_score_state);
  EXPECT_EQ(scores.Normalize(attempt, slots, absl::MakeSpan(raw)), no_score_state);
}

TEST(InterPodAffinityTest, IsWokenByWhatKubeSchedulersIsWokenBy) {
  const sdk::PluginDescriptor d = Descriptor();
  ASSERT_EQ(d.wake_up_events.size(), 2u);
  EXPECT_EQ(d.wake_up_events[0].ShortDebugString(),
            "resource: \"Pod\" actions: ACTION_ADD actions: ACTION_UPDATE_POD_LABEL actions: "
            "ACTION_DELETE");
  EXPECT_EQ(d.wake_up_events[1].ShortDebugString(),
            "resource: \"Node\" actions: ACTION_ADD actions: ACTION_UPDATE_NODE_LABEL");
}

PodTerm TermFor(const std::string& app) {
  v1beta1::PodAffinityTerm proto;
  proto.set_topology_key("zone");
  (*proto.mutable_label_selector()->mutable_match_labels())["app"] = app;
  return *PodTerm::Parse(proto, "default");
}

int64_t Sum(const CountedPods& counted) {
  int64_t sum = 0;
  for (const DomainCounts::Cell& cell : counted.counts.cells()) sum += cell.count;
  return sum;
}

TEST(AffinityIndexTest, KeepsABoundedNumberOfTermsAndForgetsUnusedOnes) {
  auto harness = *PluginHarness::Create(Descriptor());
  harness->AddNode(NodeBuilder("n1").Label("zone", "a"));
  harness->AddPod(PodBuilder("e").Label("app", "app-0").OnNode("n1"));
  AffinityIndex index(harness->cluster(), 1);
  index.UpdateNode(0);
  index.AddPod(*harness->cluster().FindPod("default/e"), 0);

  const PodTerm often = TermFor("app-0");
  for (int i = 1; i < 3000; ++i) {
    const PodTerm once = TermFor(absl::StrCat("app-", i));
    EXPECT_EQ(Sum(index.Count({&once, 1}, "zone")), 0);
    EXPECT_EQ(Sum(index.Count({&often, 1}, "zone")), 1);
  }
  EXPECT_EQ(index.counted_size(), 1024u);
  for (int i = 0; i < 1200; ++i) {
    index.Tick();
    if (i % 100 == 0) index.Count({&often, 1}, "zone");
  }
  EXPECT_EQ(index.counted_size(), 1u);
  index.RemovePod(*harness->cluster().FindPod("default/e"), 0);
  EXPECT_EQ(Sum(index.Count({&often, 1}, "zone")), 0);
}

TEST(AffinityIndexTest, FollowsTheLabelsOfNamespaces) {
  auto harness = *PluginHarness::Create(Descriptor());
  harness->AddNode(NodeBuilder("n1").Label("zone", "a"));
  harness->AddPod(PodBuilder("e", "blue").OnNode("n1"));
  v1beta1::Pod pod = PodBuilder("p");
  auto* term = pod.mutable_affinity()
                   ->mutable_pod_anti_affinity()
                   ->add_required_during_scheduling_ignored_during_execution();
  term->set_topology_key("zone");
  term->mutable_label_selector();
  (*term->mutable_namespace_selector()->mutable_match_labels())["team"] = "x";
  EXPECT_TRUE(harness->Filter(pod).at("n1").ok());
  harness->AddNamespace("blue", {{"team", "x"}});
  EXPECT_FALSE(harness->Filter(pod).at("n1").ok());
  harness->RemovePod("blue/e");
  EXPECT_TRUE(harness->Filter(pod).at("n1").ok());
  harness->AddPod(PodBuilder("e", "blue").OnNode("n1"));
  EXPECT_FALSE(harness->Filter(pod).at("n1").ok());
  harness->RemoveNamespace("blue");
  EXPECT_TRUE(harness->Filter(pod).at("n1").ok());
}

}  // namespace
}  // namespace outboard::inter_pod_affinity
