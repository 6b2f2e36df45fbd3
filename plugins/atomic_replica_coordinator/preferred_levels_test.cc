#include "plugins/atomic_replica_coordinator/preferred_levels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plugin_host/sdk/testing/builders.h"
#include "plugin_host/sdk/testing/plugin_harness.h"
#include "plugins/atomic_replica_coordinator/atomic_replica_coordinator.h"

namespace outboard::atomic_replica_coordinator::preferred_levels_test {
namespace {

using sdk::testing::PluginHarness;
using sdk::testing::PodBuilder;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kLevels[] = R"({"preferredLevels": ["leaf,model", "model"]})";

class PreferredLevelsTest : public testing::Test {
 protected:
  void Start(const std::string& args) {
    auto harness = PluginHarness::Create(Descriptor(), args);
    ASSERT_TRUE(harness.ok()) << harness.status();
    harness_ = *std::move(harness);
  }
  // The group of the last member.
  std::optional<sdk::GroupToPlace> GroupOf(const std::vector<v1beta1::Pod>& members) {
    for (const v1beta1::Pod& member : members) harness_->AddPod(member);
    sdk::PluginState state;
    const sdk::Attempt attempt(1, sdk::PodView(harness_->cluster().FindPod(members.back().uid())),
                               harness_->cluster(), absl::UnixEpoch(), &state);
    return dynamic_cast<sdk::GroupPlugin&>(harness_->plugin()).Group(attempt);
  }
  static v1beta1::Pod Member(const std::string& name, const char* gpus) {
    PodBuilder pod(name);
    pod.Label("job-name", "train").Annotation("outboard/min-replicas", "2");
    if (gpus != nullptr) pod.Requests({{"nvidia.com/gpu", gpus}});
    return pod;
  }

  std::unique_ptr<PluginHarness> harness_;
};

TEST_F(PreferredLevelsTest, AGangWithGpusStaysTogetherInTheOrderOfTheLevels) {
  Start(kLevels);
  const auto group = GroupOf({Member("a", "8"), Member("b", "8")});
  ASSERT_TRUE(group.has_value());
  EXPECT_THAT(group->topology.required, IsEmpty());
  EXPECT_THAT(group->topology.preferred, ElementsAre("leaf,model", "model"));
  EXPECT_TRUE(group->topology.best_score_first);
}

TEST_F(PreferredLevelsTest, OneMemberWithGpusIsEnough) {
  Start(kLevels);
  EXPECT_THAT(GroupOf({Member("launcher", nullptr), Member("worker", "8")})->topology.preferred,
              ElementsAre("leaf,model", "model"));
}

TEST_F(PreferredLevelsTest, AGangWithoutGpusGoesAnywhere) {
  Start(kLevels);
  EXPECT_THAT(GroupOf({Member("a", nullptr), Member("b", nullptr)})->topology.preferred, IsEmpty());
}

TEST_F(PreferredLevelsTest, WithoutTheArgumentThereIsNoLevel) {
  Start("");
  const auto group = GroupOf({Member("a", "8"), Member("b", "8")});
  EXPECT_THAT(group->topology.preferred, IsEmpty());
  EXPECT_FALSE(group->topology.best_score_first);
}

TEST(PreferredLevelsArgs, TheGroupsOwnTopologyComesFirst) {
  sdk::ArgsReader reader(kLevels);
  const PreferredLevels levels(reader.root());
  sdk::PodRecord pod;
  pod.pod = PodBuilder("a").Requests({{"nvidia.com/gpu", "1"}});
  sdk::GroupToPlace group;
  group.pending = {&pod};
  group.topology.required = "rack";
  levels.AddTo(&group);
  EXPECT_THAT(group.topology.preferred, IsEmpty());
  group.topology = {};
  group.topology.preferred = {"rack"};
  levels.AddTo(&group);
  EXPECT_THAT(group.topology.preferred, ElementsAre("rack"));
  EXPECT_FALSE(group.topology.best_score_first);
}

TEST(PreferredLevelsArgs, Faults) {
  sdk::ArgsReader reader(
      R"({"preferredLevels": ["leaf", "a,b c", "leaf"], "gpuResourceNames": []})");
  const PreferredLevels levels(reader.root());
  std::vector<std::string> fields;
  for (const sdk::ArgsProblem& problem : reader.Finish()) fields.push_back(problem.field);
  EXPECT_THAT(fields, testing::UnorderedElementsAre("gpuResourceNames", "preferredLevels[1]",
                                                    "preferredLevels[2]"));
}

}  // namespace
}  // namespace outboard::atomic_replica_coordinator::preferred_levels_test
