// Order, backoff, flushes, and a pod's ways through the queue.
#include "shim/queue/scheduling_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "shim/queue/testing/fake_seams.h"

namespace outboard::queue {
namespace {

using testing::CountingObserver;
using ::testing::ElementsAre;
using testing::FakeGate;
using testing::MakePod;

class QueueTest : public ::testing::Test {
 protected:
  QueueTest() {
    queue_.SetWakeUpEvents("default",
                           {{"Fit", {NodeEvent(kAdd), AssignedPodDelete()}},
                            {"Gates", {{"Pod", kUpdatePodSchedulingGatesEliminated, ""}}},
                            {"Quiet", {}}});
  }

  std::string PopUid() {
    QueuedPod* pod = queue_.Pop(now_);
    return pod == nullptr ? "" : pod->uid();
  }
  std::vector<std::string> Drain() {
    std::vector<std::string> uids;
    while (QueuedPod* pod = queue_.Pop(now_)) {
      uids.push_back(pod->uid());
      queue_.Forget(uids.back());
    }
    return uids;
  }
  Place PlaceOf(const std::string& uid) {
    const QueuedPod* pod = queue_.Find(uid);
    return pod == nullptr ? Place::kNone : pod->place;
  }
  // Adds, pops and rejects a pod.
  void Reject(const std::string& uid, const std::string& plugin = "Fit") {
    if (queue_.Find(uid) == nullptr) queue_.Add(MakePod(uid), now_);
    ASSERT_EQ(PopUid(), uid);
    ASSERT_TRUE(queue_.AddUnschedulable(uid, {{plugin}, {}}, now_));
  }
  void Advance(absl::Duration d) {
    now_ += d;
    queue_.FlushDue(now_);
  }

