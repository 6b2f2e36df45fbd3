// Many pods in one message, against one after the other: random clusters, all plugins that place.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "plugin_host/sdk/testing/builders.h"
#include "plugins/plans_harness.h"

#ifndef BATCH_CASES
#define BATCH_CASES 10000
#endif

namespace outboard::plans {
namespace {

using sdk::testing::NodeBuilder;
using sdk::testing::PodBuilder;

const std::vector<std::string> kDefaultPlugins = {"NodeUnschedulable",
                                                  "NodeName",
                                                  "TaintToleration",
                                                  "NodeAffinity",
                                                  "NodePorts",
                                                  "NodeResourcesFit",
                                                  "VolumeRestrictions",
                                                  "NodeVolumeLimits",
                                                  "VolumeBinding",
                                                  "VolumeZone",
                                                  "PodTopologySpread",
                                                  "InterPodAffinity",
                                                  "NodeResourcesBalancedAllocation",
                                                  "ImageLocality",
                                                  "DynamicResources"};
const std::vector<std::string> kOwnPlugins = {
    "GPUAware",          "CostOptimized", "GPUModelMatch",        "TopologyAwareGPUGate",
    "GPUPacking",        "Objectives",    "TrainingJobPlacement", "WorkloadStrategyScorer",
    "WorkloadTypeFilter"};

class Dice {
 public:
  explicit Dice(uint64_t seed) : random_(seed) {}
  bool Flip(int one_in = 2) { return Below(one_in) == 0; }
  int Below(int n) { return std::uniform_int_distribution<int>(0, n - 1)(random_); }
  std::string Pick(const std::vector<std::string>& words) {
    return words[static_cast<size_t>(Below(static_cast<int>(words.size())))];
  }

