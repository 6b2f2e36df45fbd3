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

}  // namespace
}  // namespace outboard::sdk
