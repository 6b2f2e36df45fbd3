#include "plugin_host/sdk/node_memo.h"

#include <gtest/gtest.h>

namespace outboard::sdk {
namespace {

void Change(Slot slot, NodeTable* nodes) {
  if (slot >= nodes->generation.size()) nodes->generation.resize(slot + 1);
  ++nodes->generation[slot];
  nodes->changes.Add(slot);
}

TEST(NodeMemoTest, MadeAgainWhenTheNodeHasChanged) {
  NodeTable nodes;
  Change(0, &nodes);
  Change(1, &nodes);
  NodeMemo<int> memo;
  int made = 0;
  const auto make = [&] { return ++made; };
  EXPECT_EQ(memo.Of(nodes, 1, make), 1);
  EXPECT_EQ(memo.Of(nodes, 1, make), 1);
  EXPECT_EQ(memo.Of(nodes, 0, make), 2);
  Change(1, &nodes);
  EXPECT_EQ(memo.Of(nodes, 1, make), 3);
  EXPECT_EQ(memo.Of(nodes, 0, make), 2);
  Change(2, &nodes);
  EXPECT_EQ(memo.Of(nodes, 2, make), 4);
  EXPECT_EQ(memo.Of(nodes, 1, make), 3);
  memo.Clear();
  EXPECT_EQ(memo.Of(nodes, 1, make), 5);
}

TEST(NodeMemoTest, ComputedAgainIfTheChangesAreUnknown) {
  NodeTable nodes;
  for (const Slot slot : {0u, 1u}) Change(slot, &nodes);
  NodeMemo<int> memo;
  int made = 0;
  const auto make = [&] { return ++made; };
  EXPECT_EQ(memo.Of(nodes, 0, make), 1);
  EXPECT_EQ(memo.Of(nodes, 1, make), 2);
  // As many changes of the other as are kept, and one more.
  for (uint64_t i = 0; i < NodeChanges::kKept; ++i) Change(1, &nodes);
  EXPECT_EQ(memo.Of(nodes, 0, make), 1);
  for (uint64_t i = 0; i <= NodeChanges::kKept; ++i) Change(1, &nodes);
  EXPECT_EQ(memo.Of(nodes, 0, make), 3);
  nodes.changes.AddAll();
  EXPECT_EQ(memo.Of(nodes, 0, make), 4);
}

TEST(NodeMemoTest, ManyNodesInTheirOrder) {
  NodeTable nodes;
  for (const Slot slot : {0u, 1u, 2u}) Change(slot, &nodes);
  NodeMemo<int64_t> memo;
  std::vector<Slot> made;
  const auto ask = [&](const std::vector<Slot>& slots) {
    made.clear();
    std::vector<int64_t> values(slots.size());
    memo.Of(nodes, slots, absl::MakeSpan(values), [&](Slot slot) {
      made.push_back(slot);
      return static_cast<int64_t>(nodes.generation[slot] * 10 + slot);
    });
    return values;
  };
  EXPECT_EQ(ask({2, 0}), (std::vector<int64_t>{12, 10}));
  EXPECT_EQ(made, (std::vector<Slot>{2, 0}));
  Change(2, &nodes);
  Change(3, &nodes);
  EXPECT_EQ(ask({0, 1, 2, 3}), (std::vector<int64_t>{10, 11, 22, 13}));
  EXPECT_EQ(made, (std::vector<Slot>{1, 2, 3})) << "only changed and new nodes";
}

}  // namespace
}  // namespace outboard::sdk
