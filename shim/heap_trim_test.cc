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

TEST(HeapTrimTest, IsDueAfterTenMinutesAlthoughPodsWait) {
  const absl::Time now = absl::FromUnixSeconds(1000);
  HeapTrim trim(now);
  EXPECT_FALSE(trim.IsDue(false, now + absl::Seconds(599)));
  EXPECT_TRUE(trim.IsDue(false, now + absl::Seconds(600)));
  EXPECT_FALSE(trim.IsDue(true, now + absl::Seconds(659)));
}

}  // namespace
}  // namespace outboard::shim
