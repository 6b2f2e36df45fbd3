#include "plugins/atomic_replica_coordinator/topology_tiers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace outboard::atomic_replica_coordinator {
namespace {

using sdk::GroupDialect;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kThree[] = R"({"topologyTiers": [
    {"tier": 3, "tierName": "zone", "label": "topology.kubernetes.io/zone"},
    {"tier": 1, "tierName": "nvlink", "label": "nvidia.com/gpu.clique"},
    {"tier": 2, "label": "topology.kubernetes.io/rack"}]})";

TopologyTiers TiersOf(const char* args) {
  sdk::ArgsReader reader(args);
  TopologyTiers tiers(reader.root());
  EXPECT_THAT(reader.Finish(), IsEmpty());
  return tiers;
}
sdk::TopologyPreference Hard(const char* tier) {
  sdk::TopologyPreference preference;
  preference.required = {tier, "spec.networkTopology.highestTierAllowed"};
  return preference;
}
sdk::TopologyPreference Soft(const char* tier) {
  sdk::TopologyPreference preference;
  preference.preferred = {tier, "spec.networkTopology.highestTierName"};
  return preference;
}

TEST(TopologyTiers, TheClosestFirstUpToTheHighestAllowed) {
  const TopologyTiers tiers = TiersOf(kThree);
  auto levels = tiers.LevelsOf(GroupDialect::kVolcano, Hard("2"));
  EXPECT_EQ(levels->required, "topology.kubernetes.io/rack");
  EXPECT_THAT(levels->preferred, ElementsAre("nvidia.com/gpu.clique"));
  levels = tiers.LevelsOf(GroupDialect::kVolcano, Hard("nvlink"));
  EXPECT_EQ(levels->required, "nvidia.com/gpu.clique");
  EXPECT_THAT(levels->preferred, IsEmpty());
  levels = tiers.LevelsOf(GroupDialect::kVolcano, Soft("zone"));
  EXPECT_EQ(levels->required, "");
  EXPECT_THAT(levels->preferred, ElementsAre("nvidia.com/gpu.clique", "topology.kubernetes.io/rack",
                                             "topology.kubernetes.io/zone"));
}

TEST(TopologyTiers, AnUnknownHardTierIsNotIgnored) {
  for (const char* args : {kThree, "{}"}) {
    const TopologyTiers tiers = TiersOf(args);
    EXPECT_EQ(tiers.LevelsOf(GroupDialect::kVolcano, Hard("4")).status().message(),
              "spec.networkTopology.highestTierAllowed: tier \"4\" is none of topologyTiers in the "
              "plugin's args");
    EXPECT_THAT(tiers.LevelsOf(GroupDialect::kVolcano, Soft("4"))->preferred, IsEmpty());
    EXPECT_EQ(tiers.LevelsOf(GroupDialect::kVolcano, {})->required, "");
  }
}

TEST(TopologyTiers, OthersNameLabels) {
  sdk::TopologyPreference preference = Hard("zone");
  preference.preferred = {"rack", ""};
  const auto levels = TiersOf(kThree).LevelsOf(GroupDialect::kKai, preference);
  EXPECT_EQ(levels->required, "zone");
  EXPECT_THAT(levels->preferred, ElementsAre("rack"));
}

TEST(TopologyTiers, FaultsOfTheArgs) {
  sdk::ArgsReader reader(R"({"topologyTiers": [
      {"tier": 1, "tierName": "a", "label": "x"}, {"tier": 1, "tierName": "a", "label": ""},
      {"tierName": "b", "label": "y"}]})");
  const TopologyTiers tiers(reader.root());
  std::vector<std::string> problems;
  for (const sdk::ArgsProblem& problem : reader.Finish())
    problems.push_back(problem.field + ": " + problem.message);
  EXPECT_THAT(problems,
              ElementsAre("topologyTiers[1].tier: Duplicate value: 1",
                          "topologyTiers[1].tierName: Duplicate value: \"a\"",
                          "topologyTiers[1].label: Required value",
                          "topologyTiers[2].tier: Invalid value: -1: not in valid range [0, "
                          "2147483647]"));
}

}  // namespace
}  // namespace outboard::atomic_replica_coordinator
