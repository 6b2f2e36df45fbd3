#include "shim/leader/lease_step.h"

#include <string>

#include "gtest/gtest.h"

namespace outboard::leader {
namespace {

using Kind = LeaseAction::Kind;

const absl::Time kWall = absl::FromUnixSeconds(1'700'000'000);

Lease Of(const std::string& holder, int seconds, const std::string& renewed, int transitions) {
  Lease lease;
  lease.record = {holder, seconds, "then", renewed, transitions};
  return lease;
}

class LeaseStepTest : public ::testing::Test {
 protected:
  LeaseAction Next() { return step_.Next(now_, kWall); }
  // Answers the pending write with its content.
  void Written(const LeaseAction& action) {
    Lease lease;
    lease.record = action.record;
    step_.OnWritten(lease, now_);
  }
  void Lead() {
    ASSERT_EQ(Next().kind, Kind::kRead);
    step_.OnRead(absl::NotFoundError(""), now_);
    LeaseAction create = Next();
    ASSERT_EQ(create.kind, Kind::kCreate);
    Written(create);
    ASSERT_TRUE(step_.leading());
  }

  absl::Time now_ = absl::FromUnixSeconds(5000);
  LeaseStep step_{"me", LeaseTimings(), 1};
};

TEST_F(LeaseStepTest, CreatesALeaseThatIsAbsent) {
  Next();
  step_.OnRead(absl::NotFoundError(""), now_);
  LeaseAction action = Next();
  EXPECT_EQ(action.kind, Kind::kCreate);
  EXPECT_EQ(action.record.holder, "me");
  EXPECT_EQ(action.record.duration_seconds, 15);
  EXPECT_EQ(action.record.transitions, 0);
  EXPECT_EQ(action.record.renew_time, "2023-11-14T22:13:20.000000Z");
  now_ += absl::Seconds(1);
  Written(action);
  // Counted from the start of the write, not from its end.
  EXPECT_EQ(step_.leading_until(), now_ - absl::Seconds(1) + absl::Seconds(10));
  LeaseAction wait = Next();
  EXPECT_EQ(wait.kind, Kind::kWait);
  EXPECT_EQ(wait.until, now_ + absl::Seconds(2));
}

TEST_F(LeaseStepTest, AnothersLeaseExpiresByItsOwnDurationSinceWeSawItChange) {
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(Next().kind, Kind::kRead);
    // Far in the past by wall-clock time, which is ignored.
    step_.OnRead(Of("other", 40, "old", 3), now_);
    LeaseAction wait = Next();
    ASSERT_EQ(wait.kind, Kind::kWait);
    now_ += absl::Seconds(10);
  }
  // Renewed: the 40 seconds start again.
  ASSERT_EQ(Next().kind, Kind::kRead);
  step_.OnRead(Of("other", 40, "new", 3), now_);
  now_ += absl::Seconds(39);
  ASSERT_EQ(Next().kind, Kind::kRead);
  step_.OnRead(Of("other", 40, "new", 3), now_);
  ASSERT_EQ(Next().kind, Kind::kWait);
  now_ += absl::Seconds(10);
  ASSERT_EQ(Next().kind, Kind::kRead);
  step_.OnRead(Of("other", 40, "new", 3), now_);
  LeaseAction update = Next();
  EXPECT_EQ(update.kind, Kind::kUpdate);
  EXPECT_EQ(update.record.holder, "me");
  EXPECT_EQ(update.record.transitions, 4);
}

// The release of a lease is not announced: the standby's check period bounds the time without a
// leader.
TEST_F(LeaseStepTest, AStandbyLooksTwiceAsOftenAsALeaderRenews) {
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(Next().kind, Kind::kRead);
    step_.OnRead(Of("other", 15, std::to_string(i), 3), now_);
    LeaseAction wait = Next();
    ASSERT_EQ(wait.kind, Kind::kWait);
    EXPECT_GE(wait.until, now_ + absl::Seconds(1));
    EXPECT_LE(wait.until, now_ + absl::Seconds(1) * 1.2);
    now_ = wait.until;
  }
}

TEST_F(LeaseStepTest, AStandbyWakesWhenTheLeaseExpires) {
  const absl::Time expiry = now_ + absl::Seconds(15);
  for (;;) {
    ASSERT_EQ(Next().kind, Kind::kRead);
    step_.OnRead(Of("other", 15, "last", 3), now_);
    LeaseAction action = Next();
    if (action.kind == Kind::kUpdate) break;
    ASSERT_EQ(action.kind, Kind::kWait);
    ASSERT_LE(action.until, expiry);
    now_ = action.until;
  }
  EXPECT_EQ(now_, expiry);
}

// Neither a failed read nor a lost race after expiry makes it send without a pause.
TEST_F(LeaseStepTest, AnExpiredLeaseIsNotAskedForWithoutAPause) {
  Next();
  step_.OnRead(Of("other", 15, "last", 3), now_);
  now_ += absl::Seconds(15);
  ASSERT_EQ(Next().kind, Kind::kRead);
  step_.OnRead(absl::UnavailableError(""), now_);
  LeaseAction wait = Next();
  ASSERT_EQ(wait.kind, Kind::kWait);
  EXPECT_GE(wait.until, now_ + absl::Seconds(1));
}

TEST_F(LeaseStepTest, AReleasedLeaseIsTakenAtOnce) {
  Next();
  step_.OnRead(Of("", 1, "now", 7), now_);
  LeaseAction update = Next();
  EXPECT_EQ(update.kind, Kind::kUpdate);
  EXPECT_EQ(update.record.transitions, 8);
}

TEST_F(LeaseStepTest, LosingTheRaceIsWaitingAgain) {
  Next();
  step_.OnRead(Of("", 1, "now", 7), now_);
  Next();
  step_.OnWritten(absl::AbortedError("conflict"), now_);
  EXPECT_FALSE(step_.leading());
  EXPECT_EQ(Next().kind, Kind::kWait);
}

TEST_F(LeaseStepTest, RenewsWithoutReadingAndKeepsItsTerm) {
  Lead();
  now_ += absl::Seconds(2);
  LeaseAction renew = Next();
  EXPECT_EQ(renew.kind, Kind::kUpdate);
  EXPECT_EQ(renew.record.transitions, 0);
  EXPECT_EQ(renew.record.acquire_time, step_.lease()->record.acquire_time);
  Written(renew);
  EXPECT_EQ(step_.leading_until(), now_ + absl::Seconds(10));
}

TEST_F(LeaseStepTest, AConflictWhenRenewingIsReadOnceAndTriedAgain) {
  Lead();
  now_ += absl::Seconds(2);
  Next();
  step_.OnWritten(absl::AbortedError("conflict"), now_);
  ASSERT_EQ(Next().kind, Kind::kRead);
  // This candidate's own update, whose answer was lost, caused the conflict.
  step_.OnRead(Of("me", 15, "newer", 0), now_);
  LeaseAction again = Next();
  ASSERT_EQ(again.kind, Kind::kUpdate);
  Written(again);
  EXPECT_TRUE(step_.leading());
}

TEST_F(LeaseStepTest, FailuresDoNotMoveTheDeadlineAndThenItIsOver) {
  Lead();
  const absl::Time deadline = step_.leading_until();
  int reads = 0;
  for (;;) {
    LeaseAction action = Next();
    if (action.kind == Kind::kLost) break;
    if (action.kind == Kind::kWait) {
      EXPECT_LE(action.until, deadline);
      now_ = action.until;
    } else if (action.kind == Kind::kRead) {
      ++reads;
      step_.OnRead(absl::UnavailableError(""), now_);
    } else {
      step_.OnWritten(absl::UnavailableError(""), now_);
    }
    EXPECT_EQ(step_.leading_until(), deadline);
  }
  EXPECT_EQ(now_, deadline);
  EXPECT_GE(reads, 3);
  EXPECT_EQ(step_.leading_until(), absl::InfinitePast());
  // Permanently.
  now_ += absl::Seconds(100);
  EXPECT_EQ(Next().kind, Kind::kLost);
}

TEST_F(LeaseStepTest, AnAnswerAfterTheDeadlineDoesNotBringLeadershipBackPastIt) {
  Lead();
  now_ += absl::Seconds(2);
  LeaseAction renew = Next();
  now_ += absl::Seconds(60);  // Suspended meanwhile.
  Written(renew);
  EXPECT_LT(step_.leading_until(), now_);
  EXPECT_EQ(Next().kind, Kind::kLost);
}

TEST_F(LeaseStepTest, ALeaseInAnothersHandsEndsLeadershipAtOnce) {
  Lead();
  now_ += absl::Seconds(2);
  Next();
  step_.OnWritten(absl::AbortedError("conflict"), now_);
  Next();
  step_.OnRead(Of("other", 15, "now", 1), now_);
  EXPECT_EQ(Next().kind, Kind::kLost);
  EXPECT_EQ(step_.leading_until(), absl::InfinitePast());
}

TEST_F(LeaseStepTest, ADeletedLeaseIsCreatedAgain) {
  Lead();
  now_ += absl::Seconds(2);
  Next();
  step_.OnWritten(absl::NotFoundError("gone"), now_);
  Next();
  step_.OnRead(absl::NotFoundError("gone"), now_);
  LeaseAction create = Next();
  EXPECT_EQ(create.kind, Kind::kCreate);
  Written(create);
  EXPECT_TRUE(step_.leading());
}

TEST(LeaseRecord, RoundTripKeepsWhatOthersWrote) {
  auto lease = ParseLease(
      R"({"kind":"Lease","metadata":{"name":"l","labels":{"a":"b"},"resourceVersion":"7"},)"
      R"("spec":{"holderIdentity":"x","leaseDurationSeconds":15,"strategy":"s","leaseTransitions":2}})");
  ASSERT_TRUE(lease.ok());
  EXPECT_EQ(lease->record.transitions, 2);
  EXPECT_EQ(lease->resource_version, 7);
  const std::string updated = UpdatedLeaseJson(*lease, {"me", 15, "a", "r", 3});
  auto again = ParseLease(updated);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->record, (LeaseRecord{"me", 15, "a", "r", 3}));
  EXPECT_NE(updated.find(R"("strategy":"s")"), std::string::npos);
  EXPECT_NE(updated.find(R"("resourceVersion":"7")"), std::string::npos);
  EXPECT_FALSE(ParseLease("busy").ok());
}

// Other stores than etcd may have other versions.
TEST(LeaseRecord, AResourceVersionIsADecimalNumberOrNone) {
  const auto version = [](const std::string& value) {
    auto lease = ParseLease(R"({"kind":"Lease","metadata":{"resourceVersion":)" + value + "}}");
    return lease.ok() ? lease->resource_version : -1;
  };
  EXPECT_EQ(version(R"("9223372036854775807")"), 9223372036854775807);
  for (const char* other : {R"("")", R"("7a")", R"("-7")", R"("+7")", R"(" 7")", R"("7.0")",
                            R"("9223372036854775808")", "7", "null", "{}"})
    EXPECT_EQ(version(other), 0) << other;
  EXPECT_EQ(ParseLease(R"({"kind":"Lease"})")->resource_version, 0);
}

}  // namespace
}  // namespace outboard::leader
