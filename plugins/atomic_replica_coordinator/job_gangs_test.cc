// Gangs of Jobs without annotations: their size comes from the Job, and changes with it.
#include "plugin_host/sdk/job_gangs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "plugin_host/sdk/testing/builders.h"
#include "plugin_host/sdk/testing/plugin_harness.h"
#include "plugins/atomic_replica_coordinator/atomic_replica_coordinator.h"

namespace outboard::atomic_replica_coordinator::job_gangs_test {
namespace {

using sdk::PermitAnswer;
using sdk::Verdict;
using sdk::testing::NodeBuilder;
using sdk::testing::PluginHarness;
using sdk::testing::PodBuilder;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class JobGangsTest : public testing::Test {
 protected:
  void SetUp() override { Start(""); }
  void Start(const std::string& args) {
    auto harness = PluginHarness::Create(Descriptor(), args);
    ASSERT_TRUE(harness.ok()) << harness.status();
    harness_ = *std::move(harness);
    harness_->AddNode(NodeBuilder("n1"));
  }
  static v1beta1::Pod Member(const std::string& name, bool labelled = true) {
    PodBuilder pod(name);
    pod.Label("job-name", "train");
    if (labelled) pod.Label("outboard/gang", "true");
    pod.proto().mutable_controller()->set_kind("Job");
    pod.proto().mutable_controller()->set_name("train");
    pod.proto().mutable_controller()->set_uid("u1");
    return pod;
  }
  static v1beta1::Pod Bound(const std::string& name) {
    v1beta1::Pod pod = Member(name);
    pod.set_node_name("n1");
    return pod;
  }
  void ApplyJob(const std::string& json) {
    v1beta1::ClusterObject object;
    v1beta1::GenericObject& job = *object.mutable_generic_object();
    job.set_resource(sdk::kJobs);
    job.set_namespace_("default");
    job.set_name("train");
    job.set_uid("u1");
    job.set_resource_version(absl::StrCat(++version_));
    job.set_json(json);
    harness_->AddObject(object);
  }
  Verdict Permit(const v1beta1::Pod& pod) {
    answer_ = PermitAnswer();
    harness_->AddPod(pod);
    harness_->Place(pod.uid(), v1beta1::PLACEMENT_STATE_ASSUMED, "n1");
    Verdict verdict = harness_->Permit(pod, "n1", &answer_);
    if (verdict.code() == sdk::kWait)
      harness_->Place(pod.uid(), v1beta1::PLACEMENT_STATE_WAITING, "n1");
    return verdict;
  }

  std::unique_ptr<PluginHarness> harness_;
  PermitAnswer answer_;
  int version_ = 0;
};

TEST_F(JobGangsTest, MembersMeetAtPermit) {
  ApplyJob(R"({"spec": {"parallelism": 2, "completions": 2}})");
  EXPECT_EQ(Permit(Member("a")), Verdict(sdk::kWait, "gang \"train\": 1 of 2 members placed"));
  EXPECT_EQ(answer_.timeout, absl::Seconds(30));
  EXPECT_EQ(Permit(Member("b")), Verdict::Success());
  ASSERT_EQ(answer_.decisions.size(), 1u);
  EXPECT_TRUE(answer_.decisions[0].allow);
}

TEST_F(JobGangsTest, ARetriedMemberIsPlacedSinglyWhileAnotherRuns) {
  ApplyJob(R"({"spec": {"parallelism": 3, "completions": 3}})");
  harness_->AddPod(Bound("a"));
  EXPECT_EQ(Permit(Member("b")), Verdict::Success());
  // None runs any more: a full gang.
  harness_->RemovePod("default/a");
  harness_->RemovePod("default/b");
  EXPECT_EQ(Permit(Member("c")), Verdict(sdk::kWait, "gang \"train\": 1 of 3 members placed"));
}

// The default size of Jobs does not apply to a gang of the Job's own size.
TEST_F(JobGangsTest, TheDefaultSizeDoesNotHoldARetriedMember) {
  Start(R"({"defaultMinReplicas": 5})");
  ApplyJob(R"({"spec": {"parallelism": 3, "completions": 3}})");
  harness_->AddPod(Bound("a"));
  EXPECT_EQ(Permit(Member("b")), Verdict::Success());
}

TEST_F(JobGangsTest, TheFirstBoundMemberReleasesThoseThatWaitBeforeTheQueue) {
  ApplyJob(R"({"spec": {"parallelism": 3, "completions": 3}})");
  harness_->AddPod(Member("a"));
  harness_->AddPod(Member("b"));
  EXPECT_TRUE(harness_->PreEnqueue(Member("a")).rejected());
  harness_->TakeGateChanges();
  harness_->AddPod(Bound("b"));  // By another scheduler.
  EXPECT_THAT(harness_->TakeGateChanges(), Contains("default/a"));
  EXPECT_EQ(harness_->PreEnqueue(Member("a")), Verdict::Success());
}

TEST_F(JobGangsTest, ASmallerParallelismReleasesMembers) {
  ApplyJob(R"({"spec": {"parallelism": 4, "completions": 4}})");
  harness_->AddPod(Member("a"));
  harness_->AddPod(Member("b"));
  EXPECT_TRUE(harness_->PreEnqueue(Member("a")).rejected());
  harness_->TakeGateChanges();
  ApplyJob(R"({"spec": {"parallelism": 2, "completions": 4}})");
  EXPECT_THAT(harness_->TakeGateChanges(), ElementsAre("default/a", "default/b"));
  EXPECT_EQ(harness_->PreEnqueue(Member("a")), Verdict::Success());
  // Not for its status.
  harness_->Tick();
  harness_->TakeGateChanges();
  ApplyJob(R"({"spec": {"parallelism": 2, "completions": 4}, "status": {"active": 2}})");
  EXPECT_THAT(harness_->TakeGateChanges(), IsEmpty());
}

TEST_F(JobGangsTest, AJobThatIsSeenAfterItsPodReleasesIt) {
  // Another Job: Jobs are watched.
  v1beta1::ClusterObject other;
  other.mutable_generic_object()->set_resource(sdk::kJobs);
  other.mutable_generic_object()->set_namespace_("default");
  other.mutable_generic_object()->set_name("other");
  other.mutable_generic_object()->set_uid("u9");
  other.mutable_generic_object()->set_json("{}");
  EXPECT_EQ(harness_->PreEnqueue(Member("a", /*labelled=*/false)), Verdict::Success());
  harness_->AddObject(other);
  EXPECT_TRUE(harness_->PreEnqueue(Member("a", /*labelled=*/false)).rejected());
  harness_->TakeGateChanges();
  // It is not a gang: its pod does not wait for the others.
  ApplyJob(R"({"spec": {"parallelism": 2, "completions": 2}})");
  EXPECT_THAT(harness_->TakeGateChanges(), ElementsAre("default/a"));
  EXPECT_EQ(harness_->PreEnqueue(Member("a", /*labelled=*/false)), Verdict::Success());
}

TEST_F(JobGangsTest, ANamespaceThatLosesItsLabelReleasesItsPods) {
  harness_->AddNamespace("default", {{"outboard/gang", "true"}});
  ApplyJob(R"({"spec": {"parallelism": 2, "completions": 2}})");
  harness_->AddPod(Member("a", /*labelled=*/false));
  EXPECT_TRUE(harness_->PreEnqueue(Member("a", /*labelled=*/false)).rejected());
  harness_->TakeGateChanges();
  harness_->AddNamespace("default", {{"other", "true"}});
  EXPECT_THAT(harness_->TakeGateChanges(), ElementsAre("default/a"));
  EXPECT_EQ(harness_->PreEnqueue(Member("a", /*labelled=*/false)), Verdict::Success());
}

}  // namespace
}  // namespace outboard::atomic_replica_coordinator::job_gangs_test
