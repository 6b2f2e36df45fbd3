#include "shim/hosts/push_inbox.h"

#include <gtest/gtest.h>

#include <string>

namespace outboard::hosts {
namespace {

v1beta1::SyncResponse Push(size_t bytes) {
  v1beta1::SyncResponse push;
  push.mutable_gate_changed()->add_pod_uids(std::string(bytes, 'x'));
  return push;
}

class PushInboxTest : public ::testing::Test {
 protected:
  PushInboxTest() {
    limits_.pushes = 10;
    limits_.push_bytes = 100000;
  }
  HostLimits limits_;
  absl::Time now_ = absl::FromUnixSeconds(1000);
};

TEST_F(PushInboxTest, HoldsPushesInOrderUntilTheyAreTaken) {
  PushInbox inbox(limits_);
  EXPECT_TRUE(inbox.Add(Push(1), now_));
  EXPECT_TRUE(inbox.Add(Push(2), now_));
  const auto taken = inbox.Take();
  ASSERT_EQ(taken.size(), 2u);
  EXPECT_EQ(taken[1].gate_changed().pod_uids(0), "xx");
  EXPECT_TRUE(inbox.Take().empty());
}

TEST_F(PushInboxTest, NoMoreThanTheLimitsWithinASecondTakenOrNot) {
  PushInbox inbox(limits_);
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(inbox.Add(Push(1), now_)) << i;
    EXPECT_EQ(inbox.Take().size(), 1u);
  }
  EXPECT_FALSE(inbox.Add(Push(1), now_));
  EXPECT_TRUE(inbox.overflowed());
  EXPECT_FALSE(inbox.Add(Push(1), now_ + absl::Hours(1))) << "it has lost pushes";

  PushInbox slow(limits_);
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(slow.Add(Push(1), now_ + i * absl::Milliseconds(200))) << i;
    slow.Take();
  }
}

TEST_F(PushInboxTest, NoMoreThanTheLimitsAreHeld) {
  PushInbox inbox(limits_);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(inbox.Add(Push(1), now_ + i * absl::Seconds(1))) << i;
  EXPECT_FALSE(inbox.Add(Push(1), now_ + absl::Minutes(1)));
  EXPECT_TRUE(inbox.Take().empty()) << "their memory is free";
}

TEST_F(PushInboxTest, BytesCountAsTheyAreInMemory) {
  PushInbox inbox(limits_);
  EXPECT_FALSE(inbox.Add(Push(200000), now_));
  // Two bytes each on the wire.
  v1beta1::SyncResponse many;
  for (int i = 0; i < 5000; ++i) many.mutable_gate_changed()->add_pod_uids("");
  ASSERT_LT(many.ByteSizeLong(), 11000u);
  PushInbox another(limits_);
  EXPECT_FALSE(another.Add(many, now_));
}

TEST_F(PushInboxTest, AStepOfTheClockBackwardsBeginsANewSecond) {
  PushInbox inbox(limits_);
  for (int i = 0; i < 50; ++i) {
    EXPECT_TRUE(inbox.Add(Push(1), now_ - i * absl::Hours(1))) << i;
    inbox.Take();
  }
}

TEST_F(PushInboxTest, MessagesThatAreNotHeldCountToo) {
  PushInbox inbox(limits_);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(inbox.Count(Push(1), now_));
  EXPECT_FALSE(inbox.Count(Push(1), now_));
}

}  // namespace
}  // namespace outboard::hosts
