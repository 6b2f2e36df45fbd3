#include "shim/scheduler/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "shim/framework/testing/scripted_host.h"

namespace outboard::scheduler::scheduler_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kProfile[] = "outboard";
constexpr char kHost[] = "default";

// Records the orders.
class RecordedActions final : public ClusterActions {
 public:
  void Bind(const BindOrder& order, absl::Time) override { binds.push_back(order); }
  void Evict(const EvictOrder& order, absl::Time) override {
    ADD_FAILURE() << "evicts " << order.victim->key();
  }
  void RecordPreempted(const kube::PodObject&, const std::string&, const std::string&,
                       const std::string&, bool, absl::Time) override {}
  void Write(const EffectOrder&, absl::Time) override {}
  void RecordScheduled(const kube::PodObject& pod, const std::string&, const std::string& node,
                       absl::Time) override {
    events.push_back(absl::StrCat(pod.pod.name(), " to ", node));
  }
  void RecordFailed(const kube::PodObject& pod, const std::string&, const std::string& message,
                    absl::Time) override {
    events.push_back(absl::StrCat(pod.pod.name(), ": ", message));
  }
  void PatchStatus(const kube::PodObject& pod, const std::optional<PodScheduledFalse>& condition,
                   const std::optional<std::string>& nominated, absl::Time) override {
    patches.push_back(absl::StrCat(pod.pod.name(), " ", condition ? condition->reason : "-", " ",
                                   nominated.value_or("-")));
  }

  std::vector<BindOrder> binds;
  std::vector<std::string> events;
  std::vector<std::string> patches;
};

class SchedulerTest : public ::testing::Test {
 protected:
  SchedulerTest()
      : scheduler_(Options(), queue::QueueOptions(), &effects_, &observer_, nullptr, now_) {
    scheduler_.SetProfileNames({kProfile});
    framework::ProfilePlan plan;
    plan.algorithm.name = kProfile;
    plan.algorithm.filter_plugins = {"Fit", "Volumes"};
    plan.algorithm.score_plugins = {{"Score", 1}};
    plan.host_names = {kHost};
    plan.host_of["Gang"] = kHost;
    plan.reserve = {{kHost, {{"Gang", {"metadata.labels['job-name']"}}}}};
    plan.permit = {{kHost, {{"Gang", {"metadata.labels['job-name']"}}}}};
    plan.pre_enqueue = {{kHost, {{"SchedulingGates", {"spec.schedulingGates"}}}}};
    plan.guard.resources = false;
    plan.wake_up_events["Fit"] = {queue::NodeEvent(queue::kAdd), queue::AssignedPodDelete()};
    plan.wake_up_events["Gang"] = {queue::AssignedPodAdd()};
    plan.wake_up_events["Volumes"] = {
        {.resource = "PersistentVolumeClaim", .actions = queue::kUpdate, .custom_label = ""}};
    scheduler_.SetPlan(plan);
    cursor_ = scheduler_.cluster()->AddHost({});
    scheduler_.SetHost(kHost, &host_, cursor_, now_);
  }
  static SchedulerOptions Options() {
    SchedulerOptions options;
    options.host_grace = absl::Seconds(5);
    options.min_batch_size = 2;
    return options;
  }

  // Each pod waits for its gate g.
  static v1beta1::PreEnqueueResponse GateAll(const v1beta1::PreEnqueueRequest& request) {
    v1beta1::PreEnqueueResponse response;
    for (int i = 0; i < request.pod_uids_size(); ++i) {
      v1beta1::PluginStatus* status = response.add_verdicts();
      status->set_plugin("SchedulingGates");
      status->set_code(v1beta1::CODE_UNSCHEDULABLE_AND_UNRESOLVABLE);
      status->add_reasons("waiting for scheduling gates: [g]");
    }
    return response;
  }

