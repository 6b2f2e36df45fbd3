// Groups of pods whose placements plugins of another host choose: the steps, failures, PostFilter.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shim/framework/testing/scripted_host.h"
#include "shim/scheduler/scheduler.h"
#include "shim/scheduler/testing/recorded_actions.h"

namespace outboard::scheduler::group_placements_test {
namespace {

using framework::ScriptedHost;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kProfile[] = "outboard";

class Errors final : public Observer {
 public:
  void OnProtocolError(const std::string& host, const std::string&,
                       const absl::Status& status) override {
    all.push_back(absl::StrCat(host, ": ", status.message()));
  }
  std::vector<std::string> all;
};

// Host "groups" knows that a and b are a group, and places them on the first nodes that it may use;
// host "racks" generates and scores placements. Nodes n1 to n4 are in slots 0 to 3; racks are
// {n1, n2} and {n3, n4}.
class GroupPlacementsTest : public ::testing::Test {
 protected:
  GroupPlacementsTest()
      : scheduler_({}, queue::QueueOptions(), &effects_, &errors_, nullptr, now_) {
    scheduler_.SetProfileNames({kProfile});
    for (const v1beta1::Capability capability :
         {v1beta1::CAPABILITY_GROUP_PLAN, v1beta1::CAPABILITY_GROUP_PLACEMENTS})
      groups_.CanAlso(capability);
    Program();
    scheduler_.SetPlan(Plan());
    scheduler_.SetHost("groups", &groups_, scheduler_.cluster()->AddHost({}), now_);
    scheduler_.SetHost("racks", &racks_, scheduler_.cluster()->AddHost({}), now_);
    for (int i = 1; i <= 4; ++i) {
      auto node = std::make_shared<kube::NodeObject>();
      node->node.set_uid(absl::StrCat("uid-n", i));
      node->node.set_name(absl::StrCat("n", i));
      node->node.mutable_allocatable()->set_pods(10);
      node->resource_version = absl::StrCat(++resource_version_);
      scheduler_.events()->OnNodeUpsert(node, now_);
    }
    for (const char* name : {"a", "b"}) AddPod(name);
  }

  static framework::ProfilePlan Plan() {
    framework::ProfilePlan plan;
    plan.algorithm.name = kProfile;
    plan.algorithm.filter_plugins = {"Fit"};
    plan.algorithm.post_filter_plugins = {"Preempt"};
    plan.post_filter_hosts = {"groups"};
    plan.host_names = {"groups", "racks"};
    plan.permit = {{"groups", {{"Gang", {}, 0}}}};
    plan.placement_generate = {{"racks", {{"Racks", {}, 0}}}};
    plan.placement_score = {{"racks", {{"Tight", {}, 0}}}};
    plan.placement_score_plugins = {{"Tight", 2}};
    plan.wake_up_events["Racks"] = {queue::NodeEvent(queue::kAdd)};
    plan.guard.resources = false;
    return plan;
  }

  void Program() {
    groups_.cycle = [this](const v1beta1::PlanRequest& request, v1beta1::PlanResponse* response) {
      Note(request.group_step());
      Answer(request, response);
      return absl::OkStatus();
    };
    racks_.generate_placements = [this](const v1beta1::GeneratePlacementsRequest& request) {
      log_.push_back(absl::StrCat("generate for ", absl::StrJoin(request.group().pod_uids(), " ")));
      EXPECT_EQ(request.header().profile(), kProfile);
      EXPECT_GT(request.header().exact_version(), 0);
      return generated_;
    };
    racks_.score_placements = [this](const v1beta1::ScorePlacementsRequest& request) {
      std::vector<std::string> names;
      for (const auto& candidate : request.placements()) {
        names.push_back(absl::StrCat(candidate.placement().name(), " ",
                                     absl::StrJoin(candidate.assignments().slots(), "+")));
      }
      log_.push_back(absl::StrCat("score ", absl::StrJoin(names, ", ")));
      return scored_;
    };
    for (const auto& [name, slots] : Racks()) {
      v1beta1::GroupPlacement* placement = generated_.mutable_placements()->add_placements();
      placement->set_name(name);
      placement->mutable_nodes()->mutable_slots()->Assign(slots.begin(), slots.end());
    }
    v1beta1::PlacementScores* scores = scored_.add_plugins();
    scores->set_plugin("Tight");
    scores->set_scores(std::string("\x0a\x14", 2));
  }
  static std::vector<std::pair<std::string, std::vector<uint32_t>>> Racks() {
    return {{"rack-1", {0, 1}}, {"rack-2", {2, 3}}};
  }

