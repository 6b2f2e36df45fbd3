#include "plugin_host/sdk/preemption.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "plugin_host/sdk/group_preemption.h"

namespace outboard::sdk {
namespace {

using ::testing::ElementsAre;

class PreemptionTest : public ::testing::Test {
 protected:
  PodRecord* Pod(const std::string& name, int32_t priority, int64_t start) {
    pods_.push_back(std::make_unique<PodRecord>());
    pods_.back()->pod.set_name(name);
    pods_.back()->pod.set_priority(priority);
    pods_.back()->pod.set_start_unix_seconds(start);
    return pods_.back().get();
  }
  static std::vector<std::string> Names(const std::vector<PodRecord*>& pods) {
    std::vector<std::string> names;
    for (const PodRecord* pod : pods) names.push_back(pod->pod.name());
    return names;
  }
  std::vector<std::unique_ptr<PodRecord>> pods_;
};

TEST_F(PreemptionTest, ImportanceIsPriorityThenAge) {
  std::vector<PodRecord*> pods = {Pod("low", -1, 1), Pod("young", 5, 20), Pod("old", 5, 10),
                                  Pod("new", 5, 0), Pod("top", 6, 0)};
  SortByImportance(&pods);
  EXPECT_THAT(Names(pods), ElementsAre("top", "old", "young", "new", "low"));
}

TEST_F(PreemptionTest, EqualsStayInOrderUnlessTheyHaveNotStarted) {
  std::vector<PodRecord*> started = {Pod("a", 1, 7), Pod("b", 1, 7), Pod("c", 1, 7)};
  SortByImportance(&started);
  EXPECT_THAT(Names(started), ElementsAre("a", "b", "c"));
  std::vector<PodRecord*> pending = {Pod("a", 1, 0), Pod("b", 1, 0), Pod("c", 1, 0)};
  SortByImportance(&pending);
  EXPECT_THAT(Names(pending), ElementsAre("c", "b", "a"));
}

TEST_F(PreemptionTest, VictimsOfAGroupAreThoseOnItsNodes) {
  PodRecord *member = Pod("member", 9, 0), *here = Pod("here", 1, 1), *away = Pod("away", 1, 2);
  here->slot = 3;
  away->slot = 4;
  const std::vector<VictimUnit> units = {{{away}}, {{here, away}}};
  GroupPreemption preemption;
  EXPECT_TRUE(SplitVictims({{{member, 3}}, {1}}, units, &preemption).ok());
  EXPECT_THAT(preemption.victims, ElementsAre(here));
  EXPECT_THAT(preemption.companions, ElementsAre(away));
  // Only pods elsewhere would have to leave, beside others here.
  GroupPreemption elsewhere;
  EXPECT_EQ(SplitVictims({{{member, 3}}, {0, 1}}, units, &elsewhere).code(),
            v1beta1::CODE_UNSCHEDULABLE);
  // No pod has to leave these nodes.
  GroupPreemption none;
  EXPECT_EQ(SplitVictims({{{member, 3}}, {0}}, units, &none).code(), v1beta1::CODE_UNSCHEDULABLE);
  EXPECT_EQ(SplitVictims({{{member, 3}}, {}}, units, &none).code(), v1beta1::CODE_UNSCHEDULABLE);
}

}  // namespace
}  // namespace outboard::sdk
