#include "shim/kube/token_bucket.h"

#include "gtest/gtest.h"

namespace outboard::kube {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(1000);

TEST(TokenBucket, AllowsTheBurstAndThenTheRate) {
  TokenBucket bucket(10, 3);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(bucket.TryTake(kStart));
  EXPECT_FALSE(bucket.TryTake(kStart));
  EXPECT_FALSE(bucket.TryTake(kStart + absl::Milliseconds(99)));
  const absl::Time next = bucket.NextToken(kStart + absl::Milliseconds(99));
  EXPECT_LE(next, kStart + absl::Milliseconds(101));
  EXPECT_TRUE(bucket.TryTake(next));
  EXPECT_FALSE(bucket.TryTake(next));
}

TEST(TokenBucket, NeverHoldsMoreThanTheBurst) {
  TokenBucket bucket(1000, 2);
  EXPECT_TRUE(bucket.TryTake(kStart));
  const absl::Time later = kStart + absl::Hours(1);
  EXPECT_TRUE(bucket.TryTake(later));
  EXPECT_TRUE(bucket.TryTake(later));
  EXPECT_FALSE(bucket.TryTake(later));
}

TEST(TokenBucket, NegativeRateMeansUnlimited) {
  TokenBucket bucket(-1, 1);
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(bucket.TryTake(kStart));
  EXPECT_EQ(bucket.NextToken(kStart), kStart);
}

TEST(TokenBucket, ZeroIsTheDefaultOfClientGo) {
  TokenBucket bucket(0, 0);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(bucket.TryTake(kStart));
  EXPECT_FALSE(bucket.TryTake(kStart));
  EXPECT_TRUE(bucket.TryTake(kStart + absl::Milliseconds(201)));
}

TEST(TokenBucket, SustainedRateOverALongTime) {
  TokenBucket bucket(50, 100);
  int taken = 0;
  absl::Time now = kStart;
  while (now < kStart + absl::Seconds(60)) {
    if (bucket.TryTake(now)) {
      ++taken;
    } else {
      now = bucket.NextToken(now);
    }
  }
  EXPECT_NEAR(taken, 100 + 60 * 50, 2);
}

}  // namespace
}  // namespace outboard::kube
