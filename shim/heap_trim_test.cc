#include "shim/heap_trim.h"

#include "gtest/gtest.h"

namespace outboard::shim {
namespace {

TEST(HeapTrimTest, IsDueOnceAMinuteWhenNoPodWaits) {
  absl::Time now = absl::FromUnixSeconds(1000);
  HeapTrim trim(now);
  EXPECT_FALSE(trim.IsDue(true, now + absl::Seconds(59)));
  EXPECT_TRUE(trim.IsDue(true, now += absl::Seconds(60)));
  EXPECT_FALSE(trim.IsDue(true, now + absl::Seconds(1)));
  EXPECT_TRUE(trim.IsDue(true, now + absl::Seconds(60)));
}

TEST(HeapTrimTest, IsDueAfterTwoMinutesAlthoughPodsWait) {
  const absl::Time now = absl::FromUnixSeconds(1000);
  HeapTrim trim(now);
  EXPECT_FALSE(trim.IsDue(false, now + absl::Seconds(119)));
  EXPECT_TRUE(trim.IsDue(false, now + absl::Seconds(120)));
  EXPECT_FALSE(trim.IsDue(true, now + absl::Seconds(179)));
}

}  // namespace
}  // namespace outboard::shim