  // PreFilter plans gangs by their job's name; new nodes help pods that Fit rejected.
  void PlanGangs() {
    framework::ProfilePlan plan;
    plan.algorithm.name = kProfile;
    plan.algorithm.pre_filter_plugins = {"Gang"};
    plan.algorithm.filter_plugins = {"Fit"};
    plan.permit = {{kHost, {{"Gang", {"metadata.labels['job-name']"}}}}};
    plan.host_names = {kHost};
    plan.wake_up_events["Fit"] = {queue::NodeEvent(queue::kAdd)};
    scheduler_.SetPlan(plan);
  }
  static void RejectGang(const char* why, v1beta1::PlanResponse* response) {
    v1beta1::PluginStatus* rejection =
        response->mutable_rejection()->mutable_pre_filter()->mutable_rejection();
    rejection->set_plugin("Gang");
    rejection->set_code(v1beta1::CODE_UNSCHEDULABLE_AND_UNRESOLVABLE);
    rejection->add_reasons(why);
    response->mutable_rejection()->mutable_pre_filter()->add_rejected_by("Fit");
    response->mutable_rejection()->mutable_group()->set_name("gang");
  }
  void AddNode(const std::string& name, int64_t cpu_millis = 1000) {
    auto node = std::make_shared<kube::NodeObject>();
    node->node.set_uid(absl::StrCat("uid-", name));
    node->node.set_name(name);
    node->node.mutable_allocatable()->set_cpu_millis(cpu_millis);
    node->node.mutable_allocatable()->set_pods(10);
    node->resource_version = absl::StrCat(++resource_version_);
    scheduler_.events()->OnNodeUpsert(node, now_);
    host_.num_nodes = static_cast<uint32_t>(scheduler_.cluster()->node_count());
  }
  kube::PodPtr MakePod(const std::string& name, int64_t cpu_millis = 100,
                       const std::string& job = "") {
    auto pod = std::make_shared<kube::PodObject>();
    pod->pod.set_uid(absl::StrCat("uid-", name));
    pod->pod.set_namespace_("ns");
    pod->pod.set_name(name);
    pod->pod.set_scheduler_name(kProfile);
    if (!job.empty()) (*pod->pod.mutable_labels())["job-name"] = job;
    pod->pod.add_containers()->mutable_requests()->set_cpu_millis(cpu_millis);
    pod->resource_version = absl::StrCat(++resource_version_);
    return pod;
  }
  kube::PodPtr AddPod(const std::string& name, int64_t cpu_millis = 100,
                      const std::string& job = "") {
    kube::PodPtr pod = MakePod(name, cpu_millis, job);
    scheduler_.events()->OnPodUpsert(pod, now_);
    return pod;
  }
  // What the API server and the informer do after a bind.
  void ConfirmBind(const BindOrder& order) {
    auto bound = std::make_shared<kube::PodObject>(*order.pod);
    bound->pod.set_node_name(order.node_name);
    bound->resource_version = absl::StrCat(++resource_version_);
    scheduler_.events()->OnPodUpsert(bound, now_);
    order.ordered_by->OnBindEnded(order.attempt_id, BindEnd::kBound, "", now_);
  }
  void Pass(absl::Duration duration) {
    now_ += duration;
    scheduler_.Tick(now_);
  }
  // Holds gang members until `size` of them have asked, then allows all.
  void HoldGangsOf(size_t size) {
    host_.permit = [this, size](const v1beta1::PermitRequest& request) {
      held_.push_back(request);
      v1beta1::PermitResponse response;
      if (held_.size() < size) {
        v1beta1::PermitWait* wait = response.add_waits();
        wait->set_plugin("Gang");
        wait->set_timeout_micros(30'000'000);
        return response;
      }
      for (size_t i = 0; i + 1 < held_.size(); ++i) {
        v1beta1::WaitDecision* decision = response.add_decisions();
        decision->set_attempt_id(held_[i].header().attempt_id());
        decision->set_pod_uid(held_[i].pod_uid());
        decision->set_plugin("Gang");
        decision->set_allow(true);
      }
      return response;
    };
  }

  absl::Time now_ = absl::FromUnixSeconds(1000);
  int resource_version_ = 0;
  RecordedActions effects_;
  Observer observer_;
  framework::ScriptedHost host_;
  Scheduler scheduler_;
  cache::ClusterState::Cursor cursor_ = 0;
  std::vector<v1beta1::PermitRequest> held_;
};

TEST_F(SchedulerTest, PlacesAPodAndRecordsTheEventWhenItIsBound) {
  AddNode("n1");
  AddPod("p");
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  ASSERT_THAT(effects_.binds, SizeIs(1));
  EXPECT_EQ(effects_.binds[0].node_name, "n1");
  EXPECT_THAT(effects_.events, IsEmpty()) << "not before it is bound";
  EXPECT_TRUE(scheduler_.cluster()->IsAssumed("uid-p"));
  ConfirmBind(effects_.binds[0]);
  EXPECT_THAT(effects_.events, ElementsAre("p to n1"));
  EXPECT_FALSE(scheduler_.cluster()->IsAssumed("uid-p"));
  EXPECT_EQ(scheduler_.attempts_in_flight(), 0u);
  EXPECT_FALSE(scheduler_.ScheduleOne(now_));
}

// The API server's answer arrives before older events of the informer.
TEST_F(SchedulerTest, OlderNewsOfABoundPodDoesNotBringItBack) {
  AddNode("n1");
  AddPod("p");
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  const BindOrder order = effects_.binds[0];
  order.ordered_by->OnBindEnded(order.attempt_id, BindEnd::kBound, "", now_);
  auto older = std::make_shared<kube::PodObject>(*order.pod);
  older->pod.set_nominated_node_name("n1");
  older->resource_version = "older";
  scheduler_.events()->OnPodUpsert(older, now_);
  EXPECT_EQ(scheduler_.queue().Find("uid-p"), nullptr);
  EXPECT_FALSE(scheduler_.ScheduleOne(now_));
  ConfirmBind(order);
  EXPECT_FALSE(scheduler_.cluster()->IsAssumed("uid-p"));
  EXPECT_EQ(scheduler_.cluster()->NodeOf("uid-p"), "n1");
  EXPECT_FALSE(scheduler_.ScheduleOne(now_));
}

TEST_F(SchedulerTest, SendsChangesBeforeTheCallThatNeedsThem) {
  AddNode("n1");
  AddPod("p");
  scheduler_.ScheduleOne(now_);
  ASSERT_THAT(host_.cycles, SizeIs(1));
  ASSERT_FALSE(host_.changes.empty());
  EXPECT_EQ(host_.cycles[0].cycle().header().exact_version(), host_.changes.back().version());
  EXPECT_EQ(host_.cycles[0].cycle().pod_uid(), "uid-p");
}

TEST_F(SchedulerTest, ReportsThatThereAreNoNodes) {
  AddPod("p");
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_THAT(effects_.events, ElementsAre("p: no nodes available to schedule pods"));
  EXPECT_THAT(effects_.patches, ElementsAre("p Unschedulable -"));
  EXPECT_THAT(host_.cycles, IsEmpty());
}

