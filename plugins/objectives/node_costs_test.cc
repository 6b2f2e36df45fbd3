#include "plugins/objectives/node_costs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace outboard::objectives {
namespace {

using sdk::Slot;

NodeCosts CostsOf(const std::vector<double>& by_slot) {
  NodeCosts costs;
  for (Slot slot = 0; slot < by_slot.size(); ++slot) costs.Set(slot, by_slot[slot]);
  return costs;
}

TEST(NodeCostsTest, MedianIsTheLowerOfTwoThatAreKnown) {
  NodeCosts costs = CostsOf({4, NodeCosts::kUnknown, 1, 3, 2, NodeCosts::kUnknown});
  EXPECT_EQ(costs.Median({0, 1, 2, 3, 4, 5}), 2);
  EXPECT_EQ(costs.Median({0, 2, 3}), 3);
  EXPECT_EQ(costs.Median({0, 1}), 4);
  EXPECT_EQ(costs.Median({1, 5}), std::nullopt);
  EXPECT_EQ(costs.Median({}), std::nullopt);
}

TEST(NodeCostsTest, ChangesCount) {
  NodeCosts costs = CostsOf({4, 2});
  EXPECT_EQ(costs.Median({0, 1}), 2);
  costs.Set(1, 9);
  costs.Set(2, 5);
  EXPECT_EQ(costs.At(1), 9);
  EXPECT_EQ(costs.Median({0, 1, 2}), 5);
  costs.Reset();
  costs.Set(0, 7);
  EXPECT_EQ(costs.Median({0}), 7);
}

TEST(NodeCostsTest, TermsOfAllAreThoseOfEach) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<double> by_slot(1 + random() % 50);
    for (double& cost : by_slot) cost = static_cast<double>(random() % 12) - 1;
    NodeCosts costs = CostsOf(by_slot);
    std::vector<Slot> nodes;
    for (Slot slot = 0; slot < by_slot.size(); ++slot) {
      if (random() % 2 == 0) nodes.push_back(slot);
    }
    const auto median = costs.Median(nodes);
    if (!median) continue;
    std::vector<double> weighed(nodes.size());
    costs.WeighTerms(nodes, *median, 0.3, absl::MakeSpan(weighed));
    for (size_t i = 0; i < nodes.size(); ++i)
      EXPECT_EQ(weighed[i], 0.3 * NodeCosts::Term(by_slot[nodes[i]], *median));
  }
}

TEST(NodeCostsTest, Terms) {
  EXPECT_EQ(NodeCosts::Term(2, 2), 0.5);
  EXPECT_EQ(NodeCosts::Term(0, 2), 1);
  EXPECT_EQ(NodeCosts::Term(0, 0), 1);
  EXPECT_EQ(NodeCosts::Term(NodeCosts::kUnknown, 2), 0);
}

}  // namespace
}  // namespace outboard::objectives
