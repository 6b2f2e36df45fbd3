#include "shim/heartbeat.h"

#include <gtest/gtest.h>

namespace outboard::shim {
namespace {

TEST(HeartbeatTest, AThreadWithoutANewTurnHangs) {
  const absl::Time began = absl::FromUnixSeconds(1000);
  Heartbeat heartbeat(began);
  EXPECT_TRUE(heartbeat.Check(absl::Seconds(20), began + absl::Seconds(20)).ok());
  const absl::Status hung = heartbeat.Check(absl::Seconds(20), began + absl::Milliseconds(21500));
  EXPECT_EQ(hung.message(), "the scheduling thread has hung for 21s");
  heartbeat.Beat(began + absl::Seconds(22));
  EXPECT_TRUE(heartbeat.Check(absl::Seconds(20), began + absl::Seconds(23)).ok());
}

}  // namespace
}  // namespace outboard::shim