TEST_F(SchedulerTest, AnUnschedulablePodWaitsForAnEventThatItsRejectorNamed) {
  AddNode("n1");
  host_.cycle = [this](const auto&, auto* response) {
    host_.Infeasible("Fit", "Insufficient cpu", response);
    return absl::OkStatus();
  };
  AddPod("p");
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_THAT(effects_.events, ElementsAre("p: 0/1 nodes are available: 1 Insufficient cpu."));
  EXPECT_THAT(effects_.patches, ElementsAre("p Unschedulable -"));
  Pass(absl::Seconds(60));
  EXPECT_FALSE(scheduler_.ScheduleOne(now_)) << "nothing has happened";
  AddNode("n2");
  host_.cycle = nullptr;
  Pass(absl::Seconds(2));
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_THAT(effects_.binds, SizeIs(1));
}

TEST_F(SchedulerTest, ObjectsReachTheHostAndWakeThePodsThatTheyMayHelp) {
  AddNode("n");
  host_.cycle = [this](const v1beta1::PlanRequest&, v1beta1::PlanResponse* response) {
    host_.Infeasible("Volumes", "node(s) had no volume", response);
    return absl::OkStatus();
  };
  const kube::PodPtr pod = AddPod("p");
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  const auto claim = [this](const std::string& phase, const std::string& uid) {
    auto object = std::make_shared<kube::ClusterObject>();
    object->object.mutable_persistent_volume_claim()->set_namespace_("ns");
    object->object.mutable_persistent_volume_claim()->set_name("data");
    object->object.mutable_persistent_volume_claim()->set_phase(phase);
    object->object_uid = uid;
    object->resource_version = absl::StrCat(++resource_version_);
    return object;
  };
  const auto where = [&] { return scheduler_.queue().Find(pod->uid())->place; };
  using State = queue::Place;
  EXPECT_EQ(where(), State::kUnschedulable);
  scheduler_.events()->OnObjectUpsert(claim("Pending", "u"), now_);
  EXPECT_EQ(where(), State::kUnschedulable) << "the plugin did not register additions";
  auto service = std::make_shared<kube::ClusterObject>();
  service->object.mutable_service()->set_name("s");
  scheduler_.events()->OnObjectUpsert(service, now_);
  EXPECT_EQ(where(), State::kUnschedulable);
  scheduler_.events()->OnObjectUpsert(claim("Pending", "u"), now_);
  EXPECT_NE(where(), State::kUnschedulable) << "an update, though the same but for its version";
  Pass(absl::Seconds(2));
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_EQ(where(), State::kUnschedulable);
  const auto sent = [&](v1beta1::Change::ChangeCase which) {
    int count = 0;
    for (const auto& request : host_.changes) {
      for (const auto& change : request.changes()) count += change.change_case() == which;
    }
    return count;
  };
  EXPECT_EQ(sent(v1beta1::Change::kObjectUpsert), 2);
  scheduler_.events()->OnObjectDelete(claim("", "u"), now_);
  EXPECT_EQ(where(), State::kUnschedulable) << "nor a deletion";
  scheduler_.events()->OnObjectDelete(claim("", "u"), now_);
  scheduler_.events()->OnObjectUpsert(claim("Bound", "u"), now_);
  scheduler_.events()->OnObjectUpsert(claim("Bound", "u"), now_);
  EXPECT_NE(where(), State::kUnschedulable);
}

TEST_F(SchedulerTest, ParksThePodWhenItsHostGivesNoAnswer) {
  AddNode("n1");
  host_.cycle = [](const auto&, auto*) { return absl::UnavailableError("gone"); };
  AddPod("p");
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_EQ(scheduler_.queue().counts().parked, 1u);
  scheduler_.SetHost(kHost, nullptr, 0, now_);
  Pass(absl::Seconds(1));
  EXPECT_EQ(scheduler_.queue().counts().parked, 1u) << "the host is still unavailable";
  EXPECT_THAT(effects_.events, IsEmpty()) << "it may be back in a moment";
  EXPECT_EQ(scheduler_.NextWakeup(now_), now_ + absl::Seconds(1));
  Pass(absl::Seconds(4));
  ASSERT_THAT(effects_.events, SizeIs(1));
  EXPECT_THAT(effects_.events[0], HasSubstr("plugin host \"default\" did not answer: gone"));
  EXPECT_THAT(effects_.patches, ElementsAre("p SchedulerError -"));
  Pass(absl::Seconds(60));
  EXPECT_THAT(effects_.events, SizeIs(1)) << "once";
  host_.cycle = nullptr;
  scheduler_.SetHost(kHost, &host_, cursor_, now_);
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  ASSERT_THAT(effects_.binds, SizeIs(1));
  EXPECT_EQ(scheduler_.queue().Find("uid-p")->attempts, 1)
      << "the attempt without an answer does not count";
}

TEST_F(SchedulerTest, AnAnswerThatCannotBeIsNotFollowed) {
  AddNode("n1");
  host_.cycle = [this](const auto&, auto* response) {
    host_.Feasible(response);
    response->mutable_evaluation()->mutable_filter()->set_processed(7);
    return absl::OkStatus();
  };
  AddPod("p");
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_THAT(effects_.binds, IsEmpty());
  Pass(absl::Seconds(5));
  ASSERT_THAT(effects_.events, SizeIs(1));
  EXPECT_THAT(effects_.events[0], HasSubstr("Filter evaluated 7 of 1 nodes"));
}