  absl::Time now_ = absl::FromUnixSeconds(1000);
  FakeGate gate_;
  CountingObserver observer_;
  SchedulingQueue queue_{QueueOptions{}, now_, &gate_, nullptr, &observer_};
};

TEST_F(QueueTest, HigherPriorityThenEarlierThenFirstCome) {
  queue_.Add(MakePod("low", -5), now_);
  queue_.Add(MakePod("a", 10), now_);
  queue_.Add(MakePod("b", 10), now_);
  queue_.Add(MakePod("max", INT32_MAX), now_);
  queue_.Add(MakePod("min", INT32_MIN), now_);
  queue_.Add(MakePod("zero"), now_);
  EXPECT_THAT(Drain(), ElementsAre("max", "a", "b", "zero", "low", "min"));
}

TEST_F(QueueTest, EarlierTimeBeatsOrderOfArrival) {
  queue_.Add(MakePod("late"), now_ + absl::Seconds(2));
  queue_.Add(MakePod("early"), now_);
  EXPECT_THAT(Drain(), ElementsAre("early", "late"));
}

TEST_F(QueueTest, TheObserverLearnsWhichPodsComeChangeAndLeave) {
  for (const char* uid : {"a", "b", "c"}) queue_.Add(MakePod(uid), now_);
  queue_.Update(MakePod("a", 1, "2"), {}, now_);
  queue_.Update(MakePod("a", 1, "2"), {}, now_);  // known
  queue_.Update(MakePod("d"), {}, now_);          // new
  using Counts = std::map<std::string, int>;
  EXPECT_EQ(observer_.pods, (Counts{{"a", 2}, {"b", 1}, {"c", 1}, {"d", 1}}));
  queue_.Delete("b");
  EXPECT_EQ(PopUid(), "a");
  queue_.Delete("a");
  EXPECT_THAT(observer_.left, ElementsAre("b")) << "in flight until its attempt ends";
  EXPECT_FALSE(queue_.AddUnschedulable("a", {{"Fit"}, {}}, now_));
  EXPECT_EQ(PopUid(), "c");
  queue_.Forget("c");
  EXPECT_THAT(observer_.left, ElementsAre("b", "a", "c"));
}

TEST_F(QueueTest, ListsTheNextPodsWithoutPoppingThem) {
  for (int i = 0; i < 40; ++i) queue_.Add(MakePod(absl::StrCat("p", i), i * 7 % 11), now_);
  for (const size_t count : {0u, 1u, 7u, 40u, 100u}) {
    std::vector<std::string> next;
    for (const QueuedPod* pod : queue_.Next(count)) next.push_back(pod->uid());
    EXPECT_EQ(next.size(), std::min<size_t>(count, 40));
    if (count < 40) continue;
    EXPECT_EQ(next, Drain());
    break;
  }
}

TEST_F(QueueTest, TakesAPodOutOfItsTurnUnlessSomethingHoldsIt) {
  Reject("unschedulable");
  queue_.Add(MakePod("active"), now_);
  queue_.Add(MakePod("backoff", 10), now_);
  ASSERT_EQ(PopUid(), "backoff");
  queue_.AddUnschedulable("backoff", {{"Fit"}, {}}, now_);
  for (const char* uid : {"active", "backoff", "unschedulable"}) {
    QueuedPod* const pod = queue_.Take(uid, now_);
    ASSERT_NE(pod, nullptr) << uid;
    EXPECT_EQ(pod->place, Place::kInFlight);
    EXPECT_EQ(queue_.Take(uid, now_), nullptr) << "it is in flight";
  }
  EXPECT_EQ(queue_.Find("active")->attempts, 1);
  EXPECT_EQ(queue_.Find("backoff")->attempts, 2);
  EXPECT_EQ(queue_.counts().in_flight, 3u);
  EXPECT_FALSE(queue_.HasNext());
  EXPECT_EQ(queue_.Take("unknown", now_), nullptr);
}

TEST_F(QueueTest, SortKeysCompareAsUnsignedBytesAndCanBeTakenBack) {
  queue_.Add(MakePod("a", 3), now_);
  queue_.Add(MakePod("b", 2), now_);
  queue_.Add(MakePod("c", 1), now_);
  queue_.SetSortKey("a", "\xff");
  queue_.SetSortKey("b", std::string("\x01\x80", 2));
  queue_.SetSortKey("c", std::string("\x01\x7f", 2));
  EXPECT_EQ(PopUid(), "c");
  queue_.SetSortKey("a", "");
  queue_.SetSortKey("b", "");
  EXPECT_THAT(Drain(), ElementsAre("a", "b"));
}

TEST_F(QueueTest, UpdateOfPriorityReordersUnlessAHostGaveTheKey) {
  queue_.Add(MakePod("a"), now_);
  queue_.Add(MakePod("b"), now_);
  queue_.Update(MakePod("b", 7, "2"), {}, now_);
  EXPECT_EQ(PopUid(), "b");
  queue_.Add(MakePod("c"), now_);
  queue_.SetSortKey("c", "\xff\xff");
  queue_.Update(MakePod("c", 100, "2"), {}, now_);
  EXPECT_THAT(Drain(), ElementsAre("a", "c"));
}

TEST_F(QueueTest, BackoffDoublesUpToTheLimit) {
  Reject("p");
  const int expected[] = {1, 2, 4, 8, 10, 10};
  for (const int seconds : expected) {
    QueuedPod* pod = const_cast<QueuedPod*>(queue_.Find("p"));
    EXPECT_EQ(queue_.BackoffEnd(*pod) - now_, absl::Seconds(seconds));
    now_ += absl::Seconds(20);
    queue_.MoveAllToActiveOrBackoff(NodeEvent(kAdd), now_);
    ASSERT_EQ(PlaceOf("p"), Place::kActive);
    Reject("p");
  }
}

TEST_F(QueueTest, ErrorsHaveABackoffOfTheirOwnAndAreNotTakenBeforeTime) {
  queue_.Add(MakePod("p"), now_);
  ASSERT_EQ(PopUid(), "p");
  ASSERT_TRUE(queue_.AddUnschedulable("p", {}, now_));
  EXPECT_EQ(PlaceOf("p"), Place::kErrorBackoff);
  EXPECT_FALSE(queue_.HasNext());
  EXPECT_EQ(queue_.Find("p")->consecutive_errors, 1);
  EXPECT_EQ(queue_.Find("p")->unschedulable_count, 0);
  EXPECT_EQ(queue_.NextWakeup(), now_ + absl::Seconds(2));
  Advance(absl::Seconds(1));
  EXPECT_EQ(PlaceOf("p"), Place::kErrorBackoff) << "within its second it is still in backoff";
  Advance(absl::Seconds(1));
  EXPECT_EQ(PlaceOf("p"), Place::kActive);
  ASSERT_EQ(PopUid(), "p");
  ASSERT_TRUE(queue_.AddUnschedulable("p", {}, now_));
  EXPECT_EQ(queue_.BackoffEnd(*const_cast<QueuedPod*>(queue_.Find("p"))) - now_, absl::Seconds(2));
  Advance(absl::Seconds(5));
  // A rejection ends the series of errors.
  Reject("p");
  EXPECT_EQ(queue_.Find("p")->consecutive_errors, 0);
  EXPECT_EQ(queue_.Find("p")->unschedulable_count, 1);
}

TEST_F(QueueTest, ZeroMaxBackoffSwitchesBackoffOff) {
  QueueOptions options;
  options.max_backoff = absl::ZeroDuration();
  SchedulingQueue queue(options, now_);
  queue.Add(MakePod("p"), now_);
  queue.Pop(now_);
  queue.AddUnschedulable("p", {}, now_);
  EXPECT_EQ(queue.Find("p")->place, Place::kActive);
}

TEST_F(QueueTest, EmptyActiveQueueTakesFromBackoffBeforeTime) {
  Reject("p");
  queue_.MoveAllToActiveOrBackoff(NodeEvent(kAdd), now_);
  ASSERT_EQ(PlaceOf("p"), Place::kBackoff);
  queue_.Add(MakePod("q"), now_);
  EXPECT_EQ(PopUid(), "q");
  EXPECT_EQ(PopUid(), "p");
  EXPECT_EQ(observer_.incoming["active/PopFromBackoffQ"], 1);
  EXPECT_EQ(observer_.incoming["backoff/NodeAdd"], 1);
  EXPECT_EQ(queue_.Find("p")->attempts, 2);
}

TEST_F(QueueTest, WithinOneSecondBackoffFollowsTheActiveOrder) {
  now_ += absl::Milliseconds(100);
  queue_.Add(MakePod("low", 1), now_);
  queue_.Add(MakePod("high", 9), now_);
  for (int i = 0; i < 2; ++i) PopUid();
  queue_.AddUnschedulable("low", {{"Fit"}, {}}, now_);
  now_ += absl::Milliseconds(800);
  queue_.AddUnschedulable("high", {{"Fit"}, {}}, now_);
  queue_.MoveAllToActiveOrBackoff(NodeEvent(kAdd), now_);
  ASSERT_EQ(queue_.counts().backoff, 2u);
  EXPECT_EQ(PopUid(), "high");
  EXPECT_EQ(PopUid(), "low");
}

TEST_F(QueueTest, BackoffsEndOnWholeSeconds) {
  now_ += absl::Milliseconds(300);
  Reject("p");
  queue_.MoveAllToActiveOrBackoff(NodeEvent(kAdd), now_);
  ASSERT_EQ(PlaceOf("p"), Place::kBackoff);  // until 1001.3, which counts as 1001
  EXPECT_EQ(queue_.NextWakeup(), absl::FromUnixSeconds(1002));
  now_ = absl::FromUnixSeconds(1001) + absl::Milliseconds(999);
  queue_.FlushDue(now_);
  EXPECT_EQ(PlaceOf("p"), Place::kBackoff);
  now_ = absl::FromUnixSeconds(1002);
  queue_.FlushDue(now_);
  EXPECT_EQ(PlaceOf("p"), Place::kActive);
  EXPECT_EQ(observer_.incoming["active/BackoffComplete"], 1);
}

TEST_F(QueueTest, UnschedulableIsFlushedAfterFiveMinutes) {
  Reject("p", "Quiet");
  ASSERT_EQ(PlaceOf("p"), Place::kUnschedulable);
  Advance(absl::Minutes(5));
  EXPECT_EQ(PlaceOf("p"), Place::kUnschedulable);
  EXPECT_EQ(queue_.NextWakeup(), absl::FromUnixSeconds(1330));
  Advance(absl::Seconds(30));
  EXPECT_EQ(PlaceOf("p"), Place::kActive);
  EXPECT_TRUE(queue_.Find("p")->was_flushed);
  EXPECT_EQ(observer_.incoming["active/UnschedulableTimeout"], 1);
}

TEST_F(QueueTest, NothingDueNeedsNoWakeup) {
  queue_.Add(MakePod("p"), now_);
  EXPECT_EQ(queue_.NextWakeup(), absl::InfiniteFuture());
}

TEST_F(QueueTest, DeletedInFlightIsForgottenWhenItsAttemptEnds) {
  queue_.Add(MakePod("p"), now_);
  ASSERT_EQ(PopUid(), "p");
  queue_.Delete("p");
  ASSERT_NE(queue_.Find("p"), nullptr);
  EXPECT_TRUE(queue_.Find("p")->deleted);
  EXPECT_FALSE(queue_.AddUnschedulable("p", {{"Fit"}, {}}, now_));
  EXPECT_EQ(queue_.Find("p"), nullptr);
  EXPECT_TRUE(observer_.unschedulable.empty());
}

TEST_F(QueueTest, DeleteFromEachPlace) {
  Reject("unschedulable", "Quiet");
  gate_.gated_by["gated"] = "Gates";
  queue_.Add(MakePod("gated"), now_);
  queue_.Add(MakePod("parked"), now_);
  PopUid();
  queue_.Park("parked", "h", now_);
  queue_.Add(MakePod("error"), now_);
  PopUid();
  queue_.AddUnschedulable("error", {}, now_);
  queue_.Add(MakePod("active"), now_);
  for (const char* uid : {"unschedulable", "gated", "parked", "error", "active", "unknown"}) {
    queue_.Delete(uid);
    EXPECT_EQ(queue_.Find(uid), nullptr);
  }
  const QueueCounts counts = queue_.counts();
  EXPECT_EQ(counts.active + counts.backoff + counts.unschedulable + counts.gated + counts.parked +
                counts.in_flight,
            0u);
  EXPECT_TRUE(observer_.unschedulable.empty());
}

TEST_F(QueueTest, UpdateOfAnUnknownPodAddsIt) {
  queue_.Update(MakePod("p"), {}, now_);
  EXPECT_EQ(PlaceOf("p"), Place::kActive);
  EXPECT_EQ(observer_.incoming["active/UnschedulablePodUpdate"], 1);
}

TEST_F(QueueTest, SameResourceVersionIsIgnored) {
  Reject("p", "Quiet");
  queue_.Update(MakePod("p", 5, "1"), {{"UnscheduledPod", kUpdatePodLabel, ""}}, now_);
  EXPECT_EQ(PlaceOf("p"), Place::kUnschedulable);
  EXPECT_EQ(queue_.Find("p")->pod->pod.priority(), 0);
}

TEST_F(QueueTest, UpdateInFlightKeepsTheNewObject) {
  queue_.Add(MakePod("p"), now_);
  QueuedPod* pod = queue_.Pop(now_);
  queue_.Update(MakePod("p", 4, "2"), {}, now_);
  EXPECT_EQ(pod->pod->pod.priority(), 4);
  EXPECT_EQ(pod->place, Place::kInFlight);
}

TEST_F(QueueTest, ParkedPodsWaitForTheirHostAndKeepTheirTurn) {
  queue_.Add(MakePod("first"), now_);
  now_ += absl::Seconds(1);
  queue_.Add(MakePod("second"), now_);
  ASSERT_EQ(PopUid(), "first");
  ASSERT_TRUE(queue_.Park("first", "h", now_));
  EXPECT_EQ(queue_.Find("first")->attempts, 0);
  EXPECT_EQ(queue_.counts().parked, 1u);
  queue_.MoveAllToActiveOrBackoff(NodeEvent(kAdd), now_);
  queue_.HostReturned("other", now_);
  EXPECT_EQ(PlaceOf("first"), Place::kParked);
  queue_.HostReturned("h", now_);
  EXPECT_EQ(queue_.counts().parked, 0u);
  EXPECT_THAT(Drain(), ElementsAre("first", "second"));
}

TEST_F(QueueTest, ParkingDoesNotTouchBackoffOrReasons) {
  Reject("p");
  queue_.MoveAllToActiveOrBackoff(NodeEvent(kAdd), now_);
  ASSERT_EQ(PopUid(), "p");  // from backoff, early
  ASSERT_TRUE(queue_.Park("p", "h", now_));
  EXPECT_EQ(observer_.unschedulable["Fit/default"], 1);
  queue_.HostReturned("h", now_);
  EXPECT_EQ(PlaceOf("p"), Place::kBackoff);
  EXPECT_EQ(queue_.Find("p")->unschedulable_count, 1);
}

TEST_F(QueueTest, AParkedPodIsTriedAfterFiveMinutesAllTheSame) {
  queue_.Add(MakePod("p"), now_);
  PopUid();
  queue_.Park("p", "h", now_);
  EXPECT_EQ(queue_.NextWakeup(), now_ + absl::Seconds(30));
  Advance(absl::Minutes(6));
  EXPECT_EQ(PlaceOf("p"), Place::kActive);
}

TEST_F(QueueTest, GatedPodsStayOutUntilTheirPluginsEvent) {
  gate_.gated_by["p"] = "Gates";
  queue_.Add(MakePod("p"), now_);
  EXPECT_EQ(PlaceOf("p"), Place::kGated);
  EXPECT_EQ(queue_.Find("p")->gate_message, "gated by Gates");
  EXPECT_FALSE(queue_.Find("p")->initial_attempt_time.has_value());
  EXPECT_EQ(observer_.incoming["unschedulable/UnschedulablePodAdd"], 1);
  EXPECT_EQ(observer_.unschedulable["Gates/default"], 1);
  gate_.gated_by.clear();
  queue_.MoveAllToActiveOrBackoff(NodeEvent(kAdd), now_);
  Advance(absl::Minutes(6));
  EXPECT_EQ(PlaceOf("p"), Place::kGated) << "neither foreign events nor the flush move it";
  queue_.Update(MakePod("p", 0, "2"), {{"UnscheduledPod", kUpdatePodSchedulingGatesEliminated, ""}},
                now_);
  EXPECT_EQ(PlaceOf("p"), Place::kActive);
  EXPECT_EQ(queue_.Find("p")->gating_plugin, "");
  EXPECT_EQ(queue_.Find("p")->initial_attempt_time, now_);
  EXPECT_EQ(observer_.incoming["active/UnschedulablePodUpdatePodSchedulingGatesEliminated"], 1);
}

TEST_F(QueueTest, GatedAgainIsNotCountedTwice) {
  gate_.gated_by["p"] = "Gates";
  queue_.Add(MakePod("p"), now_);
  gate_.gated_by["p"] = "Other";
  queue_.Update(MakePod("p", 0, "2"), {{"UnscheduledPod", kUpdatePodLabel, ""}}, now_);
  EXPECT_EQ(PlaceOf("p"), Place::kGated);
  EXPECT_EQ(queue_.Find("p")->gating_plugin, "Other");
  EXPECT_EQ(queue_.counts().gated, 1u);
  EXPECT_EQ(observer_.incoming.size(), 1u);
  queue_.Delete("p");
  EXPECT_TRUE(observer_.unschedulable.empty());
}

TEST_F(QueueTest, GatesAreAskedInBatchesAndAgainOnRequest) {
  gate_.gated_by = {{"a", "Gates"}, {"c", "Gates"}};
  const std::vector<kube::PodPtr> pods = {MakePod("a"), MakePod("b"), MakePod("c")};
  queue_.AddAll(pods, now_);
  ASSERT_EQ(gate_.calls.size(), 1u);
  EXPECT_THAT(gate_.calls[0], ElementsAre("a", "b", "c"));
  gate_.gated_by.erase("c");
  queue_.RecheckGates([](const QueuedPod& pod) { return pod.gating_plugin == "Gates"; }, now_);
  EXPECT_THAT(gate_.calls[1], ElementsAre("a", "c"));
  EXPECT_EQ(PlaceOf("a"), Place::kGated);
  EXPECT_EQ(PlaceOf("c"), Place::kActive);
}

TEST_F(QueueTest, TheGateIsAskedBeforeBackoffAndNotAgainAfterIt) {
  Reject("p");
  gate_.calls.clear();
  queue_.MoveAllToActiveOrBackoff(NodeEvent(kAdd), now_);
  EXPECT_EQ(PlaceOf("p"), Place::kBackoff);
  Advance(absl::Seconds(2));
  EXPECT_EQ(PlaceOf("p"), Place::kActive);
  EXPECT_EQ(gate_.calls.size(), 1u);
}

TEST_F(QueueTest, AGateWithoutAnswerParksThePod) {
  gate_.unavailable_at["p"] = "h";
  queue_.Add(MakePod("p"), now_);
  EXPECT_EQ(PlaceOf("p"), Place::kParked);
  queue_.HostReturned("h", now_);
  EXPECT_EQ(PlaceOf("p"), Place::kParked) << "still no answer";
  gate_.unavailable_at.clear();
  queue_.HostReturned("h", now_);
  EXPECT_EQ(PlaceOf("p"), Place::kActive);
}

}  // namespace
}  // namespace outboard::queue
