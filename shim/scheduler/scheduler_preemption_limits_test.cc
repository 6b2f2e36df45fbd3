// What a host cannot do with PostFilter: evict for pods that may not preempt, evict pods that have
// nothing to do with the victims, or evict without measure.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "shim/framework/testing/scripted_host.h"
#include "shim/scheduler/scheduler.h"
#include "shim/scheduler/testing/no_cluster_actions.h"

namespace outboard::scheduler::scheduler_preemption_limits_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kProfile[] = "outboard";
constexpr char kHost[] = "default";
constexpr char kPlugin[] = "DefaultPreemption";

class RecordedActions final : public NoClusterActions {
 public:
  void Evict(const EvictOrder& order, absl::Time) override {
    evicted.push_back(order.victim->pod.name());
    evictions.push_back(order);
  }
  void RecordFailed(const kube::PodObject& pod, const std::string&, const std::string& message,
                    absl::Time) override {
    events.push_back(absl::StrCat(pod.pod.name(), ": ", message));
  }
  void PatchStatus(const kube::PodObject&, const std::optional<PodScheduledFalse>& condition,
                   const std::optional<std::string>&, absl::Time) override {
    if (condition.has_value()) conditions.push_back(condition->message);
  }
  std::vector<std::string> evicted, events, conditions;
  std::vector<EvictOrder> evictions;
};

class CountingObserver final : public Observer {
 public:
  void OnProtocolError(const std::string&, const std::string&,
                       const absl::Status& status) override {
    faults.push_back(std::string(status.message()));
  }
  void OnBudgetViolations(size_t evictions) override { violations += evictions; }
  void OnPreemptionLimited(const kube::PodObject& pod, absl::string_view limit) override {
    limited.push_back(absl::StrCat(pod.pod.name(), " ", limit));
  }
  std::vector<std::string> faults, limited;
  size_t violations = 0;
};

// Nodes n1 to n3; no pod fits anywhere.
class PreemptionLimitsTest : public ::testing::Test {
 protected:
  PreemptionLimitsTest()
      : scheduler_({}, queue::QueueOptions(), &actions_, &observer_, nullptr, now_) {
    scheduler_.SetProfileNames({kProfile});
    framework::ProfilePlan plan;
    plan.algorithm.name = kProfile;
    plan.algorithm.filter_plugins = {"Fit"};
    plan.algorithm.post_filter_plugins = {kPlugin};
    plan.post_filter_hosts = {kHost};
    plan.host_names = {kHost};
    plan.guard.resources = false;
    scheduler_.SetPlan(plan);
    scheduler_.SetHost(kHost, &host_, scheduler_.cluster()->AddHost({}), now_);
    for (const char* name : {"n1", "n2", "n3"}) {
      auto node = std::make_shared<kube::NodeObject>();
      node->node.set_uid(absl::StrCat("uid-", name));
      node->node.set_name(name);
      node->node.mutable_allocatable()->set_pods(10);
      node->resource_version = absl::StrCat(++resource_version_);
      scheduler_.events()->OnNodeUpsert(node, now_);
    }
    host_.num_nodes = 3;
    host_.cycle = [this](const auto&, auto* response) {
      host_.Infeasible("Fit", "Insufficient cpu", response);
      return absl::OkStatus();
    };
    candidate_.set_slot(scheduler_.cluster()->SlotOf("n1"));
    candidate_.set_plugin(kPlugin);
    host_.post_filter = [this](const v1beta1::PostFilterRequest&) {
      v1beta1::PostFilterResponse answer;
      *answer.mutable_candidates()->add_candidates() = candidate_;
      return answer;
    };
  }
  std::shared_ptr<kube::PodObject> MakePod(const std::string& name, int32_t priority,
                                           const std::string& node = "",
                                           const std::string& group = "") {
    auto pod = std::make_shared<kube::PodObject>();
    pod->pod.set_uid(absl::StrCat("uid-", name));
    pod->pod.set_namespace_("ns");
    pod->pod.set_name(name);
    pod->pod.set_scheduler_name(kProfile);
    pod->pod.set_priority(priority);
    pod->pod.set_node_name(node);
    pod->pod.set_pod_group_name(group);
    pod->pod.add_containers();
    return pod;
  }
  void Upsert(const std::shared_ptr<kube::PodObject>& pod) {
    pod->resource_version = absl::StrCat(++resource_version_);
    scheduler_.events()->OnPodUpsert(pod, now_);
  }
  void SetLimits(size_t per_attempt, size_t per_minute) {
    SchedulerOptions options;
    options.max_evictions_per_attempt = per_attempt;
    options.max_evictions_per_minute = per_minute;
    scheduler_.SetOptions(options);
  }
  void Victims(const std::vector<std::string>& names) {
    candidate_.clear_victim_uids();
    for (const std::string& name : names) candidate_.add_victim_uids("uid-" + name);
  }
  void EvictAll() {
    for (const EvictOrder& order : std::exchange(actions_.evictions, {})) {
      order.ordered_by->OnEvictionEnded(order.preemption_id, order.victim, EvictEnd::kEvicted, "",
                                        now_);
      scheduler_.events()->OnPodDelete(order.victim->uid(), now_);
    }
  }
  queue::Place PlaceOf(const std::string& name) {
    return scheduler_.queue().Find("uid-" + name)->place;
  }