TEST_F(SchedulerTest, AProfileWithoutNodeResourcesFitIsNotGuarded) {
  AddNode("n1", 1000);
  AddPod("big", 2000);
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_THAT(effects_.binds, SizeIs(1));
}

TEST_F(SchedulerTest, BindsAGangAtOnceWhenItIsComplete) {
  AddNode("n1");
  HoldGangsOf(3);
  for (const char* name : {"a", "b", "c"}) AddPod(name, 100, "train");
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_THAT(effects_.binds, IsEmpty());
  EXPECT_EQ(scheduler_.waiting_pods(), 2u);
  EXPECT_THAT(effects_.patches, ElementsAre("a - n1", "b - n1"))
      << "autoscalers see where they are about to go";
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_THAT(effects_.binds, SizeIs(3));
  EXPECT_EQ(scheduler_.waiting_pods(), 0u);
}

TEST_F(SchedulerTest, AWaitThatEndsInTimeoutGivesTheNodeBack) {
  AddNode("n1");
  HoldGangsOf(2);
  AddPod("a", 100, "train");
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  scheduler_.cluster()->TakeChanges(cursor_, now_);
  EXPECT_EQ(scheduler_.NextWakeup(now_), now_ + absl::Seconds(30));
  Pass(absl::Seconds(30));
  EXPECT_THAT(effects_.events, ElementsAre("a: 0/1 nodes are available: 1 rejected due to timeout "
                                           "after waiting 30s at plugin Gang."));
  EXPECT_THAT(host_.unreserved, SizeIs(1));
  EXPECT_FALSE(scheduler_.cluster()->IsAssumed("uid-a"));
  EXPECT_EQ(scheduler_.queue().counts().unschedulable, 1u);
}

TEST_F(SchedulerTest, AMemberThatTimesOutReleasesItsGang) {
  AddNode("n1");
  HoldGangsOf(3);
  AddPod("a", 100, "train");
  AddPod("b", 100, "train");
  scheduler_.ScheduleOne(now_);
  scheduler_.ScheduleOne(now_);
  host_.unreserve = [this](const v1beta1::UnreserveRequest& request) {
    v1beta1::UnreserveResponse response;
    for (const auto& other : held_) {
      if (other.pod_uid() == request.pod_uid()) continue;
      v1beta1::WaitDecision* decision = response.add_decisions();
      decision->set_attempt_id(other.header().attempt_id());
      decision->set_pod_uid(other.pod_uid());
      decision->set_plugin("Gang");
      decision->set_message("gang \"train\" gave up");
    }
    return response;
  };
  scheduler_.events()->OnPodDelete("uid-a", now_);
  EXPECT_EQ(scheduler_.waiting_pods(), 0u);
  EXPECT_EQ(scheduler_.attempts_in_flight(), 0u);
  EXPECT_THAT(effects_.events,
              ElementsAre("b: 0/1 nodes are available: 1 gang \"train\" gave up."));
  EXPECT_EQ(scheduler_.queue().Find("uid-a"), nullptr);
}

TEST_F(SchedulerTest, APushedDecisionEndsAWait) {
  AddNode("n1");
  HoldGangsOf(2);
  AddPod("a", 100, "train");
  scheduler_.ScheduleOne(now_);
  v1beta1::SyncResponse push;
  push.mutable_wait_decision()->set_attempt_id(held_[0].header().attempt_id());
  push.mutable_wait_decision()->set_pod_uid("uid-a");
  push.mutable_wait_decision()->set_plugin("Gang");
  push.mutable_wait_decision()->set_allow(true);
  host_.pushes.push_back(push);
  scheduler_.Tick(now_);
  EXPECT_THAT(effects_.binds, SizeIs(1));
  host_.pushes.push_back(push);
  scheduler_.Tick(now_);
  EXPECT_THAT(effects_.binds, SizeIs(1)) << "a repeated decision is harmless";
}

// A pod waits by the answer of an instance; another takes its place.
class ReplacedWaitTest : public SchedulerTest {
 protected:
  ReplacedWaitTest() {
    AddNode("n1");
    HoldGangsOf(9);
    AddPod("a", 100, "train");
    scheduler_.ScheduleOne(now_);
    EXPECT_EQ(scheduler_.waiting_pods(), 1u);
    successor_.permit = [this](const v1beta1::PermitRequest& request) {
      asked_.push_back(request);
      return answer_;
    };
  }
  void Replace() {
    scheduler_.SetHost(kHost, &successor_, scheduler_.cluster()->AddHost({}), now_);
  }

  framework::ScriptedHost successor_;
  absl::StatusOr<v1beta1::PermitResponse> answer_ = v1beta1::PermitResponse();
  std::vector<v1beta1::PermitRequest> asked_;
};

