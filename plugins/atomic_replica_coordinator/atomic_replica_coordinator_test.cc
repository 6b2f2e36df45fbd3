#include "plugins/atomic_replica_coordinator/atomic_replica_coordinator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "plugin_host/sdk/testing/builders.h"
#include "plugin_host/sdk/testing/plugin_harness.h"

namespace outboard::atomic_replica_coordinator {
namespace {

using sdk::PermitAnswer;
using sdk::Verdict;
using sdk::testing::NodeBuilder;
using sdk::testing::PluginHarness;
using sdk::testing::PodBuilder;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;

class CoordinatorTest : public testing::Test {
 protected:
  void SetUp() override { Start(""); }
  void Start(const std::string& args) {
    auto harness = PluginHarness::Create(Descriptor(), args);
    ASSERT_TRUE(harness.ok()) << harness.status();
    harness_ = *std::move(harness);
    harness_->AddNode(NodeBuilder("n1"));
  }
  static v1beta1::Pod Member(const std::string& name, const std::string& size,
                             const std::string& job = "train") {
    PodBuilder pod(name);
    pod.Label("job-name", job);
    if (!size.empty()) pod.Annotation("outboard/min-replicas", size);
    return pod;
  }
  // Calls Permit, and applies the answer to this pod as the shim does.
  Verdict Permit(const v1beta1::Pod& pod) {
    answer_ = PermitAnswer();
    harness_->AddPod(pod);
    harness_->Place(pod.uid(), v1beta1::PLACEMENT_STATE_ASSUMED, "n1");
    Verdict verdict = harness_->Permit(pod, "n1", &answer_);
    if (verdict.code() == sdk::kWait)
      harness_->Place(pod.uid(), v1beta1::PLACEMENT_STATE_WAITING, "n1");
    return verdict;
  }
  std::vector<std::string> Decided(bool allow) const { return Pods(answer_.decisions, allow); }
  static std::vector<std::string> Pods(const std::vector<sdk::WaitDecision>& decisions,
                                       bool allow) {
    std::vector<std::string> pods;
    for (const sdk::WaitDecision& decision : decisions) {
      EXPECT_NE(decision.attempt_id, 0u);
      if (decision.allow == allow) pods.push_back(decision.pod_uid);
    }
    return pods;
  }
  uint64_t AttemptOf(const std::string& uid) const {
    return harness_->cluster().FindPod(uid)->waiting_attempt;
  }

