#include "shim/hostless_leader.h"

#include "gtest/gtest.h"

namespace outboard::shim {
namespace {

constexpr absl::Duration kTimeout = HostlessLeader::kTimeout;

class HostlessLeaderTest : public ::testing::Test {
 protected:
  bool GivesUp(bool leads, bool serves, absl::Duration later) {
    now_ += later;
    return leader_.GivesUp(leads, serves, now_);
  }
  HostlessLeader leader_;
  absl::Time now_ = absl::FromUnixSeconds(1000);
};

TEST_F(HostlessLeaderTest, GivesUpOnceItsHostsAreGoneForLong) {
  EXPECT_FALSE(GivesUp(true, true, absl::ZeroDuration()));
  EXPECT_FALSE(GivesUp(true, false, absl::Hours(1))) << "the hosts have only just gone";
  EXPECT_FALSE(GivesUp(true, false, kTimeout));
  EXPECT_TRUE(GivesUp(true, false, absl::Seconds(1)));
}

TEST_F(HostlessLeaderTest, AHostThatReturnsResetsTheTime) {
  EXPECT_FALSE(GivesUp(true, true, absl::ZeroDuration()));
  EXPECT_FALSE(GivesUp(true, false, absl::Seconds(1)));
  EXPECT_FALSE(GivesUp(true, true, kTimeout));
  EXPECT_FALSE(GivesUp(true, false, absl::Seconds(1)));
  EXPECT_FALSE(GivesUp(true, false, kTimeout));
  EXPECT_TRUE(GivesUp(true, false, absl::Seconds(1)));
}

TEST_F(HostlessLeaderTest, ALeaderThatNeverHadAHostKeepsTheLease) {
  EXPECT_FALSE(GivesUp(true, false, absl::ZeroDuration()));
  EXPECT_FALSE(GivesUp(true, false, absl::Hours(1)));
}

TEST_F(HostlessLeaderTest, AStandbyHasNothingToGiveUp) {
  EXPECT_FALSE(GivesUp(false, true, absl::ZeroDuration()));
  EXPECT_FALSE(GivesUp(false, false, absl::Hours(1)));
  EXPECT_FALSE(GivesUp(true, false, absl::Hours(1))) << "it has not led with hosts";
}

}  // namespace
}  // namespace outboard::shim
