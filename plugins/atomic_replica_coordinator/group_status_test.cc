// What AtomicReplicaCoordinator writes to the status of PodGroups.
#include "plugins/atomic_replica_coordinator/group_status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "plugin_host/sdk/group_plugin.h"
#include "plugin_host/sdk/testing/builders.h"
#include "plugin_host/sdk/testing/object_store.h"
#include "plugin_host/sdk/testing/plugin_harness.h"
#include "plugins/atomic_replica_coordinator/atomic_replica_coordinator.h"

namespace outboard::atomic_replica_coordinator {
namespace {

using nlohmann::json;
using sdk::testing::NodeBuilder;
using sdk::testing::ObjectStore;
using sdk::testing::PluginHarness;
using sdk::testing::PodBuilder;

constexpr char kKubernetes[] = "podgroups.v1alpha2.scheduling.k8s.io";
constexpr char kSchedulerPlugins[] = "podgroups.v1alpha1.scheduling.x-k8s.io";

class GroupStatusTest : public testing::Test {
 protected:
  void SetUp() override { Start(); }
  // A host without state, before the first sync.
  void Start() {
    auto harness = PluginHarness::Create(Descriptor());
    ASSERT_TRUE(harness.ok()) << harness.status();
    harness_ = *std::move(harness);
    harness_->AddNode(NodeBuilder("n1"));
  }
  // Another host replaces it, and gets the cluster's state.
  void Restart() {
    const json whole = store_->Get(kKubernetes, "default", "train");
    Start();
    store_ = std::make_unique<ObjectStore>(harness_.get());
    store_->Apply(kKubernetes, "default", "train", whole.dump());
    for (const char* name : {"a", "b", "c"}) harness_->AddPod(Member(name));
  }
  static v1beta1::Pod Member(const std::string& name) {
    v1beta1::Pod pod = PodBuilder(name);
    pod.set_pod_group_name("train");
    return pod;
  }
  static v1beta1::Pod Labelled(const std::string& name) {
    v1beta1::Pod pod = PodBuilder(name).Label("scheduling.x-k8s.io/pod-group", "train");
    pod.mutable_controller()->set_kind("Job");
    pod.mutable_controller()->set_name("trainer");
    return pod;
  }
  void Apply(const std::string& status = "{}") {
    store_->Apply(kKubernetes, "default", "train",
                  absl::StrCat(R"({"metadata": {"generation": 3}, "spec": {"schedulingPolicy":
                               {"gang": {"minCount": 3}}}, "status": )",
                               status, "}"));
  }
  // A search for the group found no place.
  void Reject(const v1beta1::Pod& pod, const std::string& why, bool is_error = false) {
    sdk::PluginState state;
    const sdk::Attempt attempt(1, sdk::PodView(harness_->cluster().FindPod(pod.uid())),
                               harness_->cluster(), now_, &state);
    dynamic_cast<sdk::GroupPlugin&>(harness_->plugin()).GroupRejected(attempt, why, is_error);
  }
  int Pass(absl::Duration time) {
    int writes = 0;
    for (absl::Duration passed; passed < time; passed += absl::Seconds(1))
      writes += store_->Tick(now_ += absl::Seconds(1));
    return writes;
  }
  json Condition() const {
    const json whole = store_->Get(kKubernetes, "default", "train");
    const json status = whole.value("status", json::object());
    const json* found = sdk::FindCondition(status, "PodGroupScheduled");
    return found == nullptr ? json() : *found;
  }
  std::string Said() const {
    const json found = Condition();
    if (found.is_null()) return "";
    return absl::StrCat(found["status"].get<std::string>(), " ", found["reason"].get<std::string>(),
                        ": ", found["message"].get<std::string>());
  }
  void Bind(v1beta1::Pod pod) {
    pod.set_node_name("n1");
    harness_->AddPod(pod);
  }

