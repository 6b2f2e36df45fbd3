// Which events wake which pods, also pods in flight when the event comes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "shim/queue/scheduling_queue.h"
#include "shim/queue/testing/fake_seams.h"

namespace outboard::queue {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::MakePod;
using ::testing::UnorderedElementsAre;

class QueueEventsTest : public ::testing::Test {
 protected:
  QueueEventsTest() {
    queue_.SetWakeUpEvents("default", {{"Fit", {NodeEvent(kAdd), {"Pod", kDelete, ""}}},
                                       {"Taints", {NodeEvent(kUpdateNodeTaint)}},
                                       {"Labels", {{"Pod", kUpdatePodLabel, ""}}},
                                       {"All", {{"*", kAllActions, ""}}},
                                       {"Quiet", {}}});
  }
  void Reject(const std::string& uid, SchedulingQueue::Rejectors rejectors) {
    queue_.Add(MakePod(uid), now_);
    QueuedPod* pod = queue_.Pop(now_);
    ASSERT_NE(pod, nullptr);
    ASSERT_EQ(pod->uid(), uid);
    ASSERT_TRUE(queue_.AddUnschedulable(uid, std::move(rejectors), now_));
  }
  Place PlaceOf(const std::string& uid) {
    const QueuedPod* pod = queue_.Find(uid);
    return pod == nullptr ? Place::kNone : pod->place;
  }