TEST_F(ReplacedWaitTest, GoesOnToItsEndIfTheSuccessorWaitsToo) {
  Pass(absl::Seconds(10));
  answer_->add_waits()->set_plugin("Gang");
  answer_->mutable_waits(0)->set_timeout_micros(60'000'000);
  Replace();
  EXPECT_LE(scheduler_.NextWakeup(now_), now_);
  scheduler_.Tick(now_);
  ASSERT_THAT(asked_, SizeIs(1));
  EXPECT_TRUE(asked_[0].resumed());
  EXPECT_EQ(asked_[0].pod_uid(), "uid-a");
  EXPECT_EQ(asked_[0].node_name(), "n1");
  EXPECT_EQ(asked_[0].header().attempt_id(), held_[0].header().attempt_id());
  EXPECT_FALSE(held_[0].resumed());
  Pass(absl::Seconds(19));
  EXPECT_EQ(scheduler_.waiting_pods(), 1u);
  EXPECT_THAT(asked_, SizeIs(1)) << "once";
  Pass(absl::Seconds(1));
  EXPECT_EQ(scheduler_.waiting_pods(), 0u) << "the limit is that of the first answer";
}

TEST_F(ReplacedWaitTest, EndsIfTheSuccessorLetsItGo) {
  Replace();
  scheduler_.Tick(now_);
  EXPECT_THAT(effects_.binds, SizeIs(1));
}

TEST_F(ReplacedWaitTest, EndsIfTheSuccessorRejectsIt) {
  answer_->mutable_rejection()->set_plugin("Gang");
  answer_->mutable_rejection()->set_code(v1beta1::CODE_UNSCHEDULABLE);
  answer_->mutable_rejection()->add_reasons("too small");
  Replace();
  scheduler_.Tick(now_);
  EXPECT_EQ(scheduler_.waiting_pods(), 0u);
  EXPECT_THAT(effects_.events, ElementsAre("a: 0/1 nodes are available: 1 too small."));
  EXPECT_THAT(successor_.unreserved, SizeIs(1));
}

TEST_F(ReplacedWaitTest, IsParkedForTheHostIfThereIsNoUsableAnswerForASecond) {
  answer_ = absl::InternalError("no idea");
  Replace();
  scheduler_.Tick(now_);
  Pass(absl::Milliseconds(999));
  EXPECT_EQ(scheduler_.waiting_pods(), 1u);
  EXPECT_THAT(asked_, SizeIs(2));
  Pass(absl::Milliseconds(1));
  EXPECT_EQ(scheduler_.waiting_pods(), 0u);
  EXPECT_EQ(scheduler_.attempts_in_flight(), 0u);
  EXPECT_FALSE(scheduler_.cluster()->IsAssumed("uid-a"));
  EXPECT_EQ(scheduler_.queue().counts().parked, 1u);
}

TEST_F(ReplacedWaitTest, IsAskedAboutOfTheLastOfSeveralSuccessors) {
  framework::ScriptedHost between;
  between.permit = [](const v1beta1::PermitRequest&) {
    ADD_FAILURE() << "it was gone before it could be asked";
    return v1beta1::PermitResponse();
  };
  scheduler_.SetHost(kHost, &between, scheduler_.cluster()->AddHost({}), now_);
  scheduler_.SetHost(kHost, nullptr, 0, now_);
  Pass(absl::Seconds(2));
  EXPECT_EQ(scheduler_.waiting_pods(), 1u) << "no host can be asked";
  Replace();
  scheduler_.Tick(now_);
  EXPECT_THAT(asked_, SizeIs(1));
}

TEST_F(SchedulerTest, ABindThatFailedFreesTheNodeAndTriesAgainLater) {
  AddNode("n1");
  AddPod("p");
  scheduler_.ScheduleOne(now_);
  effects_.binds[0].ordered_by->OnBindEnded(effects_.binds[0].attempt_id, BindEnd::kNotBound,
                                            "refused", now_);
  EXPECT_THAT(effects_.events,
              ElementsAre("p: binding rejected: running Bind plugin \"DefaultBinder\": refused"));
  EXPECT_THAT(effects_.patches, ElementsAre("p SchedulerError -"));
  EXPECT_FALSE(scheduler_.cluster()->IsAssumed("uid-p"));
  EXPECT_FALSE(scheduler_.ScheduleOne(now_)) << "backoff";
  Pass(absl::Seconds(2));
  EXPECT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_THAT(effects_.binds, SizeIs(2));
}

TEST_F(SchedulerTest, AnUnsettledBindKeepsItsPlace) {
  AddNode("n1");
  AddPod("p");
  scheduler_.ScheduleOne(now_);
  effects_.binds[0].ordered_by->OnBindEnded(effects_.binds[0].attempt_id, BindEnd::kUnknown, "",
                                            now_);
  EXPECT_TRUE(scheduler_.cluster()->IsAssumed("uid-p"));
}

TEST_F(SchedulerTest, APodDeletedWhileItsBindIsUnderWayFreesItsNodeAtOnce) {
  AddNode("n1");
  AddPod("p");
  scheduler_.ScheduleOne(now_);
  scheduler_.events()->OnPodDelete("uid-p", now_);
  EXPECT_EQ(scheduler_.cluster()->pod_count(), 0u);
  effects_.binds[0].ordered_by->OnBindEnded(effects_.binds[0].attempt_id, BindEnd::kGone,
                                            "not found", now_);
  EXPECT_EQ(scheduler_.attempts_in_flight(), 0u);
  EXPECT_THAT(effects_.events, IsEmpty());
  EXPECT_EQ(scheduler_.queue().Find("uid-p"), nullptr);
}

TEST_F(SchedulerTest, APodThatIsBeingDeletedIsNotTried) {
  AddNode("n1");
  auto pod = std::make_shared<kube::PodObject>(*MakePod("p"));
  pod->pod.set_deletion_unix_seconds(1);
  scheduler_.events()->OnPodUpsert(pod, now_);
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_THAT(effects_.events, ElementsAre("p: skip schedule deleting pod: ns/p"));
  EXPECT_THAT(host_.cycles, IsEmpty());
}