  std::unique_ptr<PluginHarness> harness_;
  std::unique_ptr<ObjectStore> store_;
  absl::Time now_ = absl::FromUnixSeconds(1'790'000'000);
};

class KubernetesTest : public GroupStatusTest {
 protected:
  void SetUp() override {
    GroupStatusTest::SetUp();
    store_ = std::make_unique<ObjectStore>(harness_.get());
    Apply();
  }
  void AddMembers() {
    for (const char* name : {"a", "b", "c"}) harness_->AddPod(Member(name));
  }
};

TEST_F(KubernetesTest, ReportsWhyAndThenScheduledPermanently) {
  AddMembers();
  EXPECT_EQ(Pass(absl::Seconds(3)), 0) << "no attempt yet";
  Reject(Member("a"), "1 of 3 members fit; 1 Insufficient cpu");
  Reject(Member("b"), "1 of 3 members fit; 1 Insufficient cpu");
  EXPECT_EQ(Pass(absl::Seconds(30)), 1) << "one write, for any number of attempts";
  EXPECT_EQ(Said(), "False Unschedulable: 1 of 3 members fit; 1 Insufficient cpu");
  EXPECT_EQ(Condition()["observedGeneration"], 3);
  const std::string since = Condition()["lastTransitionTime"];
  Reject(Member("a"), "2 of 3 members fit");
  EXPECT_EQ(Pass(absl::Seconds(5)), 1);
  EXPECT_EQ(Said(), "False Unschedulable: 2 of 3 members fit");
  EXPECT_EQ(Condition()["lastTransitionTime"], since) << "the status has not changed";

  Bind(Member("a"));
  Bind(Member("b"));
  harness_->Place("default/c", v1beta1::PLACEMENT_STATE_ASSUMED, "n1");
  EXPECT_EQ(Pass(absl::Seconds(20)), 0) << "the last bind may fail";
  Bind(Member("c"));
  EXPECT_EQ(Pass(absl::Seconds(1)), 1);
  EXPECT_EQ(Said(), "True Scheduled: ");
  EXPECT_NE(Condition()["lastTransitionTime"], since);
  harness_->RemovePod("default/c");
  EXPECT_EQ(Pass(absl::Seconds(60)), 0) << "as with kube-scheduler";
}

TEST_F(KubernetesTest, ATextAloneIsWrittenEveryTenSecondsAtMost) {
  AddMembers();
  int writes = 0;
  for (int second = 0; second < 60; ++second) {
    Reject(Member("a"), absl::StrCat(second, " of 90 members fit"));
    writes += Pass(absl::Seconds(1));
  }
  EXPECT_GE(writes, 4);
  EXPECT_LE(writes, 6);
  EXPECT_EQ(Pass(absl::Seconds(12)), 1);
  EXPECT_EQ(Said(), "False Unschedulable: 59 of 90 members fit") << "the last result";
  Bind(Member("a"));
  Bind(Member("b"));
  Bind(Member("c"));
  Pass(absl::Seconds(2));
  EXPECT_EQ(Said(), "True Scheduled: ") << "written without delay";
}

TEST_F(KubernetesTest, AnErrorIsReported) {
  AddMembers();
  Reject(Member("a"), "no such thing", /*is_error=*/true);
  Pass(absl::Seconds(1));
  EXPECT_EQ(Said(), "False SchedulerError: no such thing");
}

TEST_F(KubernetesTest, MembersThatAreStillComingAreNoNewsForTenSeconds) {
  harness_->AddPod(Member("a"));
  EXPECT_EQ(Pass(absl::Seconds(9)), 0);
  EXPECT_EQ(Pass(absl::Seconds(3)), 1);
  EXPECT_EQ(Said(), "False Unschedulable: 1 of 3 members exist");
  harness_->AddPod(Member("b"));
  harness_->AddPod(Member("c"));
  harness_->Place("default/a", v1beta1::PLACEMENT_STATE_WAITING, "n1");
  harness_->Place("default/b", v1beta1::PLACEMENT_STATE_WAITING, "n1");
  Pass(absl::Seconds(20));
  EXPECT_EQ(Said(), "False Unschedulable: 2 of 3 members placed");
  // The result of a search is more precise.
  Reject(Member("c"), "2 of 3 members fit; 1 Insufficient cpu");
  Pass(absl::Seconds(20));
  EXPECT_EQ(Said(), "False Unschedulable: 2 of 3 members fit; 1 Insufficient cpu");
}

TEST_F(KubernetesTest, AMemberThatGivesItsPlaceBackIsNamed) {
  AddMembers();
  harness_->Place("default/a", v1beta1::PLACEMENT_STATE_ASSUMED, "n1");
  harness_->Place("default/b", v1beta1::PLACEMENT_STATE_ASSUMED, "n1");
  harness_->Place("default/c", v1beta1::PLACEMENT_STATE_ASSUMED, "n1");
  harness_->Unreserve(Member("b"), "n1");  // Its bind failed.
  harness_->Place("default/b", v1beta1::PLACEMENT_STATE_UNPLACED, "");
  Pass(absl::Seconds(1));
  EXPECT_EQ(Said(), "False Unschedulable: pod b released its place on n1; 2 others were placed");
}

TEST_F(KubernetesTest, AnotherHostComesToTheSameAndKeepsWhatASearchSaid) {
  AddMembers();
  Reject(Member("a"), "1 of 3 members fit; 1 Insufficient cpu");
  Pass(absl::Seconds(1));
  const json before = Condition();
  Restart();
  EXPECT_EQ(Pass(absl::Seconds(60)), 0) << "its information is less precise";
  EXPECT_EQ(Condition(), before);
  Reject(Member("a"), "1 of 3 members fit; 1 Insufficient cpu");
  EXPECT_EQ(Pass(absl::Seconds(20)), 0);
  for (const char* name : {"a", "b", "c"}) Bind(Member(name));
  EXPECT_EQ(Pass(absl::Seconds(1)), 1);
  EXPECT_EQ(Said(), "True Scheduled: ");
  Restart();
  for (const char* name : {"a", "b", "c"}) Bind(Member(name));
  EXPECT_EQ(Pass(absl::Seconds(60)), 0);
}

TEST_F(KubernetesTest, WhatOthersWroteStays) {
  Apply(R"({"conditions": [{"type": "DisruptionTarget", "status": "True"}],
            "resourceClaimStatuses": [{"name": "c"}]})");
  AddMembers();
  Reject(Member("a"), "1 of 3 members fit");
  Pass(absl::Seconds(1));
  EXPECT_EQ(Said(), "False Unschedulable: 1 of 3 members fit");
  const json status = store_->Get(kKubernetes, "default", "train")["status"];
  EXPECT_TRUE(sdk::IsConditionTrue(status, "DisruptionTarget"));
  EXPECT_EQ(status["resourceClaimStatuses"][0]["name"], "c");
}

