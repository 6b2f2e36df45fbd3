// Gangs leave down to their size, or as a whole; pods that wait for checkpoints are activated.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "plugin_host/sdk/job_gangs.h"
#include "plugin_host/sdk/testing/builders.h"
#include "plugin_host/sdk/testing/preemption_harness.h"
#include "plugins/cost_aware_preemptor/checkpoint_waiters.h"
#include "plugins/cost_aware_preemptor/cost_aware_preemptor.h"

namespace outboard::cost_aware_preemptor::gangs_test {
namespace {

using sdk::testing::NodeBuilder;
using sdk::testing::PodBuilder;
using sdk::testing::PreemptionHarness;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr int64_t kNow = 1767614400;  // 2026-01-05T12:00:00Z

class GangsTest : public ::testing::Test {
 protected:
  // Nodes with 4 GPUs each.
  void Start(int nodes, const std::string& args = "") {
    auto harness = PreemptionHarness::Create(Descriptor(), {sdk::testing::RoomFilter()}, args);
    ASSERT_TRUE(harness.ok()) << harness.status();
    harness_ = *std::move(harness);
    SetNow(0);
    for (int i = 1; i <= nodes; ++i) {
      harness_->AddNode(NodeBuilder(absl::StrCat("n", i)).Allocatable({{"nvidia.com/gpu", "4"}}));
    }
  }
  void SetNow(int64_t seconds) { harness_->SetNow(absl::FromUnixSeconds(kNow + seconds)); }
  static PodBuilder Pod(const std::string& name, const std::string& node, const std::string& gpus,
                        const char* restart = "300") {
    PodBuilder pod(name);
    pod.OnNode(node).Requests({{"nvidia.com/gpu", gpus}});
    pod.Annotation("outboard/restart-seconds", restart);
    return pod;
  }
  static PodBuilder Member(const std::string& name, const std::string& node,
                           const std::string& gpus, int min, const char* restart = "300") {
    PodBuilder pod = Pod(name, node, gpus, restart);
    pod.Label("job-name", "train").Annotation("outboard/min-replicas", absl::StrCat(min));
    return pod;
  }
  static PodBuilder Preemptor(const std::string& gpus, const std::string& name = "p") {
    return PodBuilder(name).Priority(10).Requests({{"nvidia.com/gpu", gpus}});
  }
  std::vector<std::string> VictimsFor(const v1beta1::Pod& preemptor) {
    const v1beta1::PostFilterResponse response = harness_->Attempt(preemptor);
    companions_.clear();
    if (response.candidates().candidates().empty()) {
      rejection_ = response.rejection().status().reasons(0);
      return {};
    }
    const auto& best = response.candidates().candidates(0);
    companions_.assign(best.companion_uids().begin(), best.companion_uids().end());
    return {best.victim_uids().begin(), best.victim_uids().end()};
  }

