#include "plugins/default_preemption/victims.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace outboard::default_preemption {
namespace {

class VictimsTest : public ::testing::Test {
 protected:
  sdk::PodRecord* Pod(const std::string& name, int32_t priority, int64_t start) {
    pods_.push_back(std::make_unique<sdk::PodRecord>());
    pods_.back()->pod.set_name(name);
    pods_.back()->pod.set_priority(priority);
    pods_.back()->pod.set_start_unix_seconds(start);
    return pods_.back().get();
  }
  std::vector<std::unique_ptr<sdk::PodRecord>> pods_;
};

TEST_F(VictimsTest, ACandidateWithUnstartedVictimsIsTheYoungest) {
  std::vector<sdk::PreemptionCandidate> candidates = {{1, {Pod("a", 1, 900)}, {}, 0},
                                                      {2, {Pod("b", 1, 0)}, {}, 0}};
  SortByPreference(&candidates);
  EXPECT_EQ(candidates[0].slot, 2u);
}

}  // namespace
}  // namespace outboard::default_preemption