 private:
  std::mt19937_64 random_;
};

v1alpha1::Node RandomNode(Dice& dice, const std::string& name) {
  NodeBuilder node(name);
  node.Allocatable({{"cpu", absl::StrCat(1 + dice.Below(8))},
                    {"memory", absl::StrCat(1 + dice.Below(8), "Gi")},
                    {"pods", absl::StrCat(2 + dice.Below(9))},
                    {"nvidia.com/gpu", absl::StrCat(dice.Below(9))}});
  node.Label("kubernetes.io/hostname", name);
  node.Label("zone", dice.Pick({"a", "b", "c"}));
  node.Label("nvidia.com/gpu.product", dice.Pick({"A100", "H100"}));
  node.Label("nvidia.com/gpu.memory", "81920");
  node.Label("node-cost-per-hour", dice.Pick({"1", "2.5", "3"}));
  node.Label("nvlink-fabric-id", dice.Pick({"f1", "f2"}));
  if (dice.Flip(5)) node.Taint("t", "v", v1alpha1::NO_SCHEDULE);
  if (dice.Flip(6)) node.Unschedulable();
  if (dice.Flip()) node.Image("image-a:1", 500 << 20);
  return node;
}

v1alpha1::Pod RandomPod(Dice& dice, const std::string& name) {
  PodBuilder pod(name);
  pod.Requests({{"cpu", dice.Pick({"0", "250m", "1", "2"})},
                {"memory", dice.Pick({"0", "256Mi", "1Gi"})},
                {"nvidia.com/gpu", dice.Pick({"0", "0", "1", "2"})}});
  pod.proto().mutable_containers(0)->set_image(dice.Pick({"image-a:1", "image-b:1"}));
  pod.Label("app", dice.Pick({"db", "web"}));
  if (dice.Flip(3)) pod.Label("workload-type", dice.Pick({"training", "inference"}));
  if (dice.Flip(3)) pod.Label("training-job-id", dice.Pick({"j1", "j2"}));
  if (dice.Flip(4)) pod.HostPort(80);
  if (dice.Flip(4)) pod.NodeSelector("zone", dice.Pick({"a", "b"}));
  if (dice.Flip(4)) pod.Toleration("t", v1alpha1::Toleration::EXISTS, "", v1alpha1::NO_SCHEDULE);
  pod.Priority(dice.Below(3));
  if (dice.Flip(3)) {
    auto* constraint = pod.proto().add_topology_spread_constraints();
    constraint->set_max_skew(1 + dice.Below(2));
    constraint->set_topology_key(dice.Pick({"zone", "kubernetes.io/hostname"}));
    constraint->set_when_unsatisfiable(dice.Flip()
                                           ? v1alpha1::TopologySpreadConstraint::DO_NOT_SCHEDULE
                                           : v1alpha1::TopologySpreadConstraint::SCHEDULE_ANYWAY);
    (*constraint->mutable_label_selector()->mutable_match_labels())["app"] =
        dice.Pick({"db", "web"});
  }
  if (dice.Flip(3)) {
    auto* affinity = dice.Flip() ? pod.proto().mutable_affinity()->mutable_pod_affinity()
                                 : pod.proto().mutable_affinity()->mutable_pod_anti_affinity();
    v1alpha1::PodAffinityTerm* term =
        dice.Flip() ? affinity->add_required_during_scheduling_ignored_during_execution()
                    : affinity->add_preferred_during_scheduling_ignored_during_execution()
                          ->mutable_pod_affinity_term();
    term->set_topology_key(dice.Pick({"zone", "kubernetes.io/hostname"}));
    (*term->mutable_label_selector()->mutable_match_labels())["app"] = dice.Pick({"db", "web"});
  }
  for (auto& preferred : *pod.proto()
                              .mutable_affinity()
                              ->mutable_pod_affinity()
                              ->mutable_preferred_during_scheduling_ignored_during_execution())
    preferred.set_weight(1 + dice.Below(100));
  for (auto& preferred : *pod.proto()
                              .mutable_affinity()
                              ->mutable_pod_anti_affinity()
                              ->mutable_preferred_during_scheduling_ignored_during_execution())
    preferred.set_weight(1 + dice.Below(100));
  pod.proto().set_creation_unix_seconds(dice.Below(1000));
  return pod;
}

// What became of the cases, so that nobody takes empty ones for success.
struct Tally {
  int cases = 0;
  int placed = 0;     // pods by batches
  int whole = 0;      // cases in which all pods were placed
  int cut_short = 0;  // cases in which one was not
};

void RunCase(uint64_t seed, PlansHarness* harness, Tally* tally) {
  Dice dice(seed);
  std::vector<v1alpha1::Node> nodes;
  const int num_nodes = dice.Flip(10) ? 130 + dice.Below(40) : 1 + dice.Below(12);
  for (int i = 0; i < num_nodes; ++i) nodes.push_back(RandomNode(dice, absl::StrCat("n", i)));
  std::vector<v1alpha1::Pod> pods;
  const int running = dice.Below(2 * std::min(num_nodes, 12));
  for (int i = 0; i < running; ++i) {
    v1alpha1::Pod pod = RandomPod(dice, absl::StrCat("running-", i));
    pod.set_node_name(nodes[static_cast<size_t>(dice.Below(num_nodes))].name());
    pods.push_back(std::move(pod));
  }
  // Equal pods, or each another one.
  const bool equal = dice.Flip();
  const v1alpha1::Pod same = RandomPod(dice, "same");
  std::vector<std::string> uids;
  const int count = 2 + dice.Below(12);
  for (int i = 0; i < count; ++i) {
    v1alpha1::Pod pod = equal ? same : RandomPod(dice, "other");
    pod.set_name(absl::StrCat("pod-", i));
    pod.set_uid(absl::StrCat("default/pod-", i));
    uids.push_back(pod.uid());
    pods.push_back(std::move(pod));
  }
  const bool nominates = dice.Flip(4);
  if (nominates) pods.push_back(RandomPod(dice, "nominated"));
  harness->percentage = dice.Flip() ? 0 : 60;
  harness->SetCluster(nodes, pods);
  if (nominates) harness->Nominate("default/nominated", nodes[0].name());

  uint32_t offset = static_cast<uint32_t>(dice.Below(2 * num_nodes));
  const v1alpha1::CycleResponse at_once =
      harness->Cycle(uids[0], offset, {uids.begin() + 1, uids.end()}, /*place_group=*/false);
  std::vector<Place> batch;
  for (const auto& placement : at_once.placements()) batch.push_back(harness->PlaceOf(placement));
  if (batch.empty()) {
    // The answer about the first alone.
    if (const Place alone = harness->Choose(uids[0], offset, at_once); !alone.node.empty())
      batch.push_back(alone);
  }
  std::vector<Place> singly;
  for (const std::string& uid : uids) {
    const Place place = harness->Choose(uid, offset, harness->Cycle(uid, offset, {}, false));
    if (place.node.empty()) break;
    harness->Assume(uid, place.node);
    offset = (offset + place.processed) % static_cast<uint32_t>(num_nodes);
    singly.push_back(place);
  }
  ASSERT_EQ(batch.size(), singly.size()) << "seed " << seed;
  for (size_t i = 0; i < batch.size(); ++i) {
    ASSERT_EQ(batch[i].pod, singly[i].pod) << "seed " << seed << ", pod " << i;
    ASSERT_EQ(batch[i].node, singly[i].node) << "seed " << seed << ", pod " << i;
    ASSERT_EQ(batch[i].processed, singly[i].processed) << "seed " << seed << ", pod " << i;
    ASSERT_EQ(batch[i].feasible, singly[i].feasible) << "seed " << seed << ", pod " << i;
  }
  ++tally->cases;
  tally->placed += static_cast<int>(batch.size());
  ++(batch.size() == uids.size() ? tally->whole : tally->cut_short);
}

void RunAll(const std::vector<std::string>& plugins, int cases) {
  PlansHarness harness(plugins);
  Tally tally;
  for (int seed = 0; seed < cases; ++seed) {
    RunCase(static_cast<uint64_t>(seed), &harness, &tally);
    if (::testing::Test::HasFatalFailure()) return;
  }
  std::cout << tally.cases << " batches equal one-by-one placement: " << tally.placed
            << " pods placed, all pods of " << tally.whole << " batches, a part of "
            << tally.cut_short << "\n";
  EXPECT_GT(tally.whole, cases / 10);
  EXPECT_GT(tally.cut_short, cases / 10);
}

TEST(BatchesTest, DefaultPluginsPlaceManyAsOneByOne) { RunAll(kDefaultPlugins, BATCH_CASES); }

TEST(BatchesTest, AllPluginsPlaceManyAsOneByOne) {
  std::vector<std::string> plugins = kDefaultPlugins;
  plugins.insert(plugins.end(), kOwnPlugins.begin(), kOwnPlugins.end());
  RunAll(plugins, BATCH_CASES / 2);
}

}  // namespace
}  // namespace outboard::plans