  std::unique_ptr<PreemptionHarness> harness_;
  std::vector<std::string> companions_;
  std::string rejection_;
};

TEST_F(GangsTest, SurplusLeavesBeforeTheWhole) {
  Start(2);
  harness_->AddPod(Member("a", "n1", "2", 2));
  harness_->AddPod(Member("b", "n1", "2", 2));
  harness_->AddPod(Member("c", "n2", "4", 2, "10"));
  // One of three may leave: on n2 one is enough, and it is the cheapest.
  EXPECT_THAT(VictimsFor(Preemptor("2")), ElementsAre("default/c"));
  EXPECT_THAT(companions_, IsEmpty());
}

TEST_F(GangsTest, MoreThanTheSurplusTakesAll) {
  Start(2);
  harness_->AddPod(Member("a", "n1", "2", 2));
  harness_->AddPod(Member("b", "n1", "2", 2));
  harness_->AddPod(Member("c", "n2", "4", 3));
  EXPECT_THAT(VictimsFor(Preemptor("2")), UnorderedElementsAre("default/a", "default/b"));
  EXPECT_THAT(companions_, ElementsAre("default/c"));
}

TEST_F(GangsTest, TheWholeIsWhatItCosts) {
  Start(3);
  harness_->AddPod(Member("a", "n1", "4", 2, "10"));
  harness_->AddPod(Member("b", "n2", "4", 2, "500"));
  harness_->AddPod(Pod("single", "n3", "4", "400"));
  EXPECT_THAT(VictimsFor(Preemptor("4")), ElementsAre("default/single"))
      << "400 s rather than 510 s";
}

TEST_F(GangsTest, AGangOfWhichOneMayNotLeaveStays) {
  Start(2);
  harness_->AddPod(Member("a", "n1", "4", 2));
  PodBuilder important = Member("b", "n2", "4", 2);
  harness_->AddPod(important.Priority(10));
  EXPECT_THAT(VictimsFor(Preemptor("4")), IsEmpty());
  EXPECT_EQ(rejection_,
            "preemption: 0/2 nodes are available: 2 No preemption victims found for incoming pod. "
            "Members of gangs that would break: 1.");
}

TEST_F(GangsTest, WhereOnlyAPartMayLeaveAndAllWouldHaveTo) {
  Start(2);
  harness_->AddPod(Member("a", "n1", "2", 2));
  harness_->AddPod(Member("b", "n1", "2", 2));
  PodBuilder important = Member("c", "n2", "4", 2);
  harness_->AddPod(important.Priority(10));
  EXPECT_THAT(VictimsFor(Preemptor("4")), IsEmpty());
  EXPECT_THAT(rejection_, HasSubstr("1 Only parts of gangs would make room"));
  EXPECT_THAT(VictimsFor(Preemptor("2")), ::testing::SizeIs(1));
}

TEST_F(GangsTest, MembersThatLeaveAlreadyAreNoneAnyMore) {
  Start(3);
  harness_->AddPod(Member("a", "n1", "4", 1));
  PodBuilder leaving = Member("b", "n2", "4", 1);
  leaving.proto().set_deletion_unix_seconds(kNow - 1);
  harness_->AddPod(leaving);
  harness_->AddPod(Member("c", "n3", "4", 2));
  EXPECT_THAT(VictimsFor(Preemptor("4")), ElementsAre("default/b")) << "its eviction is free";
  EXPECT_THAT(companions_, IsEmpty());
}

TEST_F(GangsTest, APodDoesNotHaveItsOwnGroupLeave) {
  Start(1);
  harness_->AddPod(Member("a", "n1", "4", 1));
  PodBuilder launcher = Preemptor("4");
  launcher.Label("job-name", "train");
  EXPECT_THAT(VictimsFor(launcher), IsEmpty());
  EXPECT_THAT(rejection_, HasSubstr("Members of gangs that would break: 1."));
  EXPECT_THAT(VictimsFor(Preemptor("4", "q")), ElementsAre("default/a"));
}

// Its number is the Job's, also while it runs; a member that is retried may preempt alone.
TEST_F(GangsTest, AJobWithoutAnnotationIsAGangWhereItAsks) {
  Start(3);
  v1beta1::ClusterObject object;
  v1beta1::GenericObject& job = *object.mutable_generic_object();
  job.set_resource(sdk::kJobs);
  job.set_namespace_("default");
  job.set_name("train");
  job.set_uid("u1");
  job.set_json(R"({"spec": {"parallelism": 3, "completions": 3}})");
  harness_->AddObject(object);
  const auto member = [](const char* name) {
    PodBuilder pod(name);
    pod.Requests({{"nvidia.com/gpu", "4"}}).Annotation("outboard/restart-seconds", "10");
    pod.Label("job-name", "train").Label("outboard/gang", "true");
    pod.proto().mutable_controller()->set_kind("Job");
    pod.proto().mutable_controller()->set_uid("u1");
    return pod;
  };
  harness_->AddPod(member("a").OnNode("n1"));
  harness_->AddPod(member("b").OnNode("n2"));
  harness_->AddPod(Pod("single", "n3", "4", "15"));
  EXPECT_THAT(VictimsFor(Preemptor("4")), ElementsAre("default/single"))
      << "15 s rather than twice 10 s";
  EXPECT_THAT(VictimsFor(member("c").Priority(10)), ElementsAre("default/single"));
  harness_->AddPod(Pod("single", "n3", "4", "25"));
  EXPECT_THAT(VictimsFor(Preemptor("4", "q")), ::testing::SizeIs(1));
  EXPECT_THAT(companions_, ::testing::SizeIs(1)) << "both members leave";
}

// An eviction for one of four members would not help.
TEST_F(GangsTest, NoPodIsEvictedForAPartOfAGang) {
  Start(1);
  harness_->AddPod(Pod("a", "n1", "4"));
  const auto member = [&](const std::string& name) {
    PodBuilder pod = Preemptor("4", name);
    pod.Annotation("gang.scheduling.koordinator.sh/name", "train");
    pod.Annotation("gang.scheduling.koordinator.sh/min-available", "3");
    return pod;
  };
  EXPECT_THAT(VictimsFor(member("p")), IsEmpty());
  EXPECT_EQ(rejection_, "preemption: gang \"train\" would not be complete: 0 of 3 members run.");
  for (const char* node : {"n2", "n3"}) {
    harness_->AddNode(NodeBuilder(node).Allocatable({{"nvidia.com/gpu", "4"}}));
    harness_->AddPod(member(node).OnNode(node));
  }
  EXPECT_THAT(VictimsFor(member("p")), ElementsAre("default/a")) << "the last member";
  PodBuilder outsider = Preemptor("4", "q");
  EXPECT_THAT(VictimsFor(outsider.Label("scheduling.x-k8s.io/pod-group", "x")), IsEmpty());
  EXPECT_EQ(rejection_, "preemption: gang \"x\" has an unknown number of members.");
}

TEST_F(GangsTest, JobsWithoutANumberAreNoGangsUnlessArgsSaySo) {
  for (const bool gang : {false, true}) {
    Start(2, gang ? R"({"defaultMinReplicas": 2})" : "");
    for (const char* name : {"a", "b"}) {
      PodBuilder pod = Pod(name, name[0] == 'a' ? "n1" : "n2", "4");
      harness_->AddPod(pod.Label("job-name", "train"));
    }
    EXPECT_THAT(VictimsFor(Preemptor("4")), ElementsAre("default/a"));
    EXPECT_EQ(companions_.size(), gang ? 1u : 0u);
  }
}

// Two preemptors at the same time: the second must not count on a surplus that the first takes.
TEST_F(GangsTest, SurplusIsTakenOnce) {
  Start(3);
  for (int i = 1; i <= 3; ++i)
    harness_->AddPod(Member(absl::StrCat("m", i), absl::StrCat("n", i), "4", 2));
  EXPECT_THAT(VictimsFor(Preemptor("4")), ElementsAre("default/m1"));
  EXPECT_THAT(companions_, IsEmpty());
  EXPECT_THAT(VictimsFor(Preemptor("4")), ElementsAre("default/m1")) << "the same preemptor";
  EXPECT_THAT(companions_, IsEmpty());
  EXPECT_THAT(VictimsFor(Preemptor("4", "q")), ElementsAre("default/m1"));
  EXPECT_THAT(companions_, UnorderedElementsAre("default/m2", "default/m3"));
  SetNow(61);
  EXPECT_THAT(VictimsFor(Preemptor("4", "r")), ElementsAre("default/m1"));
  EXPECT_THAT(companions_, IsEmpty()) << "the eviction did not happen";
}

TEST_F(GangsTest, WhatWasPromisedAndShowsIsNotCountedTwice) {
  Start(4);
  for (int i = 1; i <= 4; ++i)
    harness_->AddPod(Member(absl::StrCat("m", i), absl::StrCat("n", i), "4", 2));
  EXPECT_THAT(VictimsFor(Preemptor("4")), ElementsAre("default/m1"));
  PodBuilder leaving = Member("m1", "n1", "4", 2);
  leaving.proto().set_deletion_unix_seconds(kNow);
  leaving.Priority(11);  // Useless to others.
  harness_->AddPod(leaving);
  EXPECT_THAT(VictimsFor(Preemptor("4", "q")), ElementsAre("default/m2"));
  EXPECT_THAT(companions_, IsEmpty());
}

TEST_F(GangsTest, APodThatWaitsForACheckpointIsRetriedWhenItIsWritten) {
  Start(1);
  PodBuilder trains = Pod("trains", "n1", "4");
  trains.Label("workload-type", "training").Annotation("outboard/checkpointing", "true");
  trains.Annotation("outboard/last-checkpoint-time", "2026-01-05T11:00:00Z");
  harness_->AddPod(trains);
  for (const char* name : {"p", "q", "r"}) EXPECT_THAT(VictimsFor(Preemptor("4", name)), IsEmpty());
  EXPECT_THAT(harness_->Tick(), IsEmpty());
  trains.Label("unrelated", "change");
  harness_->AddPod(trains);
  EXPECT_THAT(harness_->Tick(), IsEmpty());
  trains.Annotation("outboard/last-checkpoint-time", "2026-01-05T12:00:00Z");
  harness_->AddPod(trains);
  EXPECT_THAT(harness_->Tick(), ElementsAre("default/p")) << "one of the three";
  EXPECT_THAT(harness_->Tick(), IsEmpty());
  EXPECT_THAT(VictimsFor(Preemptor("4", "p")), ElementsAre("default/trains"));
  // Its wait has ended: the others are next.
  trains.Annotation("volcano.sh/last-checkpoint-time", "2026-01-05T12:01:00Z");
  harness_->AddPod(trains);
  EXPECT_THAT(harness_->Tick(), ElementsAre("default/q"));
}

// The checkpoint of a member on another node may be what is missing.
TEST_F(GangsTest, APodThatWaitsForAMembersCheckpointIsRetriedToo) {
  Start(2);
  harness_->AddPod(Member("a", "n1", "4", 2));
  PodBuilder trains = Member("b", "n2", "4", 2);
  trains.Label("workload-type", "training").Annotation("outboard/checkpointing", "true");
  harness_->AddPod(trains);
  EXPECT_THAT(VictimsFor(Preemptor("4")), IsEmpty());
  trains.Annotation("outboard/last-checkpoint-time", "2026-01-05T11:59:00Z");
  harness_->AddPod(trains);
  EXPECT_THAT(harness_->Tick(), ElementsAre("default/p"));
  EXPECT_FALSE(VictimsFor(Preemptor("4")).empty());
}

TEST(CheckpointWaitersTest, WaitersAreRetriedInTurnsNotAllAtOnce) {
  CheckpointWaiters waiters;
  const auto add = [&](const std::string& uid, int32_t priority) {
    v1beta1::Pod pod;
    pod.set_uid(uid);
    pod.set_priority(priority);
    waiters.Add(pod);
  };
  absl::Time now = absl::FromUnixSeconds(kNow);
  for (int i = 0; i < 1000; ++i) add(absl::StrCat("low-", i), 5);
  add("high", 9);
  add("lowest", 1);
  EXPECT_THAT(waiters.TakeDue(now), IsEmpty());
  waiters.OnCheckpoint(1);
  waiters.OnCheckpoint(1);
  EXPECT_THAT(waiters.TakeDue(now), ElementsAre("high", "low-0")) << "one per written checkpoint";
  now += absl::Seconds(20);
  waiters.OnCheckpoint(1);
  EXPECT_THAT(waiters.TakeDue(now), ElementsAre("low-1")) << "they take turns";
  waiters.OnCheckpoint(9);
  EXPECT_THAT(waiters.TakeDue(now), IsEmpty()) << "no waiting pod has a higher priority";
  waiters.OnCheckpoint(8);
  EXPECT_THAT(waiters.TakeDue(now), ElementsAre("high"));
  waiters.OnCheckpoint(8);
  EXPECT_THAT(waiters.TakeDue(now), IsEmpty()) << "it was activated a moment ago";
  now += absl::Seconds(10);
  EXPECT_THAT(waiters.TakeDue(now), ElementsAre("high")) << "the delayed activation";
  for (int i = 0; i < 1000; ++i) waiters.Remove(absl::StrCat("low-", i));
  waiters.Remove("high");
  waiters.OnCheckpoint(0);
  EXPECT_THAT(waiters.TakeDue(now), ElementsAre("lowest"));
  waiters.Remove("lowest");
  EXPECT_TRUE(waiters.empty());
  waiters.OnCheckpoint(0);
  EXPECT_THAT(waiters.TakeDue(now), IsEmpty());
}

}  // namespace
}  // namespace outboard::cost_aware_preemptor::gangs_test
