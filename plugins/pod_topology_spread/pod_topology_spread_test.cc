#include "plugins/pod_topology_spread/pod_topology_spread.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <string>

#include "plugin_host/sdk/testing/builders.h"
#include "plugin_host/sdk/testing/case_runner.h"
#include "plugin_host/sdk/testing/plugin_harness.h"
#include "plugins/pod_topology_spread/logarithm.h"

namespace outboard::pod_topology_spread {
namespace {

using sdk::testing::NodeBuilder;
using sdk::testing::PluginHarness;
using sdk::testing::PodBuilder;

TEST(PodTopologySpreadTest, Cases) {
  sdk::testing::RunCases(Descriptor(), "plugins/pod_topology_spread/testdata");
}

// Values of Go 1.26 on amd64.
TEST(GoLogTest, HasGosBits) {
  EXPECT_EQ(std::bit_cast<uint64_t>(GoLog(2)), 0x3fe62e42fefa39efu);
  EXPECT_EQ(std::bit_cast<uint64_t>(GoLog(3)), 0x3ff193ea7aad030au);
  EXPECT_EQ(std::bit_cast<uint64_t>(GoLog(7)), 0x3fff2272ae325a57u);
  EXPECT_EQ(std::bit_cast<uint64_t>(GoLog(5002)), 0x40210901f6dc84b9u);
  // FNV-1a over the little-endian bits of the logarithms of 2..20002.
  uint64_t hash = 14695981039346656037u;
  for (int i = 2; i <= 20002; ++i) {
    const uint64_t bits = std::bit_cast<uint64_t>(GoLog(i));
    for (int k = 0; k < 8; ++k) hash = (hash ^ ((bits >> (8 * k)) & 0xff)) * 1099511628211u;
  }
  EXPECT_EQ(hash, 0x2d0faa3cdd01273du);
}

// A pod that spreads pods `app: a` over zones with maxSkew 1.
v1beta1::Pod Spread(const std::string& name) {
  v1beta1::Pod pod = PodBuilder(name).Label("app", "a");
  auto* constraint = pod.add_topology_spread_constraints();
  constraint->set_max_skew(1);
  constraint->set_topology_key("zone");
  constraint->set_when_unsatisfiable(
      v1beta1::TopologySpreadConstraint::WHEN_UNSATISFIABLE_DO_NOT_SCHEDULE);
  (*constraint->mutable_label_selector()->mutable_match_labels())["app"] = "a";
  return pod;
}

class PodTopologySpreadHypothesisTest : public testing::Test {
 protected:
  void SetUp() override {
    auto created = PluginHarness::Create(Descriptor());
    ASSERT_TRUE(created.ok()) << created.status();
    harness_ = std::move(*created);
    harness_->AddNode(NodeBuilder("a").Label("zone", "a"));
    harness_->AddNode(NodeBuilder("b").Label("zone", "b"));
    harness_->AddNode(NodeBuilder("none"));
    harness_->AddPod(PodBuilder("on-a").Label("app", "a").OnNode("a"));
    harness_->AddPod(PodBuilder("leaving").Label("app", "a").OnNode("a"));
    harness_->AddPod(PodBuilder("other", "elsewhere").Label("app", "a").OnNode("a"));
    harness_->AddPod(Spread("p"));
    plugin_ = dynamic_cast<sdk::PreFilterPlugin*>(&harness_->plugin());
    filter_ = dynamic_cast<sdk::FilterPlugin*>(&harness_->plugin());
    sdk::PreFilterResult result;
    ASSERT_TRUE(plugin_->PreFilter(Attempt(&state_), &result).ok());
  }
  sdk::Attempt Attempt(sdk::PluginState* state) {
    return sdk::Attempt(1, sdk::PodView(harness_->cluster().FindPod("default/p")),
                        harness_->cluster(), absl::UnixEpoch(), state);
  }
  sdk::NodeView Node(const std::string& name) { return *harness_->cluster().FindNode(name); }
  sdk::PodView Pod(const std::string& uid) {
    return sdk::PodView(harness_->cluster().FindPod(uid));
  }
  bool Feasible(sdk::PluginState* state, const std::string& node) {
    const sdk::Slot slot = Node(node).slot();
    sdk::VerdictTable table;
    sdk::BlockVerdicts ids;
    sdk::FilterSink sink(&table, 0, 1, &ids);
    filter_->Filter(Attempt(state), sdk::NodeBlock{{&slot, 1}, 1}, sink);
    EXPECT_EQ(sink.failed(), 0u);
    return sink.rejected() == 0;
  }

