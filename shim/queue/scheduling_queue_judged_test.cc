// Pods whose host evaluates events: the queue reports the waiting pods and moves them on the host's
// hints.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "shim/queue/scheduling_queue.h"
#include "shim/queue/testing/fake_seams.h"

namespace outboard::queue {
namespace {

using testing::CountingObserver;
using ::testing::ElementsAre;
using testing::FakeDelegate;
using testing::FakeGate;
using ::testing::IsEmpty;
using ::testing::Key;
using testing::MakePod;
using ::testing::Pair;

class DelegatedQueueTest : public ::testing::Test {
 protected:
  DelegatedQueueTest() {
    queue_.SetWakeUpEvents("default", {{"Fit", {NodeEvent(kAdd), {"Pod", kDelete, ""}}},
                                       {"Taints", {NodeEvent(kUpdateNodeTaint)}},
                                       {"Gates", {{"Pod", kUpdatePodLabel, ""}}}});
  }
  void Reject(const std::string& uid, SchedulingQueue::Rejectors rejectors) {
    queue_.Add(MakePod(uid), now_);
    QueuedPod* pod = queue_.Pop(now_);
    ASSERT_NE(pod, nullptr);
    ASSERT_EQ(pod->uid(), uid);
    ASSERT_TRUE(queue_.AddUnschedulable(uid, std::move(rejectors), now_));
  }
  // An event that is sent to hosts, with its number.
  uint64_t Happens(const ClusterEvent& event) {
    const uint64_t number = queue_.TakeEventNumber();
    queue_.MoveAllToActiveOrBackoff(event, now_);
    return number;
  }
  void Hint(const std::string& uid, const std::string& plugin, uint64_t number,
            const ClusterEvent& event = NodeEvent(kAdd)) {
    const SchedulingQueue::Hint hint{uid, plugin, event, number};
    queue_.ApplyHints({&hint, 1}, now_);
  }
  Place PlaceOf(const std::string& uid) {
    const QueuedPod* pod = queue_.Find(uid);
    return pod == nullptr ? Place::kNone : pod->place;
  }

