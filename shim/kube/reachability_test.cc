#include "shim/kube/reachability.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace outboard::kube {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class ReachabilityTest : public ::testing::Test {
 protected:
  static absl::Time At(double seconds) { return absl::UnixEpoch() + absl::Seconds(seconds); }

  std::vector<std::string> lines_;
  Reachability reachability_{"https://api:6443",
                             [this](const std::string& line) { lines_.push_back(line); }};
};

TEST_F(ReachabilityTest, OneLostRequestIsNotAnOutage) {
  reachability_.OnFailure("Connection refused", At(0));
  EXPECT_TRUE(reachability_.Check(At(1)).ok());
  reachability_.OnAnswer(At(2));
  reachability_.OnFailure("Connection refused", At(3));
  EXPECT_TRUE(reachability_.Check(At(4)).ok());
  EXPECT_THAT(lines_, IsEmpty());
}

TEST_F(ReachabilityTest, SaysSinceWhenAndWhy) {
  reachability_.OnFailure("Timeout was reached", At(0));
  reachability_.OnFailure("Connection refused", At(2.5));
  EXPECT_EQ(reachability_.Check(At(90)),
            absl::UnavailableError(
                "API server https://api:6443 has not answered for 1m30s: Connection refused"));
  reachability_.OnAnswer(At(100));
  EXPECT_TRUE(reachability_.Check(At(101)).ok());
  reachability_.OnAnswer(At(102));
  EXPECT_THAT(
      lines_,
      ElementsAre(
          "API server https://api:6443 has not answered for 2s: Connection refused; trying again",
          "API server https://api:6443 answers again, after 1m40s"));
}

// 20 informers and a lease that try again every second for 20 minutes.
TEST_F(ReachabilityTest, LogsAtGrowingIntervals) {
  std::vector<int> logged;
  for (int second = 0; second < 1200; ++second) {
    for (int client = 0; client < 21; ++client)
      reachability_.OnFailure("Connection refused", At(second));
    if (lines_.size() > logged.size()) logged.push_back(second);
  }
  EXPECT_THAT(logged, ElementsAre(0, 10, 30, 70, 150, 310, 610, 910));
  EXPECT_EQ(lines_.size(), logged.size());
}

}  // namespace
}  // namespace outboard::kube
