#include "shim/scheduler/parked_pods.h"

#include "absl/strings/str_cat.h"
#include "shim/scheduler/testing/several_hosts.h"

namespace outboard::framework::several_hosts {
namespace {

class ParkedPodsTest : public SeveralHostsTest {
 protected:
  ParkedPodsTest() : answers_(hosts_["b"].filter) {}
  void IsLate() {
    hosts_["b"].filter = [](const FilterRequest&) -> absl::StatusOr<FilterResponse> {
      return absl::DeadlineExceededError("too slow");
    };
  }
  void Answers() {
    hosts_["b"].filter = answers_;
    scheduler_.OnProbeAnswered("b", now_);
  }
  // Once for each pod of the queue.
  void Schedule() {
    while (scheduler_.ScheduleOne(now_)) {
    }
  }

 private:
  decltype(hosts_["b"].filter) answers_;
};

// As on a busy machine, while a host is replaced.
TEST_F(ParkedPodsTest, LateAnswersCostNoWrites) {
  IsLate();
  for (int i = 0; i < 20; ++i) AddPod(absl::StrCat("p", i));
  Schedule();
  EXPECT_EQ(scheduler_.queue().counts().parked + scheduler_.queue().counts().active, 20u);
  Pass(absl::Seconds(1));
  Answers();
  Schedule();
  EXPECT_THAT(effects_.binds, SizeIs(20));
  Pass(absl::Seconds(60));
  EXPECT_THAT(effects_.failures, IsEmpty());
  EXPECT_THAT(effects_.nominations, IsEmpty()) << "no status was patched";
}

// As a plugin that hangs at this pod. The pod is in the queue again for a moment each second.
TEST_F(ParkedPodsTest, APodThatIsParkedAgainAndAgainIsReportedAtMostEveryFiveSeconds) {
  IsLate();
  AddPod("p");
  for (int second = 0; second < 5; ++second) {
    Schedule();
    EXPECT_EQ(scheduler_.queue().counts().parked, 1u) << second;
    EXPECT_THAT(effects_.failures, IsEmpty()) << second;
    Pass(absl::Seconds(1));
    scheduler_.OnProbeAnswered("b", now_);
  }
  EXPECT_THAT(effects_.failures, ElementsAre("plugin host \"b\" did not answer: too slow"));
  EXPECT_THAT(effects_.nominations, SizeIs(1)) << "and its status";
  for (int second = 5; second < 60; ++second) {
    Schedule();
    Pass(absl::Seconds(1));
    scheduler_.OnProbeAnswered("b", now_);
  }
  EXPECT_THAT(effects_.failures, SizeIs(::testing::AllOf(::testing::Gt(2), ::testing::Le(12))));
}

TEST_F(ParkedPodsTest, WhatIsGoneIsNotReported) {
  IsLate();
  AddPod("p");
  Schedule();
  scheduler_.events()->OnPodDelete("uid-p", now_);
  Pass(absl::Seconds(5));
  EXPECT_THAT(effects_.failures, IsEmpty());
  EXPECT_GT(scheduler_.NextWakeup(now_), now_);
}

}  // namespace
}  // namespace outboard::framework::several_hosts