  absl::Time now_ = absl::FromUnixSeconds(1000);
  FakeGate gate_;
  FakeDelegate delegate_;
  CountingObserver observer_;
  SchedulingQueue queue_{QueueOptions{}, now_, &gate_, &delegate_, &observer_};
};

TEST_F(DelegatedQueueTest, NoEventMovesAPodWithoutAHint) {
  Reject("p", {{"Fit"}, {}});
  EXPECT_THAT(delegate_.waiting, ElementsAre(Key("p")));
  const uint64_t number = Happens(NodeEvent(kAdd));
  EXPECT_EQ(PlaceOf("p"), Place::kUnschedulable);
  Hint("p", "Fit", number);
  EXPECT_EQ(PlaceOf("p"), Place::kBackoff);
  EXPECT_THAT(delegate_.waiting, IsEmpty());
  EXPECT_EQ(observer_.incoming["backoff/NodeAdd"], 1);
}

TEST_F(DelegatedQueueTest, APendingPluginsHintSkipsBackoff) {
  Reject("p", {{"Taints"}, {"Fit"}});
  Hint("p", "Fit", Happens(NodeEvent(kAdd)));
  EXPECT_EQ(PlaceOf("p"), Place::kActive);
}

TEST_F(DelegatedQueueTest, AnExpiredBackoffDoesNotDelay) {
  Reject("p", {{"Fit"}, {}});
  now_ += absl::Seconds(3);
  Hint("p", "Fit", Happens(NodeEvent(kAdd)));
  EXPECT_EQ(PlaceOf("p"), Place::kActive);
  EXPECT_EQ(observer_.incoming["active/NodeAdd"], 1);
}

TEST_F(DelegatedQueueTest, AHintOfAnEarlierAttemptIsLate) {
  Reject("p", {{"Fit"}, {}});
  const uint64_t number = Happens(NodeEvent(kAdd));
  queue_.Activate({{"p"}}, now_);
  ASSERT_NE(queue_.Pop(now_), nullptr);
  Hint("p", "Fit", number);
  EXPECT_EQ(PlaceOf("p"), Place::kInFlight);
  queue_.AddUnschedulable("p", {{"Fit"}, {}}, now_);
  Hint("p", "Fit", number);
  EXPECT_EQ(PlaceOf("p"), Place::kUnschedulable) << "the attempt had seen the event";
  EXPECT_THAT(delegate_.waiting, ElementsAre(Pair("p", number + 1)));
}

TEST_F(DelegatedQueueTest, TheHostEvaluatesEventsDuringTheAttempt) {
  queue_.Add(MakePod("p"), now_);
  queue_.Pop(now_);
  const uint64_t number = Happens(NodeEvent(kAdd));
  EXPECT_EQ(queue_.EventsNeededFrom(), number);
  queue_.AddUnschedulable("p", {{"Fit"}, {}}, now_);
  EXPECT_EQ(PlaceOf("p"), Place::kUnschedulable);
  EXPECT_THAT(delegate_.waiting, ElementsAre(Pair("p", number)));
  EXPECT_GT(queue_.EventsNeededFrom(), number);
  Hint("p", "Fit", number);
  EXPECT_EQ(PlaceOf("p"), Place::kBackoff);
  EXPECT_EQ(observer_.incoming["backoff/ScheduleAttemptFailure"], 1) << "as kube-scheduler counts";
}

TEST_F(DelegatedQueueTest, EventsUnknownToTheHostAreEvaluatedByKind) {
  queue_.Add(MakePod("p"), now_);
  queue_.Add(MakePod("q"), now_);
  queue_.Pop(now_);
  queue_.Pop(now_);
  Happens(NodeEvent(kAdd));
  delegate_.knows_from = queue_.next_event_number();  // Another instance took over.
  queue_.AddUnschedulable("p", {{"Fit"}, {}}, now_);
  queue_.AddUnschedulable("q", {{"Taints"}, {}}, now_);
  EXPECT_EQ(PlaceOf("p"), Place::kBackoff);
  EXPECT_EQ(PlaceOf("q"), Place::kUnschedulable);
  EXPECT_THAT(delegate_.waiting, ElementsAre(Pair("q", delegate_.knows_from)))
      << "from now on the host evaluates events";
}

TEST_F(DelegatedQueueTest, PodsOfAnAbsentHostAreMovedByKind) {
  delegate_.evaluates = false;
  Reject("p", {{"Fit"}, {}});
  EXPECT_THAT(delegate_.waiting, IsEmpty());
  queue_.MoveAllToActiveOrBackoff(NodeEvent(kAdd), now_);
  EXPECT_EQ(PlaceOf("p"), Place::kBackoff);
}

TEST_F(DelegatedQueueTest, AHintByAPluginThatDidNotRejectIsIgnored) {
  Reject("p", {{"Fit"}, {}});
  Hint("p", "Taints", Happens(NodeEvent(kAdd)));
  Hint("unknown", "Fit", Happens(NodeEvent(kAdd)));
  EXPECT_EQ(PlaceOf("p"), Place::kUnschedulable);
}

TEST_F(DelegatedQueueTest, AHostThatLostTrackHintsWithoutANumber) {
  Reject("p", {{"Fit"}, {}});
  Hint("p", "Fit", 0);
  EXPECT_EQ(PlaceOf("p"), Place::kBackoff);
}

TEST_F(DelegatedQueueTest, WaitingPodsAreTriedWhenTheHostIsReplaced) {
  Reject("p", {{"Fit"}, {}});
  gate_.gated_by["g"] = "Gates";
  queue_.Add(MakePod("g"), now_);
  ASSERT_THAT(delegate_.waiting, ElementsAre(Key("g"), Key("p")));
  delegate_.waiting.clear();
  queue_.DelegateReset("default", now_);
  EXPECT_EQ(PlaceOf("p"), Place::kBackoff);
  EXPECT_EQ(PlaceOf("g"), Place::kGated) << "the gate was called again";
  EXPECT_THAT(delegate_.waiting, ElementsAre(Key("g"))) << "and the new host is notified";
}

TEST_F(DelegatedQueueTest, TheHostEvaluatesAGatedPodsOwnUpdate) {
  gate_.gated_by["g"] = "Gates";
  queue_.Add(MakePod("g"), now_);
  gate_.gated_by.clear();
  gate_.calls.clear();
  const ClusterEvent labels{"UnscheduledPod", kUpdatePodLabel, ""};
  EXPECT_TRUE(queue_.IsEventRelevant("g"));
  const uint64_t number = queue_.TakeEventNumber();
  queue_.Update(MakePod("g", 0, "2"), {labels}, now_);
  EXPECT_EQ(PlaceOf("g"), Place::kGated);
  EXPECT_THAT(gate_.calls, IsEmpty());
  Hint("g", "Gates", number, labels);
  EXPECT_EQ(PlaceOf("g"), Place::kActive);
  EXPECT_EQ(observer_.incoming["active/UnschedulablePodUpdatePodLabel"], 1);
}

TEST_F(DelegatedQueueTest, AGateThatStaysShutKeepsAWokenPod) {
  gate_.gated_by["g"] = "Gates";
  queue_.Add(MakePod("g"), now_);
  delegate_.waiting.clear();
  Hint("g", "Gates", Happens(NodeEvent(kAdd)));
  EXPECT_EQ(PlaceOf("g"), Place::kGated);
  EXPECT_THAT(delegate_.waiting, ElementsAre(Key("g"))) << "a hint ends the wait for the host";
}

TEST_F(DelegatedQueueTest, EventsForAHeldPodAreEvaluatedFromItsReleaseOn) {
  gate_.held.insert("p");
  Reject("p", {{"Fit"}, {}});
  gate_.gated_by["p"] = "Gates";
  EXPECT_EQ(PlaceOf("p"), Place::kUnschedulable);
  EXPECT_THAT(delegate_.waiting, IsEmpty());
  EXPECT_FALSE(queue_.IsEventRelevant(NodeEvent(kAdd))) << "it helps no pod";
  Hint("p", "Fit", Happens(NodeEvent(kAdd)));
  queue_.Release("p");
  EXPECT_EQ(PlaceOf("p"), Place::kUnschedulable);
  EXPECT_THAT(delegate_.waiting, IsEmpty()) << "the gate still holds it";

  gate_.held.clear();
  gate_.gated_by.clear();
  queue_.Release("p");
  EXPECT_TRUE(queue_.IsEventRelevant(NodeEvent(kAdd)));
  const uint64_t number = Happens(NodeEvent(kAdd));
  EXPECT_EQ(delegate_.waiting.at("p"), number);
  now_ += absl::Seconds(30);
  Hint("p", "Fit", number);
  EXPECT_EQ(PlaceOf("p"), Place::kActive);
  EXPECT_THAT(delegate_.waiting, IsEmpty());
}

TEST_F(DelegatedQueueTest, TheFlushMovesDelegatedPodsToo) {
  Reject("p", {{"Fit"}, {}});
  now_ += absl::Minutes(6);
  queue_.FlushDue(now_);
  EXPECT_EQ(PlaceOf("p"), Place::kActive);
  EXPECT_THAT(delegate_.waiting, IsEmpty());
}

TEST_F(DelegatedQueueTest, OnlyEventsThatMayHelpAPodAreSent) {
  EXPECT_FALSE(queue_.IsEventRelevant(NodeEvent(kAdd))) << "no pod waits";
  Reject("p", {{"Fit"}, {}});
  EXPECT_TRUE(queue_.IsEventRelevant(NodeEvent(kAdd)));
  EXPECT_FALSE(queue_.IsEventRelevant(NodeEvent(kUpdateNodeTaint)));
  EXPECT_FALSE(queue_.IsEventRelevant("q"));
  queue_.Add(MakePod("q"), now_);
  EXPECT_FALSE(queue_.IsEventRelevant("q")) << "its attempt will see everything";
  queue_.Pop(now_);
  EXPECT_TRUE(queue_.IsEventRelevant("q"));
  EXPECT_TRUE(queue_.IsEventRelevant(NodeEvent(kUpdateNodeTaint)))
      << "any plugin may still reject it";
  EXPECT_FALSE(queue_.IsEventRelevant(NodeEvent(kUpdateNodeCondition)))
      << "no plugin registered it";
  queue_.Forget("q");
  queue_.Delete("p");
  EXPECT_FALSE(queue_.IsEventRelevant(NodeEvent(kAdd)));
  EXPECT_THAT(delegate_.waiting, IsEmpty());
}

}  // namespace
}  // namespace outboard::queue
