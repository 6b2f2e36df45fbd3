// AtomicReplicaCoordinator with groups other than jobs.
#include "plugin_host/sdk/pod_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "plugin_host/sdk/group_plugin.h"
#include "plugin_host/sdk/testing/builders.h"
#include "plugin_host/sdk/testing/case_runner.h"
#include "plugin_host/sdk/testing/object_store.h"
#include "plugin_host/sdk/testing/plugin_harness.h"
#include "plugins/atomic_replica_coordinator/atomic_replica_coordinator.h"

namespace outboard::atomic_replica_coordinator {
namespace {

using sdk::PermitAnswer;
using sdk::Verdict;
using sdk::testing::NodeBuilder;
using sdk::testing::ObjectStore;
using sdk::testing::PluginHarness;
using sdk::testing::PodBuilder;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kPodGroups[] = "podgroups.v1alpha1.scheduling.x-k8s.io";

TEST(Dialects, Cases) {
  sdk::testing::RunCases(Descriptor(), "plugins/atomic_replica_coordinator/testdata");
}

class PodGroupsTest : public testing::Test {
 protected:
  void SetUp() override { Start(""); }
  void Start(const std::string& args) {
    auto harness = PluginHarness::Create(Descriptor(), args);
    ASSERT_TRUE(harness.ok()) << harness.status();
    harness_ = *std::move(harness);
    store_ = std::make_unique<ObjectStore>(harness_.get());
    harness_->AddNode(NodeBuilder("n1"));
  }
  static v1beta1::Pod Member(const std::string& name, const std::string& group = "train") {
    return PodBuilder(name).Label("scheduling.x-k8s.io/pod-group", group);
  }
  void Apply(const std::string& spec, const std::string& name = "train") {
    store_->Apply(kPodGroups, "default", name, absl::StrCat("{\"spec\": ", spec, "}"));
  }
  // Calls Permit, and applies the answer to this pod as the shim does.
  Verdict Permit(const v1beta1::Pod& pod) {
    answer_ = PermitAnswer();
    harness_->AddPod(pod);
    harness_->Place(pod.uid(), v1beta1::PLACEMENT_STATE_ASSUMED, "n1");
    Verdict verdict = harness_->Permit(pod, "n1", &answer_);
    harness_->Place(pod.uid(),
                    verdict.code() == sdk::kWait ? v1beta1::PLACEMENT_STATE_WAITING
                    : verdict.ok()               ? v1beta1::PLACEMENT_STATE_ASSUMED
                                                 : v1beta1::PLACEMENT_STATE_UNPLACED,
                    verdict.rejected() ? "" : "n1");
    return verdict;
  }
  std::vector<std::string> Allowed() const {
    std::vector<std::string> pods;
    for (const sdk::WaitDecision& decision : answer_.decisions) {
      EXPECT_TRUE(decision.allow);
      pods.push_back(decision.pod_uid);
    }
    return pods;
  }