  absl::Time now_ = absl::FromUnixSeconds(1000);
  int resource_version_ = 0;
  RecordedActions actions_;
  CountingObserver observer_;
  framework::ScriptedHost host_;
  Scheduler scheduler_;
  v1beta1::PreemptionCandidate candidate_;
};

TEST_F(PreemptionLimitsTest, NoPodIsEvictedForOneThatMayNotPreempt) {
  Upsert(MakePod("a", 1, "n1"));
  auto pod = MakePod("p", 10);
  pod->pod.set_preemption_policy(v1beta1::PREEMPTION_POLICY_NEVER);
  Upsert(pod);
  Victims({"a"});
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_THAT(actions_.evicted, IsEmpty());
  EXPECT_THAT(observer_.faults, ElementsAre(HasSubstr("ns/p, whose preemptionPolicy is Never")));
  EXPECT_EQ(PlaceOf("p"), queue::Place::kParked);
}

TEST_F(PreemptionLimitsTest, CompanionsAreOfAVictimsGroup) {
  Upsert(MakePod("a", 1, "n1", "gang"));
  Upsert(MakePod("lonely", 1, "n1"));
  Upsert(MakePod("mate", 1, "n2", "gang"));
  Upsert(MakePod("stranger", 1, "n2"));
  Upsert(MakePod("other", 1, "n3", "other-gang"));
  Upsert(MakePod("p", 10));
  for (const char* companion : {"stranger", "other"}) {
    Victims({"a", "lonely"});
    candidate_.clear_companion_uids();
    candidate_.add_companion_uids("uid-mate");
    candidate_.add_companion_uids(absl::StrCat("uid-", companion));
    ASSERT_TRUE(scheduler_.ScheduleOne(now_));
    EXPECT_THAT(std::exchange(observer_.faults, {}),
                ElementsAre(HasSubstr(
                    absl::StrCat("evict pod ns/", companion, ", which is of no victim's group"))));
    EXPECT_THAT(actions_.evicted, IsEmpty());
    now_ += absl::Seconds(30);
    scheduler_.Tick(now_);
  }
  candidate_.mutable_companion_uids()->RemoveLast();
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_THAT(observer_.faults, IsEmpty());
  EXPECT_THAT(actions_.evicted, ElementsAre("mate", "a"));
}

// Otherwise the victims could be on any nodes.
TEST_F(PreemptionLimitsTest, NodesAreNominatedOnlyForMembersOfThePodsGroup) {
  Upsert(MakePod("a", 1, "n2"));
  Upsert(MakePod("p", 10, "", "gang"));
  Upsert(MakePod("stranger", 9));
  Victims({"a"});
  candidate_.add_nominations()->set_pod_uid("uid-stranger");
  candidate_.mutable_nominations(0)->set_slot(scheduler_.cluster()->SlotOf("n2"));
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_THAT(observer_.faults, ElementsAre(HasSubstr("ns/stranger, which is not of the pod's")));
  EXPECT_THAT(actions_.evicted, IsEmpty());
}

TEST_F(PreemptionLimitsTest, OnePreemptionEvictsNoMoreThanItsLimit) {
  SetLimits(2, 0);
  for (const char* name : {"a", "b", "c"}) Upsert(MakePod(name, 1, "n1"));
  Upsert(MakePod("p", 10));
  Victims({"a", "b", "c"});
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_THAT(actions_.evicted, IsEmpty());
  EXPECT_THAT(observer_.limited, ElementsAre("p attempt"));
  EXPECT_THAT(actions_.events,
              ElementsAre(HasSubstr("p: 0/3 nodes are available: 3 Insufficient cpu. preemption: "
                                    "put off because it would evict 3 pods, more than "
                                    "preemption.maxEvictionsPerAttempt, 2.")));
  EXPECT_THAT(observer_.faults, IsEmpty()) << "the answer may be right";
  // It is tried again after its backoff, and a smaller preemption is executed.
  Victims({"a", "b"});
  now_ += absl::Seconds(20);
  scheduler_.Tick(now_);
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_THAT(actions_.evicted, ElementsAre("a"));
}