  std::unique_ptr<PluginHarness> harness_;
  PermitAnswer answer_;
};

TEST_F(CoordinatorTest, PodsOutsideOfAGangPass) {
  EXPECT_EQ(Permit(PodBuilder("single")), Verdict::Success());
  EXPECT_EQ(Permit(Member("no-size", "")), Verdict::Success());
  EXPECT_EQ(Permit(Member("alone", "1", "one")), Verdict::Success());
  EXPECT_THAT(answer_.decisions, IsEmpty());
}

TEST_F(CoordinatorTest, MembersWaitUntilTheLastOneLetsAllGo) {
  EXPECT_EQ(Permit(Member("a", "3")), Verdict(sdk::kWait, "gang \"train\": 1 of 3 members placed"));
  EXPECT_EQ(answer_.timeout, absl::Seconds(30));
  EXPECT_EQ(answer_.wait_reason, "gang \"train\": 1 of 3 members placed");
  EXPECT_THAT(answer_.decisions, IsEmpty());
  EXPECT_EQ(Permit(Member("b", "3")), Verdict(sdk::kWait, "gang \"train\": 2 of 3 members placed"));
  EXPECT_EQ(Permit(Member("c", "3")), Verdict::Success());
  EXPECT_THAT(Decided(true), ElementsAre("default/a", "default/b"));
  EXPECT_THAT(Decided(false), IsEmpty());
  ASSERT_EQ(answer_.decisions.size(), 2u);
  EXPECT_EQ(answer_.decisions[0].attempt_id, AttemptOf("default/a"));
  EXPECT_EQ(answer_.decisions[1].attempt_id, AttemptOf("default/b"));
}

TEST_F(CoordinatorTest, AskingAgainChangesNothing) {
  Permit(Member("a", "2"));
  EXPECT_EQ(Permit(Member("a", "2")), Verdict(sdk::kWait, "gang \"train\": 1 of 2 members placed"));
  EXPECT_EQ(Permit(Member("b", "2")), Verdict::Success());
  EXPECT_EQ(Permit(Member("b", "2")), Verdict::Success());
  EXPECT_THAT(Decided(true), ElementsAre("default/a"));
}

TEST_F(CoordinatorTest, LaterMembersGoSingly) {
  Permit(Member("a", "2"));
  Permit(Member("b", "2"));
  harness_->Place("default/a", v1beta1::PLACEMENT_STATE_ASSUMED, "n1");
  EXPECT_EQ(Permit(Member("c", "2")), Verdict::Success());
  EXPECT_THAT(answer_.decisions, IsEmpty()) << "no pod waits any more";
}

TEST_F(CoordinatorTest, BoundMembersCountButNotThoseBeingDeleted) {
  v1beta1::Pod bound = Member("bound", "3");
  bound.set_node_name("n1");
  harness_->AddPod(bound);
  v1beta1::Pod leaving = Member("leaving", "3");
  leaving.set_node_name("n1");
  leaving.set_deletion_unix_seconds(1);
  harness_->AddPod(leaving);
  harness_->AddPod(Member("pending", "3"));
  EXPECT_EQ(Permit(Member("a", "3")), Verdict(sdk::kWait, "gang \"train\": 2 of 3 members placed"));
  EXPECT_EQ(Permit(Member("b", "3")), Verdict::Success());
  EXPECT_THAT(Decided(true), ElementsAre("default/a"));
}

TEST_F(CoordinatorTest, GangsDifferByJobNamespaceAndController) {
  Permit(Member("a", "2"));
  EXPECT_EQ(Permit(Member("b", "2", "other")).code(), sdk::kWait);
  PodBuilder elsewhere("c", "elsewhere");
  elsewhere.Label("job-name", "train").Annotation("outboard/min-replicas", "2");
  EXPECT_EQ(Permit(elsewhere).code(), sdk::kWait);
  v1beta1::Pod remade = Member("d", "2");
  remade.mutable_controller()->set_uid("job-2");
  EXPECT_EQ(Permit(remade).code(), sdk::kWait);
  PodBuilder newer("e");
  newer.Label("batch.kubernetes.io/job-name", "train").Annotation("min-replicas", "2");
  EXPECT_EQ(Permit(newer), Verdict::Success());
  EXPECT_THAT(Decided(true), ElementsAre("default/a"));
}

TEST_F(CoordinatorTest, UnreserveGivesAllWaitingMembersBackOnce) {
  Permit(Member("a", "4"));
  Permit(Member("b", "4"));
  Permit(Member("c", "4"));
  Permit(Member("x", "2", "other"));
  const std::vector<sdk::WaitDecision> decisions = harness_->Unreserve(Member("b", "4"), "n1");
  EXPECT_THAT(Pods(decisions, false), ElementsAre("default/a", "default/c"));
  ASSERT_EQ(decisions.size(), 2u);
  EXPECT_EQ(decisions[0].message,
            "gang \"train\": pod b released its place on n1; 2 others were placed");
  EXPECT_EQ(decisions[0].attempt_id, AttemptOf("default/a"));
  // The shim unreserves these in turn, and reports each.
  EXPECT_THAT(harness_->Unreserve(Member("a", "4"), "n1"), IsEmpty());
}

TEST_F(CoordinatorTest, ARejectedGangCanWaitAgain) {
  Permit(Member("a", "2"));
  Permit(Member("b", "3", "train"));
  harness_->Unreserve(Member("b", "3"), "n1");
  harness_->Place("default/b", v1beta1::PLACEMENT_STATE_UNPLACED, "");
  harness_->Place("default/a", v1beta1::PLACEMENT_STATE_UNPLACED, "");
  EXPECT_EQ(Permit(Member("a", "2")), Verdict(sdk::kWait, "gang \"train\": 1 of 2 members placed"));
  EXPECT_EQ(Permit(Member("b", "2")), Verdict::Success());
  EXPECT_THAT(Decided(true), ElementsAre("default/a"));
}

TEST_F(CoordinatorTest, UnreserveOfAPodOutsideOfAGangDecidesNothing) {
  Permit(Member("a", "2"));
  Permit(PodBuilder("single"));
  EXPECT_THAT(harness_->Unreserve(PodBuilder("single"), "n1"), IsEmpty());
}

TEST_F(CoordinatorTest, TheFirstToWaitCallsTheOthersOnceThereAreEnough) {
  harness_->AddPod(Member("b", "3"));
  Permit(Member("a", "3"));
  EXPECT_THAT(harness_->TakeActivated(), IsEmpty()) << "two can never be three";
  harness_->Place("default/a", v1beta1::PLACEMENT_STATE_UNPLACED, "");  // Its wait ran out.
  harness_->AddPod(Member("c", "3"));
  EXPECT_THAT(harness_->TakeActivated(), ElementsAre("default/a", "default/b", "default/c"));
  Permit(Member("c", "3"));
  EXPECT_THAT(harness_->TakeActivated(), ElementsAre("default/a", "default/b"));
  Permit(Member("a", "3"));
  EXPECT_THAT(harness_->TakeActivated(), IsEmpty()) << "the first member has activated them";
  EXPECT_EQ(Permit(Member("b", "3")), Verdict::Success());
  EXPECT_THAT(harness_->TakeActivated(), IsEmpty());
}

TEST_F(CoordinatorTest, MembersBeingDeletedAreNotWaitedFor) {
  v1beta1::Pod leaving = Member("leaving", "2");
  leaving.set_deletion_unix_seconds(1);
  harness_->AddPod(leaving);
  Permit(Member("a", "2"));
  EXPECT_THAT(harness_->TakeActivated(), IsEmpty());
}

TEST_F(CoordinatorTest, ARejectedMemberIsHelpedByOthersThatHaveAPlaceAndByItself) {
  const v1beta1::Pod member = Member("a", "2");
  v1beta1::Pod other = Member("b", "2");
  other.set_node_name("n1");
  v1beta1::Pod of_another_gang = Member("x", "2", "other");
  of_another_gang.set_node_name("n1");
  sdk::ObjectChange change;
  change.resource = "AssignedPod";
  change.action = v1beta1::ClusterEvent::ACTION_ADD;
  change.new_pod = &other;
  EXPECT_EQ(harness_->Hint(member, change), "queue");
  change.new_pod = &of_another_gang;
  EXPECT_EQ(harness_->Hint(member, change), "skip");
  change.new_pod = &other;
  change.old_pod = &other;
  change.action = v1beta1::ClusterEvent::ACTION_UPDATE_POD_LABEL;
  EXPECT_EQ(harness_->Hint(member, change), "skip");
  change.action = v1beta1::ClusterEvent::ACTION_DELETE;
  EXPECT_EQ(harness_->Hint(member, change), "not registered");
  change.resource = "UnscheduledPod";
  change.action = v1beta1::ClusterEvent::ACTION_UPDATE_OTHER;
  change.old_pod = change.new_pod = &member;
  EXPECT_EQ(harness_->Hint(member, change), "queue") << "another number of replicas";
}

TEST_F(CoordinatorTest, AnUnreadableSizeIsRejectedRatherThanTakenForASinglePod) {
  for (const char* text : {"many", "0", "-1", "2.5", "100001", "+5", " 5", "1e3"}) {
    EXPECT_EQ(Permit(Member("a", text)),
              Verdict::Unresolvable(std::string("gang \"train\": \"") + text +
                                    "\" is not a number of replicas between 1 and 100000"));
  }
}

TEST_F(CoordinatorTest, ArgsSetTimeoutAndDefaultSize) {
  Start("{\"timeoutSeconds\": 900, \"defaultMinReplicas\": 2}");
  EXPECT_EQ(Permit(Member("a", "")), Verdict(sdk::kWait, "gang \"train\": 1 of 2 members placed"));
  EXPECT_EQ(answer_.timeout, absl::Seconds(900));
}

TEST_F(CoordinatorTest, ArgsAreChecked) {
  for (const char* args : {"{\"timeoutSeconds\": 0}", "{\"timeoutSeconds\": 901}",
                           "{\"defaultMinReplicas\": 0}", "{\"timeout\": 30}"}) {
    EXPECT_FALSE(PluginHarness::Create(Descriptor(), args).ok()) << args;
  }
}

// The profile enables the plugin only at these points.
sdk::PluginDescriptor At(std::vector<sdk::ExtensionPoint> points) {
  sdk::PluginDescriptor descriptor = Descriptor();
  descriptor.extension_points = std::move(points);
  return descriptor;
}

TEST_F(CoordinatorTest, MembersOfAnIncompleteJobWaitBeforeTheQueue) {
  const v1beta1::Pod a = Member("a", "3"), b = Member("b", "3"), c = Member("c", "3");
  EXPECT_EQ(harness_->PreEnqueue(a),
            Verdict::Unresolvable("gang \"train\": fewer than 3 members exist"));
  EXPECT_EQ(harness_->PreEnqueue(b),
            Verdict::Unresolvable("gang \"train\": fewer than 3 members exist"));
  EXPECT_EQ(harness_->PreFilter(b).verdict,
            Verdict::Unresolvable("gang \"train\": 2 of 3 members exist"));
  EXPECT_THAT(harness_->TakeGateChanges(), IsEmpty());
  EXPECT_EQ(harness_->PreEnqueue(c), Verdict::Success());
  EXPECT_THAT(harness_->TakeGateChanges(), ElementsAre("default/a", "default/b", "default/c"));
  EXPECT_EQ(harness_->PreEnqueue(a), Verdict::Success());
  EXPECT_TRUE(harness_->PreFilter(a).verdict.skip());
  // The shim may not have had the answer about `a` when this arrived.
  harness_->Tick();
  EXPECT_THAT(harness_->TakeGateChanges(), ElementsAre("default/a", "default/b", "default/c"));
  harness_->Tick();
  EXPECT_THAT(harness_->TakeGateChanges(), IsEmpty());
}

TEST_F(CoordinatorTest, SinglePodsAndUnreadableSizesAreNotHeldBeforeTheQueue) {
  EXPECT_EQ(harness_->PreEnqueue(PodBuilder("single")), Verdict::Success());
  EXPECT_EQ(harness_->PreEnqueue(Member("no-size", "")), Verdict::Success());
  EXPECT_EQ(harness_->PreEnqueue(Member("many", "many")), Verdict::Success())
      << "the attempt reports it";
  EXPECT_THAT(harness_->TakeGateChanges(), IsEmpty());
  EXPECT_THAT(harness_->TakeActivated(), IsEmpty());
}

TEST_F(CoordinatorTest, WithoutPreEnqueueGatesAreNotMentioned) {
  harness_ = *PluginHarness::Create(
      At({v1beta1::EXTENSION_POINT_PRE_FILTER, v1beta1::EXTENSION_POINT_PERMIT}));
  for (const char* name : {"a", "b"}) harness_->AddPod(Member(name, "2"));
  EXPECT_THAT(harness_->TakeGateChanges(), IsEmpty());
  EXPECT_THAT(harness_->TakeActivated(), ElementsAre("default/a", "default/b"));
}

TEST_F(CoordinatorTest, AtPermitAloneReleasedPlacesAreSeenInTheCache) {
  harness_ = *PluginHarness::Create(At({v1beta1::EXTENSION_POINT_PERMIT}));
  harness_->AddNode(NodeBuilder("n1"));
  for (const char* name : {"a", "b", "c"}) EXPECT_EQ(Permit(Member(name, "4")).code(), sdk::kWait);
  EXPECT_EQ(Permit(Member("x", "2", "other")).code(), sdk::kWait);
  EXPECT_THAT(harness_->TakeDecisions(), IsEmpty());
  harness_->Place("default/b", v1beta1::PLACEMENT_STATE_UNPLACED, "");
  const std::vector<sdk::WaitDecision> decisions = harness_->TakeDecisions();
  EXPECT_THAT(Pods(decisions, false), ElementsAre("default/a", "default/c"));
  ASSERT_EQ(decisions.size(), 2u);
  EXPECT_EQ(decisions[0].message, "gang \"train\": pod b released its place; 2 others were placed");
  EXPECT_EQ(decisions[0].attempt_id, AttemptOf("default/a"));
  // They no longer count.
  EXPECT_EQ(Permit(Member("d", "2")), Verdict(sdk::kWait, "gang \"train\": 1 of 2 members placed"));
  harness_->Place("default/a", v1beta1::PLACEMENT_STATE_UNPLACED, "");
  EXPECT_THAT(Pods(harness_->TakeDecisions(), false), ElementsAre("default/d"));
}

TEST_F(CoordinatorTest, AtPermitAloneDeletedMembersReleaseTheOthers) {
  harness_ = *PluginHarness::Create(At({v1beta1::EXTENSION_POINT_PERMIT}));
  harness_->AddNode(NodeBuilder("n1"));
  for (const char* name : {"a", "b"}) Permit(Member(name, "3"));
  harness_->RemovePod("default/a");
  EXPECT_THAT(Pods(harness_->TakeDecisions(), false), ElementsAre("default/b"));
}

TEST_F(CoordinatorTest, AtPermitAloneBoundMembersReleaseNothing) {
  harness_ = *PluginHarness::Create(At({v1beta1::EXTENSION_POINT_PERMIT}));
  harness_->AddNode(NodeBuilder("n1"));
  Permit(Member("a", "3"));
  v1beta1::Pod bound = Member("b", "3");
  Permit(bound);
  bound.set_node_name("n1");
  harness_->AddPod(bound);
  harness_->RemovePod("default/b");
  EXPECT_THAT(harness_->TakeDecisions(), IsEmpty());
}

TEST(CoordinatorDescriptorTest, WithoutPermitAConfigurationIsRefused) {
  const std::vector<std::vector<sdk::ExtensionPoint>> subsets = {
      {v1beta1::EXTENSION_POINT_PRE_FILTER},
      {v1beta1::EXTENSION_POINT_RESERVE},
      {v1beta1::EXTENSION_POINT_PRE_ENQUEUE, v1beta1::EXTENSION_POINT_PRE_FILTER,
       v1beta1::EXTENSION_POINT_RESERVE}};
  for (const std::vector<sdk::ExtensionPoint>& points : subsets) {
    EXPECT_EQ(PluginHarness::Create(At(points)).status().message(),
              "must be enabled at permit, where members wait for each other: without it a part of "
              "a gang would be bound");
  }
}

TEST(CoordinatorDescriptorTest, AsksForTheFieldsOfJobs) {
  const sdk::PluginDescriptor d = Descriptor();
  EXPECT_THAT(d.needed_fields, IsSupersetOf({"Pod.metadata.annotations['outboard/min-replicas']",
                                             "Pod.metadata.annotations['min-replicas']"}));
  ASSERT_EQ(d.interests.size(), 3u);
  for (const v1beta1::Interest& interest : d.interests) {
    EXPECT_THAT(interest.any_field_set(),
                IsSupersetOf({"metadata.labels['job-name']",
                              "metadata.labels['batch.kubernetes.io/job-name']"}));
  }
}

}  // namespace
}  // namespace outboard::atomic_replica_coordinator