// The next instance knows of no pod that it gated, so it cannot say when the gate opens.
TEST_F(SchedulerTest, APodThatAnotherInstanceGatedIsAskedAboutAgain) {
  AddNode("n1");
  host_.pre_enqueue = GateAll;
  auto gated = std::make_shared<kube::PodObject>(*MakePod("p"));
  gated->pod.add_scheduling_gates("g");
  scheduler_.events()->OnPodUpsert(gated, now_);
  EXPECT_EQ(scheduler_.queue().counts().gated, 1u);
  framework::ScriptedHost other;
  other.pre_enqueue = [](const v1beta1::PreEnqueueRequest& request) {
    v1beta1::PreEnqueueResponse response;
    for (int i = 0; i < request.pod_uids_size(); ++i)
      response.add_verdicts()->set_code(v1beta1::CODE_SUCCESS);
    return response;
  };
  scheduler_.SetHost(kHost, &other, cursor_, now_);
  EXPECT_EQ(scheduler_.queue().counts().gated, 0u);
  scheduler_.SetHost(kHost, nullptr, 0, now_);
}

TEST_F(SchedulerTest, AGatedPodWaitsUntilItsGateGoes) {
  AddNode("n1");
  host_.pre_enqueue = GateAll;
  auto gated = std::make_shared<kube::PodObject>(*MakePod("p"));
  gated->pod.add_scheduling_gates("g");
  gated->pod.set_nominated_node_name("n1");
  scheduler_.events()->OnPodUpsert(gated, now_);
  EXPECT_FALSE(scheduler_.ScheduleOne(now_));
  EXPECT_EQ(scheduler_.queue().counts().gated, 1u);
  // A pod outside of the active queue uses no room, whatever its status says.
  EXPECT_THAT(scheduler_.cluster()->NominatedTo("n1"), IsEmpty());
  auto free = std::make_shared<kube::PodObject>(*gated);
  free->pod.clear_nominated_node_name();
  free->pod.clear_scheduling_gates();
  free->resource_version = "later";
  scheduler_.events()->OnPodUpsert(free, now_);
  EXPECT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_THAT(effects_.binds, SizeIs(1));
}

TEST_F(SchedulerTest, AForeignBindIsAdopted) {
  AddNode("n1");
  AddNode("n2");
  HoldGangsOf(2);
  const kube::PodPtr pod = AddPod("a", 100, "train");
  scheduler_.ScheduleOne(now_);
  ASSERT_EQ(scheduler_.waiting_pods(), 1u);
  auto bound = std::make_shared<kube::PodObject>(*pod);
  bound->pod.set_node_name("n2");
  bound->resource_version = "later";
  scheduler_.events()->OnPodUpsert(bound, now_);
  EXPECT_EQ(scheduler_.waiting_pods(), 0u);
  EXPECT_EQ(scheduler_.attempts_in_flight(), 0u);
  EXPECT_EQ(scheduler_.cluster()->NodeOf("uid-a"), "n2");
  EXPECT_THAT(effects_.binds, IsEmpty());
  EXPECT_THAT(effects_.events, IsEmpty());
}

// The profile above is without the guard; this one has it.
class GuardedSchedulerTest : public SchedulerTest {
 protected:
  GuardedSchedulerTest() {
    framework::ProfilePlan plan;
    plan.algorithm.name = kProfile;
    plan.algorithm.score_plugins = {{"Score", 1}};
    plan.host_names = {kHost};
    plan.guard.resources = true;
    scheduler_.SetPlan(plan);
  }
};

TEST_F(GuardedSchedulerTest, RefusesAPlacementThatDoesNotFit) {
  AddNode("n1", 1000);
  AddPod("big", 2000);
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_THAT(effects_.binds, IsEmpty());
  ASSERT_THAT(effects_.events, SizeIs(1));
  EXPECT_THAT(effects_.events[0],
              HasSubstr("plugin host placed the pod on node n1, which cannot take it"));
}

// An answer that places these pods on these slots.
void PlaceAll(const std::vector<std::pair<std::string, uint32_t>>& pods, bool group,
              v1beta1::PlanResponse* response) {
  response->mutable_evaluation()->mutable_pre_filter();
  for (const auto& [uid, slot] : pods) {
    v1beta1::PlannedPlacement* placement = response->mutable_plan()->add_placements();
    placement->set_pod_uid(uid);
    placement->set_slot(slot);
    placement->set_processed(1);
    placement->set_feasible(1);
  }
  if (!group) return;
  response->mutable_plan()->mutable_group()->set_name("gang");
  response->mutable_plan()->mutable_group()->set_needed(static_cast<uint32_t>(pods.size()));
  response->mutable_plan()->mutable_group()->set_max_schedulable(
      static_cast<uint32_t>(pods.size()));
}