TEST_F(PreemptionLimitsTest, AMinutesPreemptionsEvictNoMoreThanTheirLimit) {
  SetLimits(0, 3);
  for (const char* name : {"a", "b", "c", "d"}) Upsert(MakePod(name, 1, "n1"));
  Upsert(MakePod("p", 10));
  Victims({"a", "b"});
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EvictAll();
  EvictAll();
  EXPECT_THAT(actions_.evicted, ElementsAre("a", "b"));
  scheduler_.events()->OnPodDelete("uid-p", now_);
  now_ += absl::Seconds(30);
  Upsert(MakePod("q", 10));
  Victims({"c", "d"});
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_THAT(actions_.evicted, SizeIs(2));
  EXPECT_THAT(observer_.limited, ElementsAre("q minute"));
  EXPECT_THAT(actions_.events.back(),
              HasSubstr("put off because it would evict 2 pods, beyond those of the last minute, "
                        "more than preemption.maxEvictionsPerMinute, 3."));
  // Its backoff ends before the minute does.
  now_ += absl::Seconds(20);
  scheduler_.Tick(now_);
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_THAT(observer_.limited, SizeIs(2));
  EXPECT_EQ(actions_.events.back(), actions_.events[actions_.events.size() - 2]);
  now_ += absl::Seconds(20);
  scheduler_.Tick(now_);
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_THAT(actions_.evicted, ElementsAre("a", "b", "c"));
  EXPECT_THAT(observer_.limited, SizeIs(2));
}

TEST_F(PreemptionLimitsTest, PodsThatLeaveAnywayAreNotCounted) {
  SetLimits(1, 1);
  auto leaving = MakePod("a", 1, "n1");
  leaving->pod.set_deletion_unix_seconds(999);
  Upsert(leaving);
  Upsert(MakePod("b", 1, "n1"));
  Upsert(MakePod("p", 10));
  Victims({"a", "b"});
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_THAT(actions_.evicted, ElementsAre("b"));
  EXPECT_THAT(observer_.limited, IsEmpty());
}

// The condition goes to the API server, which has limits of its own.
TEST_F(PreemptionLimitsTest, AHostsTextsAreBounded) {
  Upsert(MakePod("p", 10));
  host_.post_filter = [](const v1beta1::PostFilterRequest&) {
    v1beta1::PostFilterResponse answer;
    answer.mutable_rejection()->mutable_status()->set_plugin(kPlugin);
    answer.mutable_rejection()->mutable_status()->set_code(v1beta1::CODE_UNSCHEDULABLE);
    for (int i = 0; i < 16; ++i)
      answer.mutable_rejection()->mutable_status()->add_reasons(std::string(32 << 10, 'x'));
    return answer;
  };
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_THAT(observer_.faults, IsEmpty());
  EXPECT_THAT(actions_.events, SizeIs(1));
  ASSERT_THAT(actions_.conditions, SizeIs(1));
  EXPECT_EQ(actions_.conditions[0].size(), 64u << 10);
}

// As kube-scheduler: budgets are preferred, not promised.
TEST_F(PreemptionLimitsTest, BrokenBudgetsAreCounted) {
  auto budget = std::make_shared<kube::ClusterObject>();
  budget->object_uid = "u";
  budget->resource_version = "1";
  v1beta1::PodDisruptionBudget* const web = budget->object.mutable_pod_disruption_budget();
  web->set_namespace_("ns");
  web->set_name("web");
  web->set_disruptions_allowed(1);
  (*web->mutable_selector()->mutable_match_labels())["app"] = "web";
  scheduler_.events()->OnObjectUpsert(budget, now_);
  for (const char* name : {"a", "b", "c"}) {
    auto pod = MakePod(name, 1, "n1");
    (*pod->pod.mutable_labels())["app"] = name == std::string("c") ? "db" : "web";
    Upsert(pod);
  }
  Upsert(MakePod("p", 10));
  Victims({"a", "b", "c"});
  // The host's own word on it does not count.
  candidate_.set_budget_violations(0);
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_EQ(observer_.violations, 1u);
}

}  // namespace
}  // namespace outboard::scheduler::scheduler_preemption_limits_test