  absl::Time now_ = absl::FromUnixSeconds(1000);
  SchedulingQueue queue_{QueueOptions{}, now_};
};

TEST_F(QueueEventsTest, OnlyPodsWithAHelpedRejectorMove) {
  Reject("fit", {{"Fit"}, {}});
  Reject("taint", {{"Taints"}, {}});
  Reject("both", {{"Fit", "Taints"}, {}});
  queue_.MoveAllToActiveOrBackoff(NodeEvent(kUpdateNodeTaint), now_);
  EXPECT_EQ(PlaceOf("fit"), Place::kUnschedulable);
  EXPECT_EQ(PlaceOf("taint"), Place::kBackoff);
  EXPECT_EQ(PlaceOf("both"), Place::kBackoff);
}

TEST_F(QueueEventsTest, APodRegistrationCoversAssignedAndUnscheduledPods) {
  Reject("p", {{"Fit"}, {}});
  queue_.MoveAllToActiveOrBackoff(AssignedPodAdd(), now_);
  EXPECT_EQ(PlaceOf("p"), Place::kUnschedulable);
  queue_.MoveAllToActiveOrBackoff(AssignedPodDelete(), now_);
  EXPECT_EQ(PlaceOf("p"), Place::kBackoff);
}

TEST_F(QueueEventsTest, PendingPluginsSkipBackoff) {
  Reject("p", {{"Taints"}, {"Fit"}});
  queue_.MoveAllToActiveOrBackoff(NodeEvent(kAdd), now_);
  EXPECT_EQ(PlaceOf("p"), Place::kActive);
}

TEST_F(QueueEventsTest, AnUnschedulablePluginBesideAPendingOneStillBacksOff) {
  Reject("p", {{"Taints"}, {"Fit"}});
  queue_.MoveAllToActiveOrBackoff(NodeEvent(kUpdateNodeTaint), now_);
  EXPECT_EQ(PlaceOf("p"), Place::kBackoff);
}

TEST_F(QueueEventsTest, BackoffThatIsOverIsNotWaitedFor) {
  Reject("p", {{"Fit"}, {}});
  now_ += absl::Seconds(3);
  queue_.MoveAllToActiveOrBackoff(NodeEvent(kAdd), now_);
  EXPECT_EQ(PlaceOf("p"), Place::kActive);
}

TEST_F(QueueEventsTest, AWildcardRegistrationMatchesEverything) {
  Reject("p", {{"All"}, {}});
  queue_.MoveAllToActiveOrBackoff({"example.com/Widget", kDelete, ""}, now_);
  EXPECT_EQ(PlaceOf("p"), Place::kBackoff);
}

TEST_F(QueueEventsTest, AWildcardEventMovesAll) {
  Reject("p", {{"Fit"}, {}});
  Reject("q", {{"Quiet"}, {}});
  queue_.MoveAllToActiveOrBackoff({"*", kAllActions, "Forced"}, now_);
  EXPECT_EQ(queue_.counts().backoff, 2u);
}

TEST_F(QueueEventsTest, APodOfAnUnknownProfileMovesOnEveryEventOfInterest) {
  auto pod = std::make_shared<kube::PodObject>(*MakePod("p"));
  pod->pod.set_scheduler_name("unknown");
  queue_.Add(pod, now_);
  queue_.Pop(now_);
  queue_.AddUnschedulable("p", {{"Fit"}, {}}, now_);
  queue_.MoveAllToActiveOrBackoff(NodeEvent(kAdd), now_);
  EXPECT_EQ(PlaceOf("p"), Place::kBackoff);
}

TEST_F(QueueEventsTest, ThePrecheckLimitsAnEvent) {
  Reject("p", {{"Fit"}, {}});
  Reject("q", {{"Fit"}, {}});
  queue_.MoveAllToActiveOrBackoff(
      AssignedPodDelete(), [](const QueuedPod& pod) { return pod.uid() == "q"; }, now_);
  EXPECT_EQ(PlaceOf("p"), Place::kUnschedulable);
  EXPECT_EQ(PlaceOf("q"), Place::kBackoff);
}

TEST_F(QueueEventsTest, AnEventDuringTheAttemptCounts) {
  queue_.Add(MakePod("p"), now_);
  queue_.Pop(now_);
  queue_.MoveAllToActiveOrBackoff(NodeEvent(kAdd), now_);
  queue_.AddUnschedulable("p", {{"Fit"}, {}}, now_);
  EXPECT_EQ(PlaceOf("p"), Place::kBackoff);
}

TEST_F(QueueEventsTest, EventsAreRecordedOnceAKindAndOnlyDuringAttempts) {
  const auto kept = [this] {
    std::vector<std::string> labels;
    queue_.ForEachRecordedEvent(
        [&](const ClusterEvent& event) { labels.push_back(event.Label()); });
    return labels;
  };
  queue_.Add(MakePod("p"), now_);
  queue_.Add(MakePod("q"), now_);
  queue_.MoveAllToActiveOrBackoff(NodeEvent(kAdd), now_);
  EXPECT_THAT(kept(), IsEmpty());
  queue_.Pop(now_);
  queue_.MoveAllToActiveOrBackoff(NodeEvent(kAdd), now_);
  queue_.Pop(now_);
  EXPECT_EQ(queue_.counts().recording, 2u);
  queue_.MoveAllToActiveOrBackoff(NodeEvent(kAdd), now_);
  queue_.MoveAllToActiveOrBackoff(AssignedPodDelete(), now_);
  EXPECT_THAT(kept(), UnorderedElementsAre("NodeAdd", "AssignedPodDelete"));
  queue_.Done("p");
  EXPECT_EQ(queue_.counts().recording, 1u);
  EXPECT_THAT(kept(), UnorderedElementsAre("NodeAdd", "AssignedPodDelete"));
  queue_.Done("q");
  EXPECT_EQ(queue_.counts().recording, 0u);
  EXPECT_THAT(kept(), IsEmpty());
}

TEST_F(QueueEventsTest, APendingPluginsEventDuringTheAttemptSkipsBackoff) {
  queue_.Add(MakePod("p"), now_);
  queue_.Pop(now_);
  queue_.MoveAllToActiveOrBackoff(NodeEvent(kUpdateNodeTaint), now_);
  queue_.MoveAllToActiveOrBackoff(NodeEvent(kAdd), now_);
  queue_.AddUnschedulable("p", {{"Taints"}, {"Fit"}}, now_);
  EXPECT_EQ(PlaceOf("p"), Place::kActive);
}

TEST_F(QueueEventsTest, AnEventBeforeTheAttemptDoesNotCount) {
  queue_.Add(MakePod("a"), now_);
  queue_.Pop(now_);
  queue_.MoveAllToActiveOrBackoff(NodeEvent(kAdd), now_);
  queue_.Add(MakePod("b"), now_);
  queue_.Pop(now_);
  queue_.AddUnschedulable("b", {{"Fit"}, {}}, now_);
  EXPECT_EQ(PlaceOf("b"), Place::kUnschedulable);
  queue_.AddUnschedulable("a", {{"Fit"}, {}}, now_);
  EXPECT_EQ(PlaceOf("a"), Place::kBackoff);
}

TEST_F(QueueEventsTest, AnEventThatHelpsOthersDuringTheAttemptDoesNot) {
  queue_.Add(MakePod("p"), now_);
  queue_.Pop(now_);
  queue_.MoveAllToActiveOrBackoff(NodeEvent(kUpdateNodeTaint), now_);
  queue_.AddUnschedulable("p", {{"Fit"}, {}}, now_);
  EXPECT_EQ(PlaceOf("p"), Place::kUnschedulable);
}

TEST_F(QueueEventsTest, AfterDoneEventsAreNotKnownSoThePodBacksOff) {
  queue_.Add(MakePod("p"), now_);
  queue_.Pop(now_);
  queue_.Done("p");
  ASSERT_EQ(PlaceOf("p"), Place::kInFlight);
  queue_.AddUnschedulable("p", {{"Fit"}, {}}, now_);
  EXPECT_EQ(PlaceOf("p"), Place::kBackoff);
}

TEST_F(QueueEventsTest, AnUpdateOfThePodItselfDuringTheAttemptCounts) {
  const ClusterEvent labels{"UnscheduledPod", kUpdatePodLabel, ""};
  queue_.Add(MakePod("p"), now_);
  queue_.Add(MakePod("q"), now_);
  queue_.Pop(now_);
  queue_.Pop(now_);
  queue_.Update(MakePod("p", 0, "2"), {labels}, now_);
  queue_.AddUnschedulable("p", {{"Labels"}, {}}, now_);
  queue_.AddUnschedulable("q", {{"Labels"}, {}}, now_);
  EXPECT_EQ(PlaceOf("p"), Place::kBackoff);
  EXPECT_EQ(PlaceOf("q"), Place::kUnschedulable) << "another pod's update";
}

TEST_F(QueueEventsTest, AnUpdateOfTheWaitingPodWakesItIfItsPluginCares) {
  Reject("p", {{"Labels"}, {}});
  Reject("q", {{"Fit"}, {}});
  const ClusterEvent tolerations{"UnscheduledPod", kUpdatePodToleration, ""};
  const ClusterEvent labels{"UnscheduledPod", kUpdatePodLabel, ""};
  queue_.Update(MakePod("p", 0, "2"), {tolerations}, now_);
  EXPECT_EQ(PlaceOf("p"), Place::kUnschedulable);
  queue_.Update(MakePod("p", 0, "3"), {tolerations, labels}, now_);
  EXPECT_EQ(PlaceOf("p"), Place::kBackoff);
  queue_.Update(MakePod("q", 0, "3"), {labels}, now_);
  EXPECT_EQ(PlaceOf("q"), Place::kUnschedulable);
}

TEST_F(QueueEventsTest, APluginWithoutEventsIsHelpedByAnyChangeOfThePod) {
  Reject("p", {{"Quiet"}, {}});
  queue_.Update(MakePod("p", 0, "2"), {}, now_);
  EXPECT_EQ(PlaceOf("p"), Place::kUnschedulable) << "a status change is not an event";
  queue_.Update(MakePod("p", 0, "3"), {{"UnscheduledPod", kUpdate, ""}}, now_);
  EXPECT_EQ(PlaceOf("p"), Place::kBackoff);
}

TEST_F(QueueEventsTest, ActivateTriesAtOnce) {
  Reject("unschedulable", {{"Quiet"}, {}});
  Reject("error", {});
  Reject("backoff", {{"Fit"}, {}});
  queue_.MoveAllToActiveOrBackoff(NodeEvent(kAdd), now_);
  ASSERT_EQ(PlaceOf("backoff"), Place::kBackoff);
  ASSERT_EQ(PlaceOf("error"), Place::kErrorBackoff);
  queue_.Activate({{"unschedulable", "error", "backoff", "unknown"}}, now_);
  EXPECT_EQ(queue_.counts().active, 3u);
}

TEST_F(QueueEventsTest, ActivateDuringAnAttemptBringsThePodBackAfterIt) {
  queue_.Add(MakePod("p"), now_);
  queue_.Add(MakePod("q"), now_);
  queue_.Pop(now_);
  queue_.Pop(now_);
  queue_.Activate({{"p"}}, now_);
  queue_.AddUnschedulable("p", {{"Quiet"}, {}}, now_);
  queue_.AddUnschedulable("q", {{"Quiet"}, {}}, now_);
  EXPECT_EQ(PlaceOf("p"), Place::kBackoff);
  EXPECT_EQ(PlaceOf("q"), Place::kUnschedulable);
}

TEST_F(QueueEventsTest, ActivateForAPluginTakesOnlyPodsThatItRejected) {
  Reject("fit", {{"Fit"}, {}});
  Reject("quiet", {{"Quiet"}, {}});
  queue_.Activate(std::vector<std::string>{"fit", "quiet"}, now_, "Quiet");
  EXPECT_EQ(PlaceOf("fit"), Place::kUnschedulable);
  EXPECT_EQ(PlaceOf("quiet"), Place::kActive);
}

TEST_F(QueueEventsTest, ActivateForAPluginTakesPodsThatItCouldNotHelp) {
  Reject("fit", {{"Fit"}, {}, {"Preemption"}});
  Reject("other", {{"Fit"}, {}, {}});
  EXPECT_EQ(queue_.Find("fit")->unschedulable_plugins.size(), 1u) << "it rejected no pod";
  queue_.Activate(std::vector<std::string>{"fit", "other"}, now_, "Preemption");
  EXPECT_EQ(PlaceOf("fit"), Place::kActive);
  EXPECT_EQ(PlaceOf("other"), Place::kUnschedulable);
}

TEST_F(QueueEventsTest, Labels) {
  EXPECT_EQ(AssignedPodDelete().Label(), "AssignedPodDelete");
  EXPECT_EQ(UnscheduledPodAdd().Label(), "UnschedulablePodAdd");
  EXPECT_EQ(NodeEvent(kUpdateNodeTaint).Label(), "NodeUpdateNodeTaint");
  EXPECT_EQ((ClusterEvent{"UnscheduledPod", kUpdate, ""}).Label(), "UnschedulablePodUpdate");
  EXPECT_EQ((ClusterEvent{"PersistentVolumeClaim", kAdd, ""}).Label(), "PersistentVolumeClaimAdd");
  for (const char* kind :
       {"CSINode", "CSIDriver", "CSIStorageCapacity", "StorageClass", "VolumeAttachment"}) {
    EXPECT_EQ((ClusterEvent{kind, kDelete, ""}).Label(),
              absl::StrCat("storage.k8s.io/", kind, "Delete"));
  }
  for (const char* kind : {"DeviceClass", "ResourceClaim", "ResourceSlice"}) {
    EXPECT_EQ((ClusterEvent{kind, kUpdate, ""}).Label(),
              absl::StrCat("resource.k8s.io/", kind, "Update"));
  }
  EXPECT_EQ((ClusterEvent{"*", kAllActions, "UnschedulableTimeout"}).Label(),
            "UnschedulableTimeout");
}

TEST_F(QueueEventsTest, FromContractReadsUnknownActionsAsAll) {
  v1beta1::ClusterEvent event;
  event.set_resource("Node");
  event.add_actions(v1beta1::ClusterEvent::ACTION_ADD);
  event.add_actions(v1beta1::ClusterEvent::ACTION_UPDATE_NODE_TAINT);
  EXPECT_EQ(FromContract(event).actions, kAdd | kUpdateNodeTaint);
  for (const int unknown : {0, v1beta1::ClusterEvent::Action_MAX + 1, -1, 77}) {
    EXPECT_FALSE(IsKnownAction(unknown)) << unknown;
    event.add_actions(static_cast<v1beta1::ClusterEvent::Action>(unknown));
    EXPECT_EQ(FromContract(event).actions, kAllActions) << unknown;
    EXPECT_TRUE(Matches(FromContract(event), NodeEvent(kDelete))) << unknown;
    EXPECT_FALSE(Matches(FromContract(event), AssignedPodAdd())) << "another resource";
    event.mutable_actions()->RemoveLast();
  }
  event.clear_actions();
  for (int a = v1beta1::ClusterEvent::ACTION_ADD;
       a <= v1beta1::ClusterEvent::ACTION_UPDATE_NODE_DECLARED_FEATURE; ++a) {
    event.add_actions(static_cast<v1beta1::ClusterEvent::Action>(a));
  }
  event.set_resource("*");
  EXPECT_TRUE(FromContract(event).is_wildcard());
}

}  // namespace
}  // namespace outboard::queue