TEST_F(SchedulerTest, PlacesTheNextPodsWithTheFirst) {
  host_.CanAlso(v1beta1::CAPABILITY_BATCH);
  AddNode("n1");
  AddNode("n2");
  for (const char* name : {"a", "b", "c"}) AddPod(name);
  host_.cycle = [](const auto&, auto* response) {
    PlaceAll({{"uid-a", 0}, {"uid-b", 1}, {"uid-c", 0}}, /*group=*/false, response);
    return absl::OkStatus();
  };
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  ASSERT_THAT(host_.cycles, SizeIs(1));
  EXPECT_THAT(host_.cycles[0].next_pod_uids(), ElementsAre("uid-b", "uid-c"));
  ASSERT_THAT(effects_.binds, SizeIs(3));
  EXPECT_EQ(effects_.binds[1].pod->pod.name(), "b");
  EXPECT_EQ(effects_.binds[1].node_name, "n2");
  EXPECT_EQ(effects_.binds[2].attempt_id, effects_.binds[0].attempt_id + 2);
  EXPECT_FALSE(scheduler_.ScheduleOne(now_));
  for (const BindOrder& order : std::vector<BindOrder>(effects_.binds)) ConfirmBind(order);
  EXPECT_THAT(effects_.events, ElementsAre("a to n1", "b to n2", "c to n1"));
  // The next search begins where the third one ended.
  host_.cycle = nullptr;
  AddPod("d");
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_EQ(host_.cycles[1].cycle().search().start_offset(), 3u % 2);
}

TEST_F(SchedulerTest, OffersNoPodsThatOthersHaveASayIn) {
  host_.CanAlso(v1beta1::CAPABILITY_BATCH);
  host_.CanAlso(v1beta1::CAPABILITY_GROUP_PLAN);
  AddNode("n1");
  AddPod("a");
  AddPod("b");
  AddPod("gang-member", 100, "job");
  AddPod("c");
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_THAT(host_.cycles[0].next_pod_uids(), ElementsAre("uid-b"));
  EXPECT_FALSE(host_.cycles[0].place_group());
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_THAT(host_.cycles[2].next_pod_uids(), IsEmpty());
  EXPECT_TRUE(host_.cycles[2].place_group());
}

TEST_F(SchedulerTest, DropsThoseBehindAPodThatLostItsPlace) {
  host_.CanAlso(v1beta1::CAPABILITY_BATCH);
  framework::ProfilePlan plan;
  plan.algorithm.name = kProfile;
  plan.algorithm.filter_plugins = {"Fit"};
  plan.host_names = {kHost};
  scheduler_.SetPlan(plan);  // The guard counts.
  AddNode("n1", 150);
  AddNode("n2", 150);
  for (const char* name : {"a", "b", "c"}) AddPod(name);
  host_.cycle = [](const auto&, auto* response) {
    PlaceAll({{"uid-a", 0}, {"uid-b", 0}, {"uid-c", 1}}, /*group=*/false, response);
    return absl::OkStatus();
  };
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  ASSERT_THAT(effects_.binds, SizeIs(1));
  ASSERT_THAT(effects_.events, SizeIs(1));
  EXPECT_THAT(effects_.events[0], HasSubstr("b: plugin host placed the pod on node n1"));
  // The host learns that the third attempt is over; the pod is tried again in its turn.
  host_.cycle = nullptr;
  host_.num_nodes = 2;
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_EQ(host_.cycles[1].cycle().pod_uid(), "uid-c");
  std::set<uint64_t> ended;
  for (const auto& change : host_.changes)
    ended.insert(change.ended_attempts().begin(), change.ended_attempts().end());
  EXPECT_TRUE(ended.contains(effects_.binds[0].attempt_id + 2));
}

TEST_F(SchedulerTest, AHostCannotPlacePodsOutOfTurn) {
  host_.CanAlso(v1beta1::CAPABILITY_BATCH);
  AddNode("n1");
  for (const char* name : {"a", "b", "c"}) AddPod(name);
  host_.cycle = [](const auto&, auto* response) {
    PlaceAll({{"uid-a", 0}, {"uid-c", 0}}, /*group=*/false, response);
    return absl::OkStatus();
  };
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_THAT(effects_.binds, IsEmpty());
  Pass(absl::Seconds(5));
  ASSERT_THAT(effects_.events, SizeIs(1));
  EXPECT_THAT(effects_.events[0], HasSubstr("places pod uid-c out of turn"));
}

TEST_F(SchedulerTest, TakesMembersOfAGroupFromWhereverTheyWait) {
  host_.CanAlso(v1beta1::CAPABILITY_GROUP_PLAN);
  AddNode("n1");
  AddPod("a", 100, "job");
  AddPod("b", 100, "job");
  host_.cycle = [this](const auto&, auto* response) {
    host_.Infeasible("Fit", "Insufficient cpu", response);
    return absl::OkStatus();
  };
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_EQ(scheduler_.queue().counts().unschedulable, 2u);
  AddPod("c", 100, "job");
  HoldGangsOf(3);
  host_.cycle = [](const auto&, auto* response) {
    PlaceAll({{"uid-c", 0}, {"uid-gone", 0}, {"uid-b", 0}, {"uid-a", 0}}, /*group=*/true, response);
    return absl::OkStatus();
  };
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_THAT(effects_.binds, SizeIs(3));
  EXPECT_EQ(scheduler_.queue().counts().unschedulable, 0u);
  EXPECT_EQ(scheduler_.waiting_pods(), 0u);
}

TEST_F(SchedulerTest, AGroupThatFindsNoRoomIsRejectedAsOne) {
  host_.CanAlso(v1beta1::CAPABILITY_GROUP_PLAN);
  AddNode("n1");
  AddPod("a", 100, "job");
  host_.cycle = [](const auto&, auto* response) {
    RejectGang("3 of 8 members fit", response);
    return absl::OkStatus();
  };
  PlanGangs();
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_THAT(effects_.events, ElementsAre("a: 0/1 nodes are available: 3 of 8 members fit."));
  Pass(absl::Seconds(60));
  EXPECT_FALSE(scheduler_.ScheduleOne(now_));
  AddNode("n2");
  Pass(absl::Seconds(2));
  EXPECT_TRUE(scheduler_.ScheduleOne(now_)) << "room is what helps";
}