  void Note(const v1beta1::GroupStep& step) {
    if (step.has_describe()) log_.push_back("describe");
    if (step.has_try_placements())
      log_.push_back(absl::StrCat("try ", step.try_placements().placements_size()));
    if (step.has_place_on())
      log_.push_back(absl::StrCat("place on ", step.place_on().placements_size()));
    if (step.step_case() == v1beta1::GroupStep::STEP_NOT_SET) log_.push_back("place anywhere");
  }

  // As a host with GROUP_PLACEMENTS answers; sets of nodes with a slot of full_ do not fit.
  void Answer(const v1beta1::PlanRequest& request, v1beta1::PlanResponse* response) {
    const v1beta1::GroupStep& step = request.group_step();
    if (step.has_describe() || step.has_try_placements()) {
      response->mutable_group()->mutable_pre_filter();
      v1beta1::PendingGroup* group = response->mutable_group()->mutable_group();
      group->set_name("gang ns/job");
      group->set_namespace_("ns");
      group->set_needed(2);
      for (const char* uid : {"uid-a", "uid-b"}) group->add_pod_uids(uid);
    }
    if (step.has_describe()) return;
    if (step.has_try_placements()) return AnswerTry(step.try_placements(), response);
    std::vector<uint32_t> slots = {0, 1};
    uint32_t used = 0;
    if (step.has_place_on()) {
      while (!Fits(step.place_on().placements(static_cast<int>(used)))) ++used;
      const auto& set = step.place_on().placements(static_cast<int>(used)).slots();
      slots.assign(set.begin(), set.end());
    }
    response->mutable_plan()->mutable_pre_filter();
    response->mutable_plan()->mutable_group()->set_name("gang ns/job");
    response->mutable_plan()->set_node_set(used);
    for (size_t i = 0; i < 2; ++i) {
      v1beta1::PlannedPlacement* placement = response->mutable_plan()->add_placements();
      placement->set_pod_uid(i == 0 ? "uid-a" : "uid-b");
      placement->set_slot(slots[i]);
      placement->set_processed(1);
      placement->set_feasible(1);
    }
  }
  bool Fits(const v1beta1::NodeSet& nodes) const { return !full_.contains(nodes.slots(0)); }
  void AnswerTry(const v1beta1::GroupNodeSets& sets, v1beta1::PlanResponse* response) {
    bool any = false;
    for (const v1beta1::NodeSet& nodes : sets.placements()) {
      v1beta1::TriedPlacement* tried = response->mutable_group()->add_tried();
      if (!Fits(nodes)) {
        tried->mutable_misfit()->set_reason("1 of 2 members fit");
        continue;
      }
      any = true;
      for (uint32_t i = 0; i < 2; ++i) {
        tried->mutable_assignments()->add_pods(i);
        tried->mutable_assignments()->add_slots(nodes.slots(static_cast<int>(i)));
      }
    }
    if (any) return;
    Reject("0/2 placements are available", response);
  }
  static void Reject(const std::string& reason, v1beta1::PlanResponse* response) {
    v1beta1::PreFilterResponse* pre_filter = response->mutable_rejection()->mutable_pre_filter();
    pre_filter->mutable_rejection()->set_plugin("Fit");
    pre_filter->mutable_rejection()->set_code(v1beta1::CODE_UNSCHEDULABLE_AND_UNRESOLVABLE);
    pre_filter->mutable_rejection()->add_reasons(reason);
    pre_filter->add_rejected_by("Fit");
    response->mutable_rejection()->mutable_group()->set_name("gang ns/job");
    response->mutable_rejection()->mutable_group()->set_needed(2);
    response->mutable_rejection()->mutable_group()->add_pod_uids("uid-b");
  }

  void AddPod(const std::string& name, int32_t priority = 10, const std::string& node = "") {
    auto pod = std::make_shared<kube::PodObject>();
    pod->pod.set_uid(absl::StrCat("uid-", name));
    pod->pod.set_namespace_("ns");
    pod->pod.set_name(name);
    pod->pod.set_scheduler_name(kProfile);
    pod->pod.set_pod_group_name("job");
    pod->pod.set_priority(priority);
    pod->pod.set_node_name(node);
    pod->pod.add_containers();
    pod->resource_version = absl::StrCat(++resource_version_);
    scheduler_.events()->OnPodUpsert(pod, now_);
  }