  std::unique_ptr<PluginHarness> harness_;
  std::unique_ptr<ObjectStore> store_;
  PermitAnswer answer_;
};

TEST_F(PodGroupsTest, MembersWaitUntilTheLastOneLetsAllGoAndLaterOnesGoSingly) {
  Apply(R"({"minMember": 2})");
  EXPECT_EQ(Permit(Member("a")), Verdict(sdk::kWait, "gang \"train\": 1 of 2 members placed"));
  EXPECT_EQ(answer_.timeout, absl::Seconds(60));
  EXPECT_EQ(Permit(Member("b")), Verdict::Success());
  EXPECT_THAT(Allowed(), ElementsAre("default/a"));
  harness_->Place("default/a", v1beta1::PLACEMENT_STATE_ASSUMED, "n1");
  EXPECT_EQ(Permit(Member("c")), Verdict::Success());
  EXPECT_THAT(answer_.decisions, IsEmpty());
}

TEST_F(PodGroupsTest, TheTimeoutIsThePodGroupsThenTheArgsAndNeverMoreThanFifteenMinutes) {
  Start(R"({"podGroupTimeoutSeconds": 90, "timeoutSeconds": 10})");
  Apply(R"({"minMember": 2})");
  Permit(Member("a"));
  EXPECT_EQ(answer_.timeout, absl::Seconds(90));
  Apply(R"({"minMember": 2, "scheduleTimeoutSeconds": 300})", "second");
  Permit(Member("b", "second"));
  EXPECT_EQ(answer_.timeout, absl::Seconds(300));
  Apply(R"({"minMember": 2, "scheduleTimeoutSeconds": 86400})", "third");
  Permit(Member("c", "third"));
  EXPECT_EQ(answer_.timeout, absl::Minutes(15));
  Permit(PodBuilder("d").Label("job-name", "j").Annotation("min-replicas", "2"));
  EXPECT_EQ(answer_.timeout, absl::Seconds(10));
  Permit(PodBuilder("e")
             .Annotation("gang.scheduling.koordinator.sh/name", "k")
             .Annotation("gang.scheduling.koordinator.sh/min-available", "2")
             .Annotation("gang.scheduling.koordinator.sh/waiting-time", "2m"));
  EXPECT_EQ(answer_.timeout, absl::Minutes(2));
  for (const char* args : {"{\"podGroupTimeoutSeconds\": 0}", "{\"podGroupTimeoutSeconds\": 901}"})
    EXPECT_FALSE(PluginHarness::Create(Descriptor(), args).ok()) << args;
}

TEST_F(PodGroupsTest, EachPartHasToHaveItsNumber) {
  store_->Apply("podgroups.v1beta1.scheduling.volcano.sh", "default", "job",
                R"({"spec": {"minMember": 2, "minTaskMember": {"master": 1, "worker": 2}}})");
  const auto member = [](const std::string& name, const std::string& task) {
    return PodBuilder(name)
        .Annotation("scheduling.k8s.io/group-name", "job")
        .Annotation("volcano.sh/task-spec", task);
  };
  const v1beta1::Pod master = member("m", "master");
  std::vector<v1beta1::Pod> workers;
  for (const char* name : {"a", "b", "c"}) workers.push_back(member(name, "worker"));
  for (const v1beta1::Pod& worker : workers) harness_->AddPod(worker);
  EXPECT_EQ(harness_->PreFilter(workers[0]).verdict,
            Verdict::Unresolvable("gang \"job\": 0 of 1 members of master exist"));
  harness_->TakeActivated();
  harness_->AddPod(master);
  EXPECT_THAT(harness_->TakeActivated(),
              ElementsAre("default/a", "default/b", "default/c", "default/m"));
  EXPECT_EQ(harness_->PreFilter(workers[0]).verdict, Verdict::Skip());
  EXPECT_EQ(Permit(workers[0]), Verdict(sdk::kWait, "gang \"job\": 1 of 3 members placed"));
  EXPECT_EQ(Permit(workers[1]), Verdict(sdk::kWait, "gang \"job\": 2 of 3 members placed"));
  EXPECT_EQ(Permit(workers[2]), Verdict(sdk::kWait, "gang \"job\": 1 of master are not placed"));
  EXPECT_EQ(Permit(master), Verdict::Success());
  EXPECT_THAT(Allowed(), ElementsAre("default/a", "default/b", "default/c"));
}

TEST_F(PodGroupsTest, APodGroupThatDoesNotExistIsNotFound) {
  EXPECT_EQ(harness_->PreFilter(Member("a")).verdict, Verdict::Skip());
  EXPECT_EQ(Permit(Member("a")), Verdict::Unschedulable("PodGroup not found"));
  EXPECT_THAT(harness_->TakeActivated(), IsEmpty());
  Apply(R"({"minMember": 1})");
  EXPECT_THAT(harness_->TakeActivated(), ElementsAre("default/a"));
  EXPECT_EQ(Permit(Member("a")), Verdict::Success());
}

TEST_F(PodGroupsTest, AGroupWithAnUnreadableSizeIsNotASinglePod) {
  Apply(R"({"minMember": 0})");
  const Verdict expected = Verdict::Unresolvable(
      "gang \"train\": spec.minMember: \"0\" is not a number of members between 1 and 100000");
  EXPECT_EQ(harness_->PreFilter(Member("a")).verdict, expected);
  EXPECT_EQ(Permit(Member("a")), expected);
  Apply(R"({"minMember": 1})");
  EXPECT_THAT(harness_->TakeActivated(), ElementsAre("default/a"));
}

TEST_F(PodGroupsTest, TheMemberThatMakesThemEnoughCallsTheOthers) {
  Apply(R"({"minMember": 3})");
  harness_->AddPod(Member("a"));
  v1beta1::Pod gated = Member("b");
  gated.add_scheduling_gates("quota");
  harness_->AddPod(gated);
  harness_->AddPod(Member("c"));
  EXPECT_EQ(harness_->PreFilter(Member("a")).verdict,
            Verdict::Unresolvable("gang \"train\": 2 of 3 members exist"));
  EXPECT_THAT(harness_->TakeActivated(), IsEmpty());
  gated.clear_scheduling_gates();
  harness_->AddPod(gated);
  EXPECT_THAT(harness_->TakeActivated(), ElementsAre("default/a", "default/b", "default/c"));
  EXPECT_EQ(harness_->PreFilter(Member("a")).verdict, Verdict::Skip());
  harness_->Tick();
  EXPECT_THAT(harness_->TakeActivated(), ElementsAre("default/a", "default/b", "default/c"))
      << "a rejection may be in flight";
  harness_->Tick();
  harness_->AddPod(Member("d"));
  EXPECT_THAT(harness_->TakeActivated(), IsEmpty()) << "there were enough members before";
}

TEST_F(PodGroupsTest, AnObjectActivatesMembersIfItsNumberChangesNotForItsStatus) {
  Apply(R"({"minMember": 3})");
  harness_->AddPod(Member("a"));
  harness_->AddPod(Member("b"));
  store_->Apply(kPodGroups, "default", "train",
                R"({"spec": {"minMember": 3}, "status": {"phase": "Pending"}})");
  EXPECT_THAT(harness_->TakeActivated(), IsEmpty());
  Apply(R"({"minMember": 2})");
  EXPECT_THAT(harness_->TakeActivated(), ElementsAre("default/a", "default/b"));
  store_->Apply(kPodGroups, "default", "train",
                R"({"spec": {"minMember": 2}, "status": {"phase": "Scheduling"}})");
  EXPECT_THAT(harness_->TakeActivated(), IsEmpty());
}

TEST_F(PodGroupsTest, AMemberThatReleasesItsPlaceReleasesTheOthersToo) {
  Apply(R"({"minMember": 3})");
  Permit(Member("a"));
  Permit(Member("b"));
  Permit(PodBuilder("x").Label("job-name", "train").Annotation("min-replicas", "2"));
  const std::vector<sdk::WaitDecision> decisions = harness_->Unreserve(Member("b"), "n1");
  ASSERT_EQ(decisions.size(), 1u) << "the job with the same name is another group";
  EXPECT_EQ(decisions[0].pod_uid, "default/a");
  EXPECT_EQ(decisions[0].message,
            "gang \"train\": pod b released its place on n1; 1 others were placed");
}

TEST_F(PodGroupsTest, MembersOfANonStrictGangKeepTheirPlaces) {
  const auto member = [](const char* name, const char* mode) {
    return PodBuilder(name)
        .Annotation("gang.scheduling.koordinator.sh/name", "k")
        .Annotation("gang.scheduling.koordinator.sh/min-available", "3")
        .Annotation("gang.scheduling.koordinator.sh/mode", mode);
  };
  for (const bool is_strict : {false, true}) {
    Start("");
    const char* mode = is_strict ? "Strict" : "NonStrict";
    for (const char* name : {"a", "b", "c"}) harness_->AddPod(member(name, mode));
    sdk::PluginState state;
    const sdk::Attempt attempt(1, sdk::PodView(harness_->cluster().FindPod("default/c")),
                               harness_->cluster(), absl::UnixEpoch(), &state);
    EXPECT_EQ(dynamic_cast<sdk::GroupPlugin&>(harness_->plugin()).Group(attempt).has_value(),
              is_strict);
    Permit(member("a", mode));
    Permit(member("b", mode));
    EXPECT_EQ(harness_->Unreserve(member("b", mode), "n1").size(), is_strict ? 1u : 0u);
  }
}

TEST_F(PodGroupsTest, GroupsThatAreNoGangsGoSingly) {
  store_->Apply("podgroups.v1alpha2.scheduling.k8s.io", "default", "web",
                R"({"spec": {"schedulingPolicy": {"basic": {}}}})");
  v1beta1::Pod pod = PodBuilder("a");
  pod.set_pod_group_name("web");
  EXPECT_EQ(Permit(pod), Verdict::Success());
  store_->Apply("podgroups.v2alpha2.scheduling.run.ai", "default", "elastic",
                R"({"spec": {"minMember": 0}})");
  EXPECT_EQ(Permit(PodBuilder("b").Annotation("pod-group-name", "elastic")), Verdict::Success());
}

TEST(CoordinatorDescriptorTest, CostsNothingWherePodsAreOfNoGroup) {
  const sdk::PluginDescriptor d = Descriptor();
  ASSERT_EQ(d.interests.size(), 3u);
  for (const v1beta1::Interest& interest : d.interests) {
    EXPECT_EQ(
        std::vector<std::string>(interest.any_field_set().begin(), interest.any_field_set().end()),
        sdk::GroupInterestFields());
  }
  EXPECT_EQ(d.needed_fields, sdk::GroupAnnotationFields());
  ASSERT_TRUE(d.signature.has_value()) << "otherwise no two pods of the profile are equivalent";
  for (const v1beta1::DeclaredResource& resource : d.declared_resources)
    EXPECT_TRUE(resource.optional()) << resource.resource();
}

}  // namespace
}  // namespace outboard::atomic_replica_coordinator