  std::unique_ptr<PluginHarness> harness_;
  sdk::PreFilterPlugin* plugin_ = nullptr;
  sdk::FilterPlugin* filter_ = nullptr;
  sdk::PluginState state_;
};

TEST_F(PodTopologySpreadHypothesisTest, RemovedPodsMakeRoomInTheCopyOnly) {
  EXPECT_FALSE(Feasible(&state_, "a"));
  sdk::PluginState copy;
  copy.filter = state_.filter->Clone();
  ASSERT_TRUE(plugin_->RemovePod(Attempt(&copy), Pod("default/on-a"), Node("a")).ok());
  EXPECT_FALSE(Feasible(&copy, "a"));
  ASSERT_TRUE(plugin_->RemovePod(Attempt(&copy), Pod("elsewhere/other"), Node("a")).ok());
  EXPECT_FALSE(Feasible(&copy, "a"));  // The pod is in another namespace, so it never counted.
  ASSERT_TRUE(plugin_->RemovePod(Attempt(&copy), Pod("default/leaving"), Node("a")).ok());
  EXPECT_TRUE(Feasible(&copy, "a"));
  EXPECT_FALSE(Feasible(&state_, "a"));
  ASSERT_TRUE(plugin_->AddPod(Attempt(&copy), Pod("default/leaving"), Node("a")).ok());
  EXPECT_FALSE(Feasible(&copy, "a"));
}

TEST_F(PodTopologySpreadHypothesisTest, AddedPodsRaiseTheMinimum) {
  sdk::PluginState copy;
  copy.filter = state_.filter->Clone();
  // Now two pods in a, one in b: the minimum is 1, so a allows one more only with two in b.
  ASSERT_TRUE(plugin_->AddPod(Attempt(&copy), Pod("default/on-a"), Node("b")).ok());
  EXPECT_FALSE(Feasible(&copy, "a"));
  EXPECT_TRUE(Feasible(&copy, "b"));
  ASSERT_TRUE(plugin_->AddPod(Attempt(&copy), Pod("default/on-a"), Node("b")).ok());
  EXPECT_TRUE(Feasible(&copy, "a"));
  EXPECT_TRUE(Feasible(&copy, "b"));
  ASSERT_TRUE(plugin_->AddPod(Attempt(&copy), Pod("default/on-a"), Node("none")).ok());
  EXPECT_TRUE(Feasible(&copy, "a"));
}

TEST_F(PodTopologySpreadHypothesisTest, PodsBeingDeletedAreSubtractedAllTheSame) {
  v1beta1::Pod leaving = PodBuilder("leaving").Label("app", "a").OnNode("a");
  leaving.set_deletion_unix_seconds(1);
  harness_->AddPod(leaving);
  sdk::PreFilterResult result;
  ASSERT_TRUE(plugin_->PreFilter(Attempt(&state_), &result).ok());
  EXPECT_FALSE(Feasible(&state_, "a"));  // One in a, none in b.
  sdk::PluginState copy;
  copy.filter = state_.filter->Clone();
  ASSERT_TRUE(plugin_->RemovePod(Attempt(&copy), Pod("default/leaving"), Node("a")).ok());
  EXPECT_TRUE(Feasible(&copy, "a"));
}

TEST_F(PodTopologySpreadHypothesisTest, FilterWithoutPreFilterIsAnError) {
  sdk::PluginState empty;
  const sdk::Slot slot = Node("a").slot();
  sdk::VerdictTable table;
  sdk::BlockVerdicts ids;
  sdk::FilterSink sink(&table, 0, 1, &ids);
  filter_->Filter(Attempt(&empty), sdk::NodeBlock{{&slot, 1}, 1}, sink);
  EXPECT_EQ(sink.failed(), 1u);
  EXPECT_EQ(table.entries()[ids[0]].verdict.reasons()[0],
            "reading \"PreFilterPodTopologySpread\" from cycleState: not found");
  EXPECT_EQ(plugin_->AddPod(Attempt(&empty), Pod("default/on-a"), Node("a")).code(),
            v1beta1::CODE_ERROR);
}

}  // namespace
}  // namespace outboard::pod_topology_spread