TEST_F(KubernetesTest, AGroupThatAnotherWriterMarkedScheduledStaysScheduled) {
  Apply(R"({"conditions": [{"type": "PodGroupScheduled", "status": "True", "reason": "Mine"}]})");
  AddMembers();
  Reject(Member("a"), "1 of 3 members fit");
  EXPECT_EQ(Pass(absl::Seconds(30)), 0);
}

TEST_F(KubernetesTest, AnEditBetweenLookAndWriteIsNotLost) {
  AddMembers();
  Reject(Member("a"), "1 of 3 members fit");
  harness_->SetNow(now_ += absl::Seconds(1));
  harness_->Tick();
  const std::vector<v1beta1::Effect> late = harness_->TakeWritten();
  ASSERT_EQ(late.size(), 1u);
  Apply(R"({"conditions": [{"type": "DisruptionTarget", "status": "True"}]})");
  EXPECT_TRUE(absl::IsAborted(store_->Write(late[0])));
  Pass(absl::Seconds(5));
  const json status = store_->Get(kKubernetes, "default", "train")["status"];
  EXPECT_EQ(status["conditions"].size(), 2u) << status;
}

TEST_F(KubernetesTest, GroupsOfOtherSchedulersAreLeftAlone) {
  for (const char* name : {"a", "b", "c"}) {
    v1beta1::Pod pod = Member(name);
    pod.set_scheduler_name("another-scheduler");
    pod.set_node_name("n1");
    harness_->AddPod(pod);
  }
  EXPECT_EQ(Pass(absl::Seconds(60)), 0);
}

TEST_F(KubernetesTest, AWriteThatIsNotAllowedIsRetriedWithBackoff) {
  AddMembers();
  Reject(Member("a"), "1 of 3 members fit");
  size_t asked = 0;
  for (int second = 0; second < 600; ++second) {
    harness_->SetNow(now_ += absl::Seconds(1));
    harness_->Tick();
    asked += harness_->TakeWritten().size();
  }
  EXPECT_GE(asked, 5u);
  EXPECT_LE(asked, 20u);
}

