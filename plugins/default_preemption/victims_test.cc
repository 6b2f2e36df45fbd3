#include "plugins/default_preemption/victims.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace outboard::default_preemption {
namespace {

using ::testing::ElementsAre;

class VictimsTest : public ::testing::Test {
 protected:
  sdk::PodRecord* Pod(const std::string& name, int32_t priority, int64_t start) {
    pods_.push_back(std::make_unique<sdk::PodRecord>());
    pods_.back()->pod.set_name(name);
    pods_.back()->pod.set_priority(priority);
    pods_.back()->pod.set_start_unix_seconds(start);
    return pods_.back().get();
  }
  static std::vector<std::string> Names(const std::vector<sdk::PodRecord*>& pods) {
    std::vector<std::string> names;
    for (const sdk::PodRecord* pod : pods) names.push_back(pod->pod.name());
    return names;
  }
  std::vector<std::unique_ptr<sdk::PodRecord>> pods_;
};

TEST_F(VictimsTest, ImportanceIsPriorityThenAge) {
  std::vector<sdk::PodRecord*> pods = {Pod("low", -1, 1), Pod("young", 5, 20), Pod("old", 5, 10),
                                       Pod("new", 5, 0), Pod("top", 6, 0)};
  SortByImportance(&pods);
  EXPECT_THAT(Names(pods), ElementsAre("top", "old", "young", "new", "low"));
}

TEST_F(VictimsTest, EqualsStayInOrderUnlessTheyHaveNotStarted) {
  std::vector<sdk::PodRecord*> started = {Pod("a", 1, 7), Pod("b", 1, 7), Pod("c", 1, 7)};
  SortByImportance(&started);
  EXPECT_THAT(Names(started), ElementsAre("a", "b", "c"));
  std::vector<sdk::PodRecord*> pending = {Pod("a", 1, 0), Pod("b", 1, 0), Pod("c", 1, 0)};
  SortByImportance(&pending);
  EXPECT_THAT(Names(pending), ElementsAre("c", "b", "a"));
}

TEST_F(VictimsTest, ACandidateWhoseVictimsHaveNotStartedIsTheYoungest) {
  std::vector<sdk::PreemptionCandidate> candidates = {{1, {Pod("a", 1, 900)}, 0},
                                                      {2, {Pod("b", 1, 0)}, 0}};
  SortByPreference(&candidates);
  EXPECT_EQ(candidates[0].slot, 2u);
}

}  // namespace
}  // namespace outboard::default_preemption
