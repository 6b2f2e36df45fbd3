#include "shim/framework/select_node.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <vector>

namespace outboard::framework {
namespace {

// Go's container/heap.Init over (score descending), written out. SelectNode is a shortcut to its
// root.
size_t RootOfGoHeap(const std::vector<int64_t>& scores) {
  std::vector<size_t> heap(scores.size());
  std::iota(heap.begin(), heap.end(), 0);
  const auto less = [&](size_t a, size_t b) { return scores[heap[a]] > scores[heap[b]]; };
  const size_t n = heap.size();
  for (size_t start = n / 2; start-- > 0;) {
    size_t i = start;
    while (true) {
      size_t child = 2 * i + 1;
      if (child >= n) break;
      if (child + 1 < n && less(child + 1, child)) ++child;
      if (!less(child, i)) break;
      std::swap(heap[i], heap[child]);
      i = child;
    }
  }
  return heap[0];
}

TEST(SelectNode, TakesTheOnlyNode) { EXPECT_EQ(SelectNode({7}), 0u); }

TEST(SelectNode, TakesTheBest) { EXPECT_EQ(SelectNode({1, 2, 9, 4}), 2u); }

TEST(SelectNode, BreaksTiesInPreorder) {
  // Indices 2 and 3 tie; 3 lies in the left subtree, which comes first.
  EXPECT_EQ(SelectNode({0, 0, 5, 5}), 3u);
}

TEST(SelectNode, EqualsGoHeapOnRandomLists) {
  std::mt19937 random(20);
  for (int round = 0; round < 20000; ++round) {
    std::vector<int64_t> scores(1 + random() % 40);
    const int64_t range = 1 + static_cast<int64_t>(random() % 6);
    for (int64_t& score : scores) score = static_cast<int64_t>(random()) % range;
    ASSERT_EQ(SelectNode(scores), RootOfGoHeap(scores)) << "round " << round;
  }
}

TEST(NumFeasibleNodesToFind, FollowsTheAdaptiveFormula) {
  EXPECT_EQ(NumFeasibleNodesToFind(0, 0), 0u);
  EXPECT_EQ(NumFeasibleNodesToFind(99, 5), 99u);
  EXPECT_EQ(NumFeasibleNodesToFind(100, 0), 100u);
  EXPECT_EQ(NumFeasibleNodesToFind(1000, 0), 420u);
  EXPECT_EQ(NumFeasibleNodesToFind(2000, 0), 680u);
  EXPECT_EQ(NumFeasibleNodesToFind(5000, 0), 500u);
  EXPECT_EQ(NumFeasibleNodesToFind(15000, 0), 750u);
}

TEST(NumFeasibleNodesToFind, HonoursAPercentage) {
  EXPECT_EQ(NumFeasibleNodesToFind(1000, 40), 400u);
  EXPECT_EQ(NumFeasibleNodesToFind(1000, 100), 1000u);
  EXPECT_EQ(NumFeasibleNodesToFind(200, 10), 100u);
}

}  // namespace
}  // namespace outboard::framework