TEST_F(SchedulerTest, MembersOfARejectedGroupShareTheAnswer) {
  host_.CanAlso(v1beta1::CAPABILITY_GROUP_PLAN);
  PlanGangs();
  AddNode("n1");
  for (const char* name : {"a", "b", "c"}) AddPod(name, 100, "job");
  AddPod("single");
  host_.cycle = [](const auto& request, auto* response) {
    response->mutable_evaluation()->mutable_pre_filter();
    if (request.cycle().pod_uid() == "uid-single") {
      response->mutable_evaluation()->mutable_filter()->set_processed(1);
      response->mutable_evaluation()->mutable_filter()->set_feasible("\1");
      return absl::OkStatus();
    }
    RejectGang("2 of 3 members fit", response);
    for (const char* name : {"a", "b", "c", "gone"}) {
      const std::string uid = absl::StrCat("uid-", name);
      if (uid != request.cycle().pod_uid())
        response->mutable_rejection()->mutable_group()->add_pod_uids(uid);
    }
    return absl::OkStatus();
  };
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_THAT(effects_.events, ElementsAre("a: 0/1 nodes are available: 2 of 3 members fit.",
                                           "b: 0/1 nodes are available: 2 of 3 members fit.",
                                           "c: 0/1 nodes are available: 2 of 3 members fit."));
  EXPECT_EQ(scheduler_.queue().counts().unschedulable, 3u);
  for (const char* name : {"a", "b", "c"})
    EXPECT_EQ(scheduler_.queue().Find(absl::StrCat("uid-", name))->attempts, 1) << name;
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_EQ(host_.cycles.back().cycle().pod_uid(), "uid-single");
  // Members that wait for something else are not in the queue, and stay where they are.
  effects_.events.clear();
  AddNode("n2");
  Pass(absl::Seconds(2));
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_THAT(effects_.events, SizeIs(3));
  EXPECT_FALSE(scheduler_.ScheduleOne(now_));
  EXPECT_THAT(host_.cycles, SizeIs(3));
}

TEST_F(SchedulerTest, APodThatIsRejectedTwiceMakesTheAnswerInvalid) {
  host_.CanAlso(v1beta1::CAPABILITY_GROUP_PLAN);
  PlanGangs();
  AddNode("n1");
  AddPod("a", 100, "job");
  host_.cycle = [](const auto&, auto* response) {
    RejectGang("no", response);
    response->mutable_rejection()->mutable_group()->add_pod_uids("uid-a");
    return absl::OkStatus();
  };
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  Pass(absl::Seconds(5));
  ASSERT_THAT(effects_.events, SizeIs(1));
  EXPECT_THAT(effects_.events[0], HasSubstr("Cycle rejects pod uid-a twice"));
}

TEST_F(SchedulerTest, MembersWithNominatedNodesAreSentTogether) {
  host_.CanAlso(v1beta1::CAPABILITY_GROUP_PLAN);
  AddNode("n1");
  AddNode("n2");
  for (const char* name : {"a", "b"}) {
    auto pod = std::make_shared<kube::PodObject>(*MakePod(name, 100, "job"));
    pod->pod.set_nominated_node_name("n1");
    scheduler_.events()->OnPodUpsert(pod, now_);
  }
  host_.cycle = [](const auto&, auto* response) {
    PlaceAll({{"uid-a", 1}, {"uid-b", 0}}, /*group=*/true, response);
    return absl::OkStatus();
  };
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  ASSERT_THAT(host_.cycles, SizeIs(1));
  EXPECT_TRUE(host_.cycles[0].place_group());
  EXPECT_FALSE(host_.cycles[0].cycle().search().has_nodes());
  ASSERT_THAT(effects_.binds, SizeIs(2));
  EXPECT_EQ(effects_.binds[0].node_name, "n2");
  EXPECT_EQ(effects_.binds[1].node_name, "n1");
}

TEST_F(SchedulerTest, APodScheduledAloneGetsItsNominatedNode) {
  host_.CanAlso(v1beta1::CAPABILITY_GROUP_PLAN);
  AddNode("n1");
  AddNode("n2");
  auto pod = std::make_shared<kube::PodObject>(*MakePod("a", 100, "job"));
  pod->pod.set_nominated_node_name("n2");
  scheduler_.events()->OnPodUpsert(pod, now_);
  host_.cycle = [this](const v1beta1::PlanRequest& request, auto* response) {
    host_.num_nodes = request.cycle().search().has_nodes() ? 1 : 2;
    host_.Feasible(response);
    return absl::OkStatus();
  };
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  ASSERT_THAT(host_.cycles, SizeIs(2));
  EXPECT_TRUE(host_.cycles[0].place_group());
  EXPECT_FALSE(host_.cycles[1].place_group());
  EXPECT_THAT(host_.cycles[1].cycle().search().nodes().slots(), ElementsAre(1));
  ASSERT_THAT(effects_.binds, SizeIs(1));
  EXPECT_EQ(effects_.binds[0].node_name, "n2");
}

}  // namespace
}  // namespace outboard::scheduler::scheduler_test
