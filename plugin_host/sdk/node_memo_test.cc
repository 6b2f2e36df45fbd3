#include "plugin_host/sdk/node_memo.h"

#include <gtest/gtest.h>

namespace outboard::sdk {
namespace {

TEST(NodeMemoTest, MadeAgainWhenTheNodeHasChanged) {
  NodeTable nodes;
  nodes.generation = {5, 6};
  NodeMemo<int> memo;
  int made = 0;
  const auto make = [&] { return ++made; };
  EXPECT_EQ(memo.Of(nodes, 1, make), 1);
  EXPECT_EQ(memo.Of(nodes, 1, make), 1);
  EXPECT_EQ(memo.Of(nodes, 0, make), 2);
  nodes.generation[1] = 7;
  EXPECT_EQ(memo.Of(nodes, 1, make), 3);
  EXPECT_EQ(memo.Of(nodes, 0, make), 2);
  nodes.generation.push_back(8);
  EXPECT_EQ(memo.Of(nodes, 2, make), 4);
  EXPECT_EQ(memo.Of(nodes, 1, make), 3);
  memo.Clear();
  EXPECT_EQ(memo.Of(nodes, 1, make), 5);
}

TEST(NodeMemoTest, ManyNodesInTheirOrder) {
  NodeTable nodes;
  nodes.generation = {5, 6, 7};
  NodeMemo<int64_t> memo;
  std::vector<Slot> made;
  const auto ask = [&](const std::vector<Slot>& slots) {
    made.clear();
    std::vector<int64_t> values(slots.size());
    memo.Of(nodes, slots, absl::MakeSpan(values), [&](Slot slot) {
      made.push_back(slot);
      return static_cast<int64_t>(nodes.generation[slot] * 10);
    });
    return values;
  };
  EXPECT_EQ(ask({2, 0}), (std::vector<int64_t>{70, 50}));
  EXPECT_EQ(made, (std::vector<Slot>{2, 0}));
  nodes.generation[2] = 9;
  nodes.generation.push_back(8);
  EXPECT_EQ(ask({0, 1, 2, 3}), (std::vector<int64_t>{50, 60, 90, 80}));
  EXPECT_EQ(made, (std::vector<Slot>{1, 2, 3})) << "only what changed, and what is new";
}

}  // namespace
}  // namespace outboard::sdk