TEST_F(KubernetesTest, AnUnreadableSizeIsSaidAtOnceAndLongTextsAreCut) {
  store_->Apply(kKubernetes, "default", "train",
                R"({"spec": {"schedulingPolicy": {"gang": {"minCount": 0}}}})");
  harness_->AddPod(Member("a"));
  EXPECT_EQ(Pass(absl::Seconds(1)), 1);
  EXPECT_TRUE(absl::StrContains(Said(), "is not a number of members")) << Said();
  Apply();
  AddMembers();
  std::string text;
  for (int i = 0; i < 3000; ++i) text += "é";
  Reject(Member("a"), "x" + text);
  Pass(absl::Seconds(20));
  const std::string message = Condition()["message"];
  EXPECT_LE(message.size(), 4100u);
  EXPECT_TRUE(absl::EndsWith(message, "é…"));
}

class SchedulerPluginsTest : public GroupStatusTest {
 protected:
  void SetUp() override {
    GroupStatusTest::SetUp();
    store_ = std::make_unique<ObjectStore>(harness_.get());
    Apply("{}");
  }
  void Apply(const std::string& status) {
    store_->Apply(kSchedulerPlugins, "default", "train",
                  absl::StrCat(R"({"spec": {"minMember": 2}, "status": )", status, "}"));
  }
  json Status() const { return store_->Get(kSchedulerPlugins, "default", "train")["status"]; }
};

TEST_F(SchedulerPluginsTest, ThePhaseOnlyGoesForward) {
  harness_->AddPod(Labelled("a"));
  harness_->AddPod(Labelled("b"));
  Reject(Labelled("a"), "1 of 2 members fit");
  EXPECT_EQ(Pass(absl::Seconds(30)), 1);
  EXPECT_EQ(Status(), json::parse(R"({"phase": "Pending"})"));
  Reject(Labelled("a"), "0 of 2 members fit");
  EXPECT_EQ(Pass(absl::Seconds(30)), 0) << "its status has no field for texts";
  Bind(Labelled("a"));
  Bind(Labelled("b"));
  EXPECT_EQ(Pass(absl::Seconds(30)), 1);
  EXPECT_EQ(Status(), json::parse(R"({"phase": "Scheduling", "occupiedBy": "default/trainer"})"));
  harness_->RemovePod("default/b");
  EXPECT_EQ(Pass(absl::Seconds(30)), 0);
}

TEST_F(SchedulerPluginsTest, AGroupThatIsPlacedAtOnceIsWrittenOnce) {
  harness_->AddPod(Labelled("a"));
  harness_->AddPod(Labelled("b"));
  Pass(absl::Seconds(2));
  Bind(Labelled("a"));
  Bind(Labelled("b"));
  EXPECT_EQ(Pass(absl::Seconds(30)), 1);
  EXPECT_EQ(Status()["phase"], "Scheduling");
}

TEST_F(SchedulerPluginsTest, WhatItsControllerWroteStays) {
  harness_->AddPod(Labelled("a"));
  harness_->AddPod(Labelled("b"));
  for (const char* phase : {"Scheduling", "Running", "Unknown", "Finished", "Failed"}) {
    Apply(absl::StrCat(R"({"phase": ")", phase, R"(", "running": 1})"));
    Reject(Labelled("a"), absl::StrCat("1 of 2 members fit, ", phase));
    EXPECT_EQ(Pass(absl::Seconds(20)), 0) << phase;
  }
  Apply(R"({"phase": "Pending", "occupiedBy": "default/other", "failed": 1})");
  Bind(Labelled("a"));
  Bind(Labelled("b"));
  EXPECT_EQ(Pass(absl::Seconds(20)), 1);
  EXPECT_EQ(Status(), json::parse(R"({"phase": "Scheduling", "occupiedBy": "default/other",
                                      "failed": 1})"));
}

TEST(GroupStatusDescriptorTest, OnlyTheStatusOfTwoDialectsIsWrittenAndNoneHasToBe) {
  for (const v1beta1::DeclaredResource& resource : Descriptor().declared_resources) {
    const bool is_written =
        resource.resource() == kKubernetes || resource.resource() == kSchedulerPlugins;
    EXPECT_EQ(resource.verbs_size(), is_written ? 1 : 0) << resource.resource();
    if (is_written) {
      EXPECT_EQ(resource.verbs(0), v1beta1::DeclaredResource::VERB_UPDATE_STATUS);
    }
    EXPECT_TRUE(resource.optional());
  }
}

}  // namespace
}  // namespace outboard::atomic_replica_coordinator
