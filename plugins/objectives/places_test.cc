#include "plugins/objectives/places.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

namespace outboard::objectives {
namespace {

class PlacesTest : public ::testing::Test {
 protected:
  void Set(sdk::Slot slot, const std::string& rack, const std::string& zone,
           const std::string& data = "") {
    sdk::StringMap labels;
    if (!rack.empty()) labels["rack"] = rack;
    if (!zone.empty()) labels["zone"] = zone;
    if (!data.empty()) labels["data.outboard/" + data] = "true";
    places_.Set(slot, labels, "node", &malformed_);
  }
  Targets Of(const std::vector<sdk::Slot>& slots) const {
    Targets targets;
    for (const sdk::Slot slot : slots) places_.Add(slot, &targets);
    return targets;
  }

  sdk::MalformedValues malformed_{"Objectives"};
  Places places_{{"rack", "zone"}};
};

TEST_F(PlacesTest, ClosenessFallsLevelByLevel) {
  Set(0, "r1", "a");
  Set(1, "r1", "a");
  Set(2, "r2", "a");
  Set(3, "r3", "b");
  const Targets target = Of({0});
  EXPECT_DOUBLE_EQ(places_.NearestCloseness(target, 0), 1);
  EXPECT_DOUBLE_EQ(places_.NearestCloseness(target, 1), 2.0 / 3);
  EXPECT_DOUBLE_EQ(places_.NearestCloseness(target, 2), 1.0 / 3);
  EXPECT_DOUBLE_EQ(places_.NearestCloseness(target, 3), 0);
  const Targets all = Of({0, 1, 2, 3});
  EXPECT_DOUBLE_EQ(places_.NearestCloseness(all, 3), 1);
  EXPECT_DOUBLE_EQ(places_.MeanCloseness(all, 3), 1.0 / 4);
  EXPECT_DOUBLE_EQ(places_.MeanCloseness(all, 0), (1 + 2.0 / 3 + 1.0 / 3) / 4);
}

TEST_F(PlacesTest, ARackOfTheSameNameInAnotherZoneIsAnother) {
  Set(0, "r1", "a");
  Set(1, "r1", "b");
  EXPECT_DOUBLE_EQ(places_.NearestCloseness(Of({0}), 1), 0);
}

TEST_F(PlacesTest, NodesWithoutALabelShareNothingThere) {
  Set(0, "", "");
  Set(1, "", "");
  Set(2, "", "a");
  Set(3, "", "a");
  EXPECT_DOUBLE_EQ(places_.NearestCloseness(Of({0}), 1), 0);
  EXPECT_DOUBLE_EQ(places_.NearestCloseness(Of({0}), 0), 1);
  EXPECT_DOUBLE_EQ(places_.NearestCloseness(Of({2}), 3), 1.0 / 3);
  EXPECT_DOUBLE_EQ(places_.NearestCloseness(Targets(), 3), 0);
  EXPECT_DOUBLE_EQ(places_.MeanCloseness(Targets(), 3), 0);
}

TEST_F(PlacesTest, DataIsWithinALevelOrNearer) {
  Set(0, "r1", "a", "d");
  Set(1, "r1", "a");
  Set(2, "r2", "a");
  Set(3, "r3", "b");
  const Targets holders = Of({0});
  EXPECT_TRUE(places_.IsWithin(holders, 0, 0));
  EXPECT_FALSE(places_.IsWithin(holders, 1, 0));
  EXPECT_TRUE(places_.IsWithin(holders, 1, 1));
  EXPECT_FALSE(places_.IsWithin(holders, 2, 1));
  EXPECT_TRUE(places_.IsWithin(holders, 2, 2));
  EXPECT_FALSE(places_.IsWithin(holders, 3, 2));
  EXPECT_FALSE(places_.IsWithin(Targets(), 0, 2));
}

TEST_F(PlacesTest, HoldersComeAndGo) {
  EXPECT_EQ(places_.HoldersOf("d")->total, 0);
  Set(0, "r1", "a", "d");
  Set(1, "r1", "a", "d");
  EXPECT_EQ(places_.HoldersOf("d")->total, 2);
  Set(0, "r1", "a", "other");
  EXPECT_EQ(places_.HoldersOf("d")->total, 1);
  places_.Clear(1);
  EXPECT_EQ(places_.HoldersOf("d")->total, 0);
  EXPECT_EQ(places_.HoldersOf("other")->total, 1);
  places_.Reset();
  EXPECT_EQ(places_.HoldersOf("other")->total, 0);
}

TEST_F(PlacesTest, DataThatCannotBeReadIsNotHeld) {
  sdk::StringMap labels;
  labels["data.outboard/a"] = "yes";
  labels["data.outboard/b"] = "false";
  labels["data.outboard/"] = "true";
  places_.Set(0, labels, "node n", &malformed_);
  EXPECT_EQ(places_.HoldersOf("a")->total, 0);
  EXPECT_EQ(places_.HoldersOf("b")->total, 0);
  EXPECT_EQ(places_.HoldersOf("")->total, 0);
  EXPECT_EQ(malformed_.warned(), 1);
}

// Counting by domain equals counting over all pairs.
TEST_F(PlacesTest, CountsAgreeWithPairs) {
  std::mt19937 random(7);
  const std::vector<std::string> racks = {"", "r1", "r2"}, zones = {"", "a", "b"};
  for (int round = 0; round < 200; ++round) {
    std::vector<std::pair<std::string, std::string>> where;
    for (sdk::Slot slot = 0; slot < 12; ++slot) {
      where.emplace_back(racks[random() % 3], zones[random() % 3]);
      Set(slot, where.back().first, where.back().second);
    }
    std::vector<sdk::Slot> targets;
    for (int i = 0; i < 5; ++i) targets.push_back(random() % 12);
    const Targets counted = Of(targets);
    for (sdk::Slot slot = 0; slot < 12; ++slot) {
      double sum = 0, nearest = 0;
      for (const sdk::Slot target : targets) {
        const bool same_zone = where[slot].second == where[target].second;
        double closeness = 0;
        if (slot == target) {
          closeness = 1;
        } else if (same_zone && !where[slot].first.empty() &&
                   where[slot].first == where[target].first) {
          closeness = 2.0 / 3;
        } else if (same_zone && !where[slot].second.empty()) {
          closeness = 1.0 / 3;
        }
        sum += closeness;
        nearest = std::max(nearest, closeness);
      }
      EXPECT_DOUBLE_EQ(places_.NearestCloseness(counted, slot), nearest);
      EXPECT_NEAR(places_.MeanCloseness(counted, slot), sum / 5, 1e-9);
    }
  }
}

}  // namespace
}  // namespace outboard::objectives
