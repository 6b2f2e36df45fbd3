#include "plugin_host/sdk/node_sets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace outboard::sdk {
namespace {

NodeBlock BlockOf(const std::vector<Slot>& slots, uint32_t place) {
  return {slots, ~uint64_t{0}, place};
}

// Nodes in this order, unique to this table.
NodeTable Nodes(std::vector<Slot> order) {
  static uint64_t generation = 0;
  NodeTable nodes;
  nodes.order = std::move(order);
  nodes.order_generation = ++generation;
  return nodes;
}

// The order from a node on, wrapping around.
std::vector<Slot> Stretch(const std::vector<Slot>& order, size_t from, size_t size) {
  std::vector<Slot> slots;
  for (size_t i = 0; i < size; ++i) slots.push_back(order[(from + i) % order.size()]);
  return slots;
}

TEST(NodeSetsTest, EveryStretchOfAnyOrder) {
  std::mt19937 random(1);
  for (const size_t nodes : {1u, 2u, 63u, 64u, 65u, 128u, 200u}) {
    std::vector<Slot> order(nodes);
    // Some slots are free.
    for (size_t i = 0; i < nodes; ++i) order[i] = static_cast<Slot>(i + i / 3);
    std::shuffle(order.begin(), order.end(), random);
    NodeSets<int> sets;
    const NodeTable table = Nodes(order);
    sets.Follow(table);
    const auto is_odd = [](Slot slot) { return slot % 2 == 1; };
    for (size_t from = 0; from < nodes; ++from) {
      for (const size_t size : {std::min<size_t>(64, nodes), std::min<size_t>(5, nodes)}) {
        const std::vector<Slot> slots = Stretch(order, from, size);
        const uint64_t bits = sets.Bits(1, BlockOf(slots, static_cast<uint32_t>(from)), is_odd);
        for (size_t i = 0; i < size; ++i) EXPECT_EQ((bits >> i) & 1, slots[i] % 2);
      }
    }
  }
}

TEST(NodeSetsTest, OtherBlocksNodeByNode) {
  NodeSets<int> sets;
  const NodeTable nodes = Nodes({4, 1, 3, 0});
  sets.Follow(nodes);
  int asked = 0;
  const auto is_three = [&](Slot slot) {
    ++asked;
    return slot == 3;
  };
  const std::vector<Slot> slots = {4, 3};
  // The last is beyond a set of four nodes.
  for (const uint32_t place : {NodeBlock::kNoPlace, 128u, 64u * 1000}) {
    EXPECT_EQ(sets.Bits(1, {slots, 3, place}, is_three), 2u);
    asked = 0;
    EXPECT_EQ(sets.Bits(1, {slots, 2, place}, is_three), 2u);
    EXPECT_EQ(asked, 1) << "only candidates";
  }
}

TEST(NodeSetsTest, SeveralSets) {
  NodeSets<int> sets;
  const NodeTable nodes = Nodes({4, 1, 3, 0});
  sets.Follow(nodes);
  for (const Slot wanted : {1, 3, 1}) {
    const auto is_wanted = [&](Slot slot) { return slot == wanted; };
    EXPECT_EQ(sets.Bits(wanted, BlockOf({1, 3}, 1), is_wanted) & 3, wanted == 1 ? 1u : 2u);
  }
}

TEST(NodeSetsTest, MadeOnceUntilSomethingChanges) {
  NodeSets<int> sets;
  int asked = 0;
  const auto is = [&](Slot slot) {
    ++asked;
    return slot == 1;
  };
  const NodeTable nodes = Nodes({0, 1});
  const auto bits = [&](const std::vector<Slot>& slots) {
    return sets.Bits(1, BlockOf(slots, 0), is) & 3;
  };
  sets.Follow(nodes);
  EXPECT_EQ(bits({0, 1}), 2u);
  const int once = asked;
  sets.Follow(nodes);
  EXPECT_EQ(bits({0, 1}), 2u);
  EXPECT_EQ(asked, once);
  sets.Forget();
  EXPECT_EQ(bits({0, 1}), 2u);
  EXPECT_EQ(asked, 2 * once);
  const NodeTable turned = Nodes({1, 0});
  sets.Follow(turned);
  EXPECT_EQ(bits({1, 0}), 1u);
  EXPECT_EQ(asked, 3 * once);
}

TEST(NodeSetsTest, TheLastAskedForStay) {
  NodeSets<int> sets;
  const NodeTable nodes = Nodes({0, 1});
  sets.Follow(nodes);
  int asked = 0;
  const auto is = [&](Slot) { return ++asked > 0; };
  const std::vector<Slot> slots = {0, 1};
  for (int key = 0; key < 100; ++key) {
    sets.Bits(key, BlockOf(slots, 0), is);
    const int before = asked;
    sets.Bits(-1, BlockOf(slots, 0), is);
    if (key > 0) {
      EXPECT_EQ(asked, before);
    }
  }
}

TEST(NodeSetsTest, NoNodes) {
  NodeSets<int> sets;
  const NodeTable none = Nodes({});
  const NodeTable one = Nodes({7});
  const auto all = [](Slot) { return true; };
  sets.Follow(none);
  EXPECT_EQ(sets.Bits(1, NodeBlock{{}, 0, 0}, all), 0u);
  sets.Follow(one);
  EXPECT_EQ(sets.Bits(1, BlockOf({7}, 0), all) & 1, 1u);
  sets.Follow(none);
  EXPECT_EQ(sets.Bits(1, NodeBlock{{}, 0, 0}, all), 0u);
}

}  // namespace
}  // namespace outboard::sdk
