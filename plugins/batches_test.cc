// Many pods in one message, compared with one by one: random clusters, all placing plugins.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "plugins/plans_dice.h"
#include "plugins/plans_harness.h"

namespace outboard::plans {
namespace {

// Counts the outcomes, so that empty cases do not count as success.
struct Tally {
  int batches = 0;
  int placed = 0;     // pods placed by batches
  int whole = 0;      // batches that placed all pods
  int cut_short = 0;  // batches that did not place a pod
};

// Places the pods in one call, compares this with one by one, and leaves them placed. `offset`:
// where the search starts, and afterwards where the next one would start.
void RunBatch(const std::vector<std::string>& uids, uint32_t num_nodes, uint64_t seed,
              PlansHarness* harness, uint32_t* offset, Tally* tally) {
  const v1beta1::PlanResponse at_once =
      harness->Plan(uids[0], *offset, {uids.begin() + 1, uids.end()}, /*place_group=*/false);
  std::vector<Place> batch;
  for (const auto& placement : at_once.plan().placements())
    batch.push_back(harness->PlaceOf(placement));
  if (batch.empty()) {
    // The answer for the first pod alone.
    if (const Place alone = harness->Choose(uids[0], *offset, at_once); !alone.node.empty())
      batch.push_back(alone);
  }
  std::vector<Place> singly;
  for (const std::string& uid : uids) {
    const Place place = harness->Choose(uid, *offset, harness->Plan(uid, *offset, {}, false));
    if (place.node.empty()) break;
    harness->Assume(uid, place.node);
    *offset = (*offset + place.processed) % num_nodes;
    singly.push_back(place);
  }
  ASSERT_EQ(batch.size(), singly.size()) << "seed " << seed;
  for (size_t i = 0; i < batch.size(); ++i) {
    ASSERT_EQ(batch[i].pod, singly[i].pod) << "seed " << seed << ", pod " << i;
    ASSERT_EQ(batch[i].node, singly[i].node) << "seed " << seed << ", pod " << i;
    ASSERT_EQ(batch[i].processed, singly[i].processed) << "seed " << seed << ", pod " << i;
    ASSERT_EQ(batch[i].feasible, singly[i].feasible) << "seed " << seed << ", pod " << i;
  }
  ++tally->batches;
  tally->placed += static_cast<int>(batch.size());
  ++(batch.size() == uids.size() ? tally->whole : tally->cut_short);
}

void RunCase(uint64_t seed, PlansHarness* harness, Tally* tally) {
  Dice dice(seed);
  std::vector<v1beta1::Node> nodes;
  const int num_nodes = dice.Flip(10) ? 130 + dice.Below(40) : 1 + dice.Below(12);
  for (int i = 0; i < num_nodes; ++i) nodes.push_back(RandomNode(dice, absl::StrCat("n", i)));
  std::vector<v1beta1::Pod> pods;
  const int running = dice.Below(2 * std::min(num_nodes, 12));
  const auto run = [&](const std::string& name) {
    v1beta1::Pod pod = RandomPod(dice, name);
    pod.set_node_name(nodes[static_cast<size_t>(dice.Below(num_nodes))].name());
    return pod;
  };
  for (int i = 0; i < running; ++i) pods.push_back(run(absl::StrCat("running-", i)));
  // Equal pods, or all different.
  const bool equal = dice.Flip();
  const v1beta1::Pod same = RandomPod(dice, "same");
  std::vector<std::string> uids;
  const int count = 2 + dice.Below(12);
  for (int i = 0; i < count; ++i) {
    v1beta1::Pod pod = equal ? same : RandomPod(dice, "other");
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
  // One batch or two; between them the cluster may change.
  const auto first = dice.Flip() ? uids.end() : uids.begin() + 1 + dice.Below(count - 1);
  RunBatch({uids.begin(), first}, static_cast<uint32_t>(num_nodes), seed, harness, &offset, tally);
  if (first == uids.end() || ::testing::Test::HasFatalFailure()) return;
  if (running > 0 && dice.Flip()) harness->RemovePod("default/running-0");
  if (dice.Flip()) harness->UpsertPod(run("new"));
  // New nodes; the remaining ones have another share of the images.
  for (int slot = dice.Flip(4) ? 0 : num_nodes; slot < num_nodes; ++slot) {
    if (dice.Flip())
      harness->SetNode(static_cast<size_t>(slot), RandomNode(dice, absl::StrCat("n", slot)));
  }
  RunBatch({first, uids.end()}, static_cast<uint32_t>(num_nodes), seed, harness, &offset, tally);
}

void RunAll(const std::vector<std::string>& plugins, int cases) {
  PlansHarness harness(plugins);
  Tally tally;
  for (int seed = 0; seed < cases; ++seed) {
    RunCase(static_cast<uint64_t>(seed), &harness, &tally);
    if (::testing::Test::HasFatalFailure()) return;
  }
  std::cout << tally.batches << " batches equal one-by-one placement: " << tally.placed
            << " pods placed, all pods of " << tally.whole << " batches, a part of "
            << tally.cut_short << "\n";
  EXPECT_GT(tally.whole, cases / 10);
  EXPECT_GT(tally.cut_short, cases / 10);
}

TEST(BatchesTest, DefaultPluginsPlaceManyAsOneByOne) { RunAll(DefaultPlugins(), 10000); }

TEST(BatchesTest, AllPluginsPlaceManyAsOneByOne) { RunAll(AllPlugins(), 5000); }

}  // namespace
}  // namespace outboard::plans