  const absl::Time now_ = absl::FromUnixSeconds(1'700'000'000);
  int resource_version_ = 0;
  framework::several_hosts::RecordedActions effects_;
  Errors errors_;
  ScriptedHost groups_, racks_;
  Scheduler scheduler_;
  v1beta1::GeneratePlacementsResponse generated_;
  v1beta1::ScorePlacementsResponse scored_;
  std::set<uint32_t> full_;
  std::vector<std::string> log_;
};

TEST_F(GroupPlacementsTest, TheBestPlacementGetsTheGroup) {
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_THAT(log_, ElementsAre("describe", "generate for uid-a uid-b", "try 2",
                                "score rack-1 0+1, rack-2 2+3", "place on 1"));
  EXPECT_THAT(effects_.binds, ElementsAre("n3", "n4"));
  EXPECT_THAT(errors_.all, IsEmpty());
}

TEST_F(GroupPlacementsTest, AmongEqualsTheFirstGeneratedIsTaken) {
  scored_.mutable_plugins(0)->set_scores(std::string(2, 20));
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_THAT(effects_.binds, ElementsAre("n1", "n2"));
}

TEST_F(GroupPlacementsTest, OnlyPlacementsThatAreLargeEnoughAreScored) {
  full_ = {2};
  scored_.mutable_plugins(0)->set_scores(std::string(1, 20));
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_THAT(log_, ElementsAre("describe", "generate for uid-a uid-b", "try 2", "score rack-1 0+1",
                                "place on 1"));
  EXPECT_THAT(effects_.binds, ElementsAre("n1", "n2"));
}

TEST_F(GroupPlacementsTest, WithoutScoresTheFirstThatFitsIsTaken) {
  framework::ProfilePlan plan = Plan();
  plan.placement_score.clear();
  plan.placement_score_plugins.clear();
  scheduler_.SetPlan(plan);
  full_ = {0};
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_THAT(log_, ElementsAre("describe", "generate for uid-a uid-b", "place on 2"));
  EXPECT_THAT(effects_.binds, ElementsAre("n3", "n4"));
}

TEST_F(GroupPlacementsTest, WithoutAPluginThereThePlanIsOneMessage) {
  framework::ProfilePlan plan = Plan();
  plan.placement_generate.clear();
  scheduler_.SetPlan(plan);
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_THAT(log_, ElementsAre("place anywhere"));
  EXPECT_THAT(effects_.binds, ElementsAre("n1", "n2"));
}

TEST_F(GroupPlacementsTest, AGeneratorWithoutAnOpinionLeavesAllNodes) {
  generated_.mutable_any();
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_THAT(log_, ElementsAre("describe", "generate for uid-a uid-b", "place anywhere"));
  EXPECT_THAT(effects_.binds, ElementsAre("n1", "n2"));
}

TEST_F(GroupPlacementsTest, APodThatIsInNoGroupTakesOneMessage) {
  groups_.num_nodes = 4;
  groups_.cycle = [this](const v1beta1::PlanRequest& request, v1beta1::PlanResponse* response) {
    Note(request.group_step());
    groups_.Feasible(response);
    response->mutable_evaluation()->clear_score();
    response->mutable_evaluation()->mutable_filter()->set_processed(1);
    response->mutable_evaluation()->mutable_filter()->set_feasible("\x01");
    return absl::OkStatus();
  };
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_THAT(log_, ElementsAre("describe"));
  EXPECT_THAT(effects_.binds, ElementsAre("n1"));
}

TEST_F(GroupPlacementsTest, ARejectionOfTheGeneratorIsForTheWholeGroup) {
  generated_.mutable_rejection()->set_plugin("Racks");
  generated_.mutable_rejection()->set_code(v1beta1::CODE_UNSCHEDULABLE);
  generated_.mutable_rejection()->add_reasons("no rack has the wanted switch");
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_THAT(effects_.failures,
              ElementsAre("0/4 nodes are available: gang ns/job: no rack has the wanted switch.",
                          "0/4 nodes are available: gang ns/job: no rack has the wanted switch."));
  EXPECT_EQ(scheduler_.queue().counts().unschedulable, 2u);
  EXPECT_FALSE(scheduler_.ScheduleOne(now_)) << "the other member has the same answer";
}

TEST_F(GroupPlacementsTest, ExcludedPlacementsAreNotUsed) {
  v1beta1::ExcludedPlacement* excluded = scored_.mutable_plugins(0)->add_excluded();
  excluded->set_placement(1);
  excluded->set_reason("its switch is being replaced");
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_THAT(effects_.binds, ElementsAre("n1", "n2"));
}

TEST_F(GroupPlacementsTest, AllPlacementsExcludedIsARejection) {
  for (const uint32_t placement : {1u, 0u}) {
    v1beta1::ExcludedPlacement* excluded = scored_.mutable_plugins(0)->add_excluded();
    excluded->set_placement(placement);
    excluded->set_reason(absl::StrCat("switch ", placement, " is being replaced"));
  }
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_THAT(effects_.binds, IsEmpty());
  ASSERT_THAT(effects_.failures, SizeIs(2));
  EXPECT_EQ(effects_.failures[0],
            "0/4 nodes are available: gang ns/job: 0/2 placements are available, first placement "
            "status: switch 0 is being replaced.");
}

TEST_F(GroupPlacementsTest, AWrongAnswerParksThePodForTheHostThatGaveIt) {
  generated_.mutable_placements()->mutable_placements(0)->mutable_nodes()->add_slots(9);
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_THAT(errors_.all, ElementsAre(HasSubstr("racks: Placement \"rack-1\" names slot 9")));
  scheduler_.Tick(now_ + absl::Seconds(5));
  ASSERT_THAT(effects_.failures, SizeIs(1));
  EXPECT_THAT(effects_.failures[0], HasSubstr("racks"));
  EXPECT_THAT(effects_.binds, IsEmpty());
}

TEST_F(GroupPlacementsTest, AHostThatPlacesOutsideOfThePlacementIsAtFault) {
  groups_.cycle = [this](const v1beta1::PlanRequest& request, v1beta1::PlanResponse* response) {
    Answer(request, response);
    if (response->has_plan()) response->mutable_plan()->mutable_placements(1)->set_slot(0);
    return absl::OkStatus();
  };
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_THAT(errors_.all,
              ElementsAre(HasSubstr("groups: Plan uses slot 0, which is not in the placement")));
  EXPECT_THAT(effects_.binds, IsEmpty());
}

TEST_F(GroupPlacementsTest, AFailurePolicyLeavesAllNodes) {
  framework::ProfilePlan plan = Plan();
  plan.placement_generate[0].fail_open = true;
  scheduler_.SetPlan(plan);
  racks_.generate_placements = nullptr;
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_THAT(log_, ElementsAre("describe", "place anywhere"));
  EXPECT_THAT(effects_.binds, ElementsAre("n1", "n2"));
}

TEST_F(GroupPlacementsTest, AFailurePolicyIgnoresMissingScores) {
  framework::ProfilePlan plan = Plan();
  plan.placement_score[0].fail_open = true;
  scheduler_.SetPlan(plan);
  racks_.score_placements = nullptr;
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_THAT(effects_.binds, ElementsAre("n1", "n2"));
}

TEST_F(GroupPlacementsTest, PostFilterIsToldTheGroup) {
  full_ = {0, 2};
  std::vector<v1beta1::PostFilterRequest> asked;
  groups_.post_filter = [&](const v1beta1::PostFilterRequest& request) {
    asked.push_back(request);
    v1beta1::PostFilterResponse answer;
    answer.mutable_rejection()->mutable_status()->set_plugin("Preempt");
    answer.mutable_rejection()->mutable_status()->set_code(v1beta1::CODE_UNSCHEDULABLE);
    return answer;
  };
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  ASSERT_THAT(asked, SizeIs(1));
  EXPECT_THAT(asked[0].group().pod_uids(), ElementsAre("uid-a", "uid-b"));
  EXPECT_EQ(asked[0].group().needed(), 2u);
  EXPECT_EQ(asked[0].group().namespace_(), "ns");
}

TEST_F(GroupPlacementsTest, AnyHostCanNameVictimsForAllMembers) {
  framework::ProfilePlan plan = Plan();
  plan.pod_group_post_filter = {{"racks", {{"Evict", {}, 0}}}};
  scheduler_.SetPlan(plan);
  AddPod("low-1", 1, "n3");
  AddPod("low-2", 1, "n4");
  full_ = {0, 2};
  std::vector<v1beta1::PostFilterRequest> asked;
  racks_.post_filter = [&](const v1beta1::PostFilterRequest& request) {
    asked.push_back(request);
    v1beta1::PostFilterResponse answer;
    v1beta1::PreemptionCandidate* candidate = answer.mutable_candidates()->add_candidates();
    candidate->set_plugin("Evict");
    candidate->set_slot(2);
    candidate->add_victim_uids("uid-low-1");
    candidate->add_victim_uids("uid-low-2");
    candidate->add_nominations()->set_pod_uid("uid-b");
    candidate->mutable_nominations(0)->set_slot(3);
    return answer;
  };
  groups_.post_filter = [](const v1beta1::PostFilterRequest&) {
    ADD_FAILURE() << "postFilter is not asked about groups";
    return absl::InternalError("asked");
  };
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  ASSERT_THAT(asked, SizeIs(1));
  EXPECT_THAT(asked[0].group().pod_uids(), ElementsAre("uid-a", "uid-b"));
  EXPECT_FALSE(asked[0].others_filter());
  EXPECT_THAT(errors_.all, IsEmpty());
  EXPECT_THAT(effects_.evicted, SizeIs(1)) << "all victims but the last";
}

}  // namespace
}  // namespace outboard::scheduler::group_placements_test
