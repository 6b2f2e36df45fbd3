// What the scheduler does with answers of PostFilter.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "shim/framework/testing/scripted_host.h"
#include "shim/framework/testing/volumes.h"
#include "shim/scheduler/scheduler.h"

namespace outboard::scheduler::scheduler_preemption_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kProfile[] = "outboard";
constexpr char kHost[] = "default";
constexpr char kPlugin[] = "DefaultPreemption";

// All orders, in sequence.
class RecordedActions final : public ClusterActions {
 public:
  void Bind(const BindOrder& order, absl::Time) override {
    binds.push_back(order);
    Note("bind ", order.pod->pod.name(), " to ", order.node_name);
  }
  void Write(const EffectOrder& order, absl::Time) override {
    writes.push_back(order);
    Note("write ", order.effect.key());
  }
  void Evict(const EvictOrder& order, absl::Time) override {
    evictions.push_back(order);
    Note("evict ", order.victim->pod.name());
  }
  void RecordPreempted(const kube::PodObject& victim, const std::string& profile,
                       const std::string& preemptor_uid, const std::string& node_name,
                       bool in_memory, absl::Time) override {
    Note("event ", victim.pod.name(), " preempted by ", preemptor_uid, " on ", node_name,
         in_memory ? " in memory" : "");
  }
  void RecordScheduled(const kube::PodObject&, const std::string&, const std::string&,
                       absl::Time) override {}
  void RecordFailed(const kube::PodObject& pod, const std::string&, const std::string& message,
                    absl::Time) override {
    Note("event ", pod.pod.name(), ": ", message);
  }
  void PatchStatus(const kube::PodObject& pod, const std::optional<PodScheduledFalse>& condition,
                   const std::optional<std::string>& nominated, absl::Time) override {
    Note("patch ", pod.pod.name(), " ", condition ? condition->reason : "-", " ",
         nominated ? absl::StrCat("nominated=", *nominated) : "-");
  }
  template <typename... Parts>
  void Note(const Parts&... parts) {
    log.push_back(absl::StrCat(parts...));
  }
  std::vector<std::string> Take() { return std::exchange(log, {}); }

  std::vector<BindOrder> binds;
  std::vector<EffectOrder> writes;
  std::vector<EvictOrder> evictions;
  std::vector<std::string> log;
};

class CountingObserver final : public Observer {
 public:
  void OnPreemption(const kube::PodObject&, const std::string& node,
                    const std::vector<kube::PodPtr>& victims, size_t to_evict) override {
    preemptions.push_back(absl::StrCat(node, " ", victims.size(), " ", to_evict));
  }
  void OnProtocolError(const std::string&, const std::string&,
                       const absl::Status& status) override {
    protocol_errors.push_back(std::string(status.message()));
  }
  void OnCall(v1beta1::ExtensionPoint point, const std::string&, v1beta1::Code code,
              absl::Duration) override {
    if (point == v1beta1::EXTENSION_POINT_POST_FILTER) calls.push_back(code);
  }
  std::vector<std::string> preemptions;
  std::vector<std::string> protocol_errors;
  std::vector<v1beta1::Code> calls;
};

// Nodes n1 and n2; nothing fits, unless the test changes it.
class SchedulerPreemptionTest : public ::testing::Test {
 protected:
  SchedulerPreemptionTest()
      : scheduler_({}, queue::QueueOptions(), &effects_, &observer_, nullptr, now_) {
    scheduler_.SetProfileNames({kProfile});
    framework::ProfilePlan plan;
    plan.algorithm.name = kProfile;
    plan.algorithm.pre_filter_plugins = {"Fit"};
    plan.algorithm.filter_plugins = {"Fit"};
    plan.algorithm.score_plugins = {{"Score", 1}};
    plan.algorithm.post_filter_plugins = {kPlugin};
    plan.preemption_gates = {kPlugin};
    plan.post_filter_hosts = {kHost};
    plan.host_names = {kHost};
    plan.host_of[kPlugin] = kHost;
    plan.permit = {{kHost, {{"Gang", {"metadata.labels['job-name']"}}}}};
    plan.reserve = {{kHost, {{"VolumeBinding", {"spec.volumes[*].persistentVolumeClaim"}}}}};
    plan.pre_bind_plugins = {"VolumeBinding"};
    plan.guard.resources = false;
    plan.wake_up_events["Fit"] = {queue::AssignedPodDelete()};
    plan.wake_up_events[kPlugin] = {queue::AssignedPodDelete()};
    scheduler_.SetPlan(plan);
    scheduler_.SetHost(kHost, &host_, scheduler_.cluster()->AddHost({}), now_);
    for (const char* name : {"n1", "n2"}) {
      auto node = std::make_shared<kube::NodeObject>();
      node->node.set_uid(absl::StrCat("uid-", name));
      node->node.set_name(name);
      node->node.mutable_allocatable()->set_pods(10);
      node->resource_version = absl::StrCat(++resource_version_);
      scheduler_.events()->OnNodeUpsert(node, now_);
    }
    scheduler_.events()->OnObjectUpsert(framework::testing::DelayedClass(), now_);
    for (const char* claim : {"data", "more"}) {
      scheduler_.events()->OnObjectUpsert(framework::testing::WaitingClaim("ns", claim, "u", "5"),
                                          now_);
    }
    host_.num_nodes = 2;
    NothingFits();
  }
  void NothingFits() {
    host_.cycle = [this](const auto&, auto* response) {
      host_.Infeasible("Fit", "Insufficient cpu", response);
      return absl::OkStatus();
    };
  }
  std::shared_ptr<kube::PodObject> MakePod(const std::string& name, int32_t priority,
                                           const std::string& node = "") {
    auto pod = std::make_shared<kube::PodObject>();
    pod->pod.set_uid(absl::StrCat("uid-", name));
    pod->pod.set_namespace_("ns");
    pod->pod.set_name(name);
    pod->pod.set_scheduler_name(kProfile);
    pod->pod.set_priority(priority);
    pod->pod.set_node_name(node);
    pod->pod.add_containers();
    return pod;
  }
  // A member of the one group.
  static std::shared_ptr<kube::PodObject> Grouped(std::shared_ptr<kube::PodObject> pod) {
    pod->pod.set_pod_group_name("gang");
    return pod;
  }
  void Upsert(const std::shared_ptr<kube::PodObject>& pod) {
    pod->resource_version = absl::StrCat(++resource_version_);
    scheduler_.events()->OnPodUpsert(pod, now_);
  }
  void AddPod(const std::string& name, int32_t priority, const std::string& node = "") {
    Upsert(MakePod(name, priority, node));
  }
  // The host proposes a node and victims.
  void Propose(const std::string& node, const std::vector<std::string>& victims,
               const std::vector<std::string>& companions = {}) {
    v1beta1::PostFilterResponse answer;
    auto* candidate = answer.mutable_candidates()->add_candidates();
    candidate->set_slot(scheduler_.cluster()->SlotOf(node));
    candidate->set_plugin(kPlugin);
    for (const std::string& victim : victims) candidate->add_victim_uids("uid-" + victim);
    for (const std::string& pod : companions) candidate->add_companion_uids("uid-" + pod);
    Answer(answer);
  }
  void Answer(const v1beta1::PostFilterResponse& answer) {
    host_.post_filter = [this, answer](const v1beta1::PostFilterRequest& request) {
      asked_.push_back(request);
      return answer;
    };
  }
  void EndEviction(size_t index, EvictEnd end) {
    const EvictOrder order = effects_.evictions.at(index);
    order.ordered_by->OnEvictionEnded(order.preemption_id, order.victim, end, "", now_);
  }
  // A pod with a node and two effects to execute before the bind.
  std::string PlaceWithEffects(const std::string& name) {
    host_.cycle = nullptr;
    host_.reserve = [](const v1beta1::ReserveRequest& request) {
      v1beta1::ReserveResponse response;
      for (const char* claim : {"data", "more"}) {
        v1beta1::Effect* effect = response.add_effects();
        effect->set_key(absl::StrCat("effect-", claim));
        effect->set_plugin("VolumeBinding");
        v1beta1::SelectNode* select = effect->mutable_select_node();
        select->set_namespace_("ns");
        select->set_name(claim);
        select->set_uid("u");
        select->set_resource_version("5");
        select->set_node_name(request.node_name());
      }
      return response;
    };
    auto pod = Grouped(MakePod(name, 1));
    v1beta1::Volume* volume = pod->pod.add_volumes();
    volume->set_name("v");
    volume->set_source("persistentVolumeClaim");
    volume->set_claim_name("data");
    volume = pod->pod.add_volumes();
    volume->set_name("w");
    volume->set_source("persistentVolumeClaim");
    volume->set_claim_name("more");
    Upsert(pod);
    EXPECT_TRUE(scheduler_.ScheduleOne(now_));
    NothingFits();
    return scheduler_.cluster()->NodeOf("uid-" + name);
  }
  void EndWrite(size_t index, const absl::Status& status = absl::OkStatus()) {
    effects_.writes.at(index).ordered_by->OnEffectEnded(effects_.writes.at(index), {status, "10"},
                                                        now_);
  }
  // Pod p, which preempts pod w.
  void PreemptOn(const std::string& node) {
    AddPod("p", 10);
    Propose(node, {"w"});
    effects_.Take();
    EXPECT_TRUE(scheduler_.ScheduleOne(now_));
  }
  const queue::QueuedPod& Queued(const std::string& name) {
    return *scheduler_.queue().Find("uid-" + name);
  }

  absl::Time now_ = absl::FromUnixSeconds(1000);
  int resource_version_ = 0;
  RecordedActions effects_;
  CountingObserver observer_;
  framework::ScriptedHost host_;
  Scheduler scheduler_;
  std::vector<v1beta1::PostFilterRequest> asked_;
};

constexpr char kNoFit[] = "0/2 nodes are available: 2 Insufficient cpu.";

TEST_F(SchedulerPreemptionTest, ARejectionEndsThePodsMessage) {
  AddPod("p", 10);
  v1beta1::PostFilterResponse answer;
  answer.mutable_rejection()->mutable_status()->set_plugin(kPlugin);
  answer.mutable_rejection()->mutable_status()->set_code(v1beta1::CODE_UNSCHEDULABLE);
  answer.mutable_rejection()->mutable_status()->add_reasons("preemption: not helpful.");
  Answer(answer);
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_THAT(effects_.Take(),
              ElementsAre(absl::StrCat("event p: ", kNoFit, " preemption: not helpful."),
                          "patch p Unschedulable -"));
  ASSERT_THAT(asked_, SizeIs(1));
  EXPECT_EQ(asked_[0].header().attempt_id(), host_.cycles[0].cycle().header().attempt_id());
  EXPECT_EQ(asked_[0].header().exact_version(), host_.cycles[0].cycle().header().exact_version());
  EXPECT_THAT(observer_.calls, ElementsAre(v1beta1::CODE_UNSCHEDULABLE));
  EXPECT_THAT(observer_.preemptions, IsEmpty());
}

TEST_F(SchedulerPreemptionTest, ARejectionKeepsOrClearsTheNomination) {
  auto pod = MakePod("p", 10);
  pod->pod.set_nominated_node_name("n2");
  v1beta1::PostFilterResponse answer;
  answer.mutable_rejection()->mutable_status()->set_plugin(kPlugin);
  answer.mutable_rejection()->mutable_status()->set_code(v1beta1::CODE_UNSCHEDULABLE);
  answer.mutable_rejection()->mutable_status()->add_reasons("no");
  for (const bool clear : {false, true}) {
    answer.mutable_rejection()->set_clear_nomination(clear);
    Answer(answer);
    host_.cycle = [](const v1beta1::PlanRequest&, v1beta1::PlanResponse* response) {
      v1beta1::PluginStatus* rejection =
          response->mutable_rejection()->mutable_pre_filter()->mutable_rejection();
      rejection->set_plugin("Fit");
      rejection->set_code(v1beta1::CODE_UNSCHEDULABLE);
      rejection->add_reasons("not at all");
      return absl::OkStatus();
    };
    Upsert(std::make_shared<kube::PodObject>(*pod));
    scheduler_.cluster()->Nominate("uid-p", scheduler_.cluster()->SlotOf("n2")).IgnoreError();
    ASSERT_TRUE(scheduler_.ScheduleOne(now_));
    EXPECT_THAT(effects_.Take(), ElementsAre("event p: 0/2 nodes are available: not at all. no",
                                             clear ? "patch p Unschedulable nominated="
                                                   : "patch p Unschedulable -"));
    EXPECT_THAT(scheduler_.cluster()->NominatedTo("n2"), SizeIs(clear ? 0 : 1));
    scheduler_.events()->OnPodDelete("uid-p", now_);
  }
}

TEST_F(SchedulerPreemptionTest, TheNominatedNodeIsTriedAloneFirst) {
  auto pod = MakePod("p", 10);
  pod->pod.set_nominated_node_name("n2");
  const uint32_t nominated = scheduler_.cluster()->SlotOf("n2");
  bool fits = false;
  host_.cycle = [&](const v1beta1::PlanRequest&, v1beta1::PlanResponse* response) {
    host_.num_nodes = 1;
    if (fits) {
      host_.Feasible(response);
    } else {
      host_.Infeasible("Fit", "full", response);
    }
    host_.num_nodes = 2;
    return absl::OkStatus();
  };
  host_.filter = [&](const v1beta1::FilterRequest& request) {
    EXPECT_FALSE(request.search().has_nodes());
    v1beta1::PlanResponse all;
    host_.Infeasible("Fit", "full", &all);
    return all.evaluation().filter();
  };
  host_.post_filter = nullptr;
  Upsert(pod);
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  ASSERT_THAT(host_.cycles, SizeIs(1));
  EXPECT_THAT(host_.cycles[0].cycle().search().nodes().slots(), ElementsAre(nominated));
  EXPECT_THAT(effects_.binds, IsEmpty());
  scheduler_.events()->OnPodDelete("uid-p", now_);

  fits = true;
  Upsert(pod);
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  ASSERT_THAT(host_.cycles, SizeIs(2));
  ASSERT_THAT(effects_.binds, SizeIs(1));
  EXPECT_EQ(effects_.binds[0].node_name, "n2");
}

TEST_F(SchedulerPreemptionTest, EvictsAllButTheLastAtOnceAndThenTheLast) {
  AddPod("a", 1, "n1");
  AddPod("b", 2, "n1");
  AddPod("c", 3, "n1");
  AddPod("p", 10);
  Propose("n1", {"c", "b", "a"});
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_THAT(effects_.Take(),
              ElementsAre(absl::StrCat("event p: ", kNoFit), "patch p Unschedulable nominated=n1",
                          "evict c", "evict b"));
  EXPECT_THAT(observer_.preemptions, ElementsAre("n1 3 3"));
  EXPECT_THAT(scheduler_.cluster()->NominatedTo("n1"), SizeIs(1));
  EndEviction(0, EvictEnd::kEvicted);
  EXPECT_THAT(effects_.Take(), ElementsAre("event c preempted by uid-p on n1"));
  EndEviction(1, EvictEnd::kGone);
  EXPECT_THAT(effects_.Take(), ElementsAre("evict a")) << "a pod that was gone gets no event";
  EndEviction(2, EvictEnd::kEvicted);
  EXPECT_THAT(effects_.Take(), ElementsAre("event a preempted by uid-p on n1"));
  EXPECT_EQ(Queued("p").place, queue::Place::kUnschedulable);
}

TEST_F(SchedulerPreemptionTest, ThePreemptorIsKeptOutUntilTheLastVictimLeaves) {
  AddPod("a", 1, "n1");
  AddPod("b", 2, "n1");
  AddPod("p", 10);
  Propose("n1", {"b", "a"});
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  now_ += absl::Seconds(30);
  scheduler_.events()->OnPodDelete("uid-b", now_);
  EXPECT_EQ(Queued("p").place, queue::Place::kGated);
  EXPECT_EQ(Queued("p").gating_plugin, kPlugin);
  EXPECT_EQ(Queued("p").gate_message, "waiting for the preemption for this pod to be finished");
  EndEviction(0, EvictEnd::kEvicted);
  ASSERT_THAT(effects_.evictions, SizeIs(2));
  // The informer reports its deletion before the answer to its eviction.
  scheduler_.events()->OnPodDelete("uid-a", now_);
  EXPECT_EQ(Queued("p").place, queue::Place::kActive);
  EndEviction(1, EvictEnd::kEvicted);
  host_.cycle = nullptr;
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_THAT(effects_.binds, SizeIs(1));
}

TEST_F(SchedulerPreemptionTest, ThePreemptorIsKeptOutWhileTheLastVictimOnlySeemsGone) {
  AddPod("a", 1, "n1");
  AddPod("other", 1, "n2");
  AddPod("p", 10);
  Propose("n1", {"a"});
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  now_ += absl::Seconds(30);
  // The API server writes the deletion timestamp before it deletes.
  auto vanishing = MakePod("a", 1, "n1");
  vanishing->pod.set_deletion_unix_seconds(1030);
  vanishing->vanishes = true;
  Upsert(vanishing);
  EndEviction(0, EvictEnd::kEvicted);
  scheduler_.events()->OnPodDelete("uid-other", now_);
  EXPECT_EQ(Queued("p").place, queue::Place::kGated) << "its room is not free yet";
  scheduler_.events()->OnPodDelete("uid-a", now_);
  EXPECT_EQ(Queued("p").place, queue::Place::kActive);
}

TEST_F(SchedulerPreemptionTest, ThePreemptorIsFreeWhenTheLastVictimTakesItsTimeToLeave) {
  AddPod("a", 1, "n1");
  AddPod("another", 1, "n2");
  AddPod("other", 1, "n2");
  AddPod("p", 10);
  Propose("n1", {"a"});
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  now_ += absl::Seconds(30);
  EndEviction(0, EvictEnd::kEvicted);
  scheduler_.events()->OnPodDelete("uid-another", now_);
  EXPECT_EQ(Queued("p").place, queue::Place::kGated) << "the informer has not reported it yet";
  auto leaving = MakePod("a", 1, "n1");
  leaving->pod.set_deletion_unix_seconds(1060);
  Upsert(leaving);
  scheduler_.events()->OnPodDelete("uid-other", now_);
  EXPECT_EQ(Queued("p").place, queue::Place::kActive);
}

TEST_F(SchedulerPreemptionTest, AHostEvaluatesEventsForThePreemptorFromTheLastVictimOn) {
  host_.EvaluateHints();
  const auto cursor = scheduler_.cluster()->AddHost({});
  scheduler_.cluster()->TakeChanges(cursor, now_);
  scheduler_.SetHost(kHost, &host_, cursor, now_);
  const auto hears = [&] {
    scheduler_.Tick(now_);
    std::vector<std::string> sent;
    for (const v1beta1::SyncRequest& request : std::exchange(host_.changes, {})) {
      for (const auto& pod : request.unschedulable_pods()) sent.push_back(pod.uid() + " waits");
      for (const auto& event : request.events()) sent.push_back(event.pod_uid());
    }
    return sent;
  };
  AddPod("a", 1, "n1");
  AddPod("b", 2, "n1");
  AddPod("p", 10);
  Propose("n1", {"b", "a"});
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_THAT(hears(), IsEmpty());
  scheduler_.events()->OnPodDelete("uid-b", now_);
  EXPECT_THAT(hears(), IsEmpty()) << "it would be gated";
  EndEviction(0, EvictEnd::kEvicted);
  scheduler_.events()->OnPodDelete("uid-a", now_);
  EXPECT_THAT(hears(), ElementsAre("uid-p waits", "uid-a"));
}

TEST_F(SchedulerPreemptionTest, AnEvictionOfAMissingVictimReleasesThePreemptorToo) {
  host_.EvaluateHints();
  const auto cursor = scheduler_.cluster()->AddHost({});
  scheduler_.cluster()->TakeChanges(cursor, now_);
  scheduler_.SetHost(kHost, &host_, cursor, now_);
  AddPod("a", 1, "n1");
  AddPod("p", 10);
  Propose("n1", {"a"});
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_TRUE(Queued("p").held);
  EndEviction(0, EvictEnd::kGone);
  EXPECT_FALSE(Queued("p").held);
  EXPECT_TRUE(Queued("p").delegated);
}

TEST_F(SchedulerPreemptionTest, APreemptorThatNothingGatesIsNotKeptOut) {
  framework::ProfilePlan plan;
  plan.algorithm.name = kProfile;
  plan.algorithm.filter_plugins = {"Fit"};
  plan.algorithm.score_plugins = {{"Score", 1}};
  plan.algorithm.post_filter_plugins = {kPlugin};
  plan.post_filter_hosts = {kHost};
  plan.host_names = {kHost};
  plan.wake_up_events["Fit"] = {queue::AssignedPodDelete()};
  scheduler_.SetPlan(plan);
  AddPod("a", 1, "n1");
  AddPod("b", 1, "n1");
  AddPod("p", 10);
  Propose("n1", {"b", "a"});
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  now_ += absl::Seconds(30);
  scheduler_.events()->OnPodDelete("uid-b", now_);
  EXPECT_EQ(Queued("p").place, queue::Place::kActive);
}

TEST_F(SchedulerPreemptionTest, AfterAFailureTheLastStaysAndThePodIsTriedAgain) {
  AddPod("a", 1, "n1");
  AddPod("b", 2, "n1");
  AddPod("p", 10);
  Propose("n1", {"b", "a"});
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  effects_.Take();
  EndEviction(0, EvictEnd::kFailed);
  EXPECT_THAT(effects_.Take(), IsEmpty()) << "neither an event nor another eviction";
  EXPECT_EQ(Queued("p").place, queue::Place::kActive);
}

// A pod that waits for the last victim waits for room on the node, so a victim on the node is last.
TEST_F(SchedulerPreemptionTest, CompanionsElsewhereLeaveBeforeTheLastVictimOfTheNode) {
  AddPod("b", 2, "n1");
  for (const auto& [name, node] :
       {std::pair("a", "n1"), std::pair("c", "n2"), std::pair("d", "n2")})
    Upsert(Grouped(MakePod(name, 1, node)));
  AddPod("p", 10);
  Propose("n1", {"b", "a"}, {"c", "d"});
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_THAT(effects_.Take(),
              ElementsAre(absl::StrCat("event p: ", kNoFit), "patch p Unschedulable nominated=n1",
                          "evict c", "evict d", "evict b"));
  EXPECT_THAT(observer_.preemptions, ElementsAre("n1 4 4"));
  for (size_t i = 0; i < 3; ++i) EndEviction(i, EvictEnd::kEvicted);
  EXPECT_THAT(effects_.Take(),
              ElementsAre("event c preempted by uid-p on n1", "event d preempted by uid-p on n1",
                          "event b preempted by uid-p on n1", "evict a"));
  now_ += absl::Seconds(30);
  for (const char* gone : {"c", "d", "b"})
    scheduler_.events()->OnPodDelete(absl::StrCat("uid-", gone), now_);
  EXPECT_EQ(Queued("p").place, queue::Place::kGated);
  scheduler_.events()->OnPodDelete("uid-a", now_);
  EXPECT_EQ(Queued("p").place, queue::Place::kActive);
}

// A group makes room on several nodes at once.
TEST_F(SchedulerPreemptionTest, EachMemberOfAGroupHasANominatedNode) {
  AddPod("a", 1, "n1");
  AddPod("b", 1, "n2");
  for (const char* member : {"p", "q"}) Upsert(Grouped(MakePod(member, 10)));
  v1beta1::PostFilterResponse answer;
  auto* candidate = answer.mutable_candidates()->add_candidates();
  candidate->set_slot(scheduler_.cluster()->SlotOf("n1"));
  candidate->set_plugin(kPlugin);
  for (const char* victim : {"uid-b", "uid-a"}) candidate->add_victim_uids(victim);
  v1beta1::Nomination* nomination = candidate->add_nominations();
  nomination->set_pod_uid("uid-q");
  nomination->set_slot(scheduler_.cluster()->SlotOf("n2"));
  Answer(answer);
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_THAT(effects_.Take(),
              ElementsAre(absl::StrCat("event p: ", kNoFit), "patch p Unschedulable nominated=n1",
                          "patch q - nominated=n2", "evict b"));
  ASSERT_THAT(scheduler_.cluster()->NominatedTo("n2"), SizeIs(1));
  EXPECT_EQ(scheduler_.cluster()->NominatedTo("n2")[0]->pod.name(), "q");
}

TEST_F(SchedulerPreemptionTest, NoMemberOfAGroupIsTriedBeforeAllEvictionsHaveBegun) {
  host_.CanAlso(v1beta1::CAPABILITY_GROUP_PLAN);
  for (const char* victim : {"a", "b"}) AddPod(victim, 1, "n1");
  AddPod("stranger", 1, "n2");
  for (const char* member : {"p", "q"}) {
    auto pod = MakePod(member, 10);
    (*pod->pod.mutable_labels())["job-name"] = "job";
    Upsert(pod);
  }
  host_.cycle = [](const auto&, auto* response) {
    v1beta1::PluginStatus* rejection =
        response->mutable_rejection()->mutable_pre_filter()->mutable_rejection();
    rejection->set_plugin("Fit");
    rejection->set_code(v1beta1::CODE_UNSCHEDULABLE_AND_UNRESOLVABLE);
    rejection->add_reasons("0 of 2 members fit");
    response->mutable_rejection()->mutable_pre_filter()->add_rejected_by("Fit");
    response->mutable_rejection()->mutable_group()->add_pod_uids("uid-q");
    return absl::OkStatus();
  };
  v1beta1::PostFilterResponse answer;
  auto* candidate = answer.mutable_candidates()->add_candidates();
  candidate->set_slot(scheduler_.cluster()->SlotOf("n1"));
  candidate->set_plugin(kPlugin);
  for (const char* victim : {"uid-b", "uid-a"}) candidate->add_victim_uids(victim);
  candidate->add_nominations()->set_pod_uid("uid-q");
  candidate->mutable_nominations(0)->set_slot(scheduler_.cluster()->SlotOf("n1"));
  Answer(answer);
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_THAT(effects_.evictions, SizeIs(1));
  EXPECT_THAT(scheduler_.cluster()->NominatedTo("n1"), SizeIs(2));
  scheduler_.events()->OnPodDelete("uid-stranger", now_);
  now_ += absl::Seconds(20);
  scheduler_.Tick(now_);
  for (const char* member : {"p", "q"})
    EXPECT_EQ(Queued(member).place, queue::Place::kGated) << member;
  EXPECT_FALSE(scheduler_.ScheduleOne(now_));
  for (const char* victim : {"b", "a"}) {
    ASSERT_EQ(effects_.evictions.back().victim->pod.name(), victim);
    EndEviction(effects_.evictions.size() - 1, EvictEnd::kEvicted);
    auto leaving = MakePod(victim, 1, "n1");
    leaving->pod.set_deletion_unix_seconds(1100);
    Upsert(leaving);
  }
  scheduler_.events()->OnPodDelete("uid-a", now_);
  now_ += absl::Seconds(20);
  scheduler_.Tick(now_);
  for (const char* member : {"p", "q"})
    EXPECT_NE(Queued(member).place, queue::Place::kGated) << member;
}

TEST_F(SchedulerPreemptionTest, NodesAreKeptOnlyForPodsThatWait) {
  AddPod("a", 1, "n1");
  AddPod("p", 10);
  for (const char* stranger : {"uid-a", "uid-unknown", "uid-p"}) {
    v1beta1::PostFilterResponse answer;
    auto* candidate = answer.mutable_candidates()->add_candidates();
    candidate->set_slot(scheduler_.cluster()->SlotOf("n1"));
    candidate->set_plugin(kPlugin);
    candidate->add_victim_uids("uid-a");
    candidate->add_nominations()->set_pod_uid(stranger);
    Answer(answer);
    ASSERT_TRUE(scheduler_.ScheduleOne(now_)) << stranger;
    EXPECT_THAT(effects_.evictions, IsEmpty()) << stranger;
    EXPECT_EQ(Queued("p").place, queue::Place::kParked) << stranger;
    now_ += absl::Seconds(30);
    scheduler_.Tick(now_);
  }
}

// There is room without an eviction: the pod does not wait for companions elsewhere.
TEST_F(SchedulerPreemptionTest, CompanionsAloneGateNoPod) {
  auto leaving = Grouped(MakePod("a", 1, "n1"));
  leaving->pod.set_deletion_unix_seconds(999);
  Upsert(leaving);
  Upsert(Grouped(MakePod("c", 1, "n2")));
  AddPod("p", 10);
  Propose("n1", {"a"}, {"c"});
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_THAT(effects_.evictions, SizeIs(1));
  now_ += absl::Seconds(30);
  scheduler_.events()->OnPodDelete("uid-a", now_);
  EXPECT_EQ(Queued("p").place, queue::Place::kActive);
}

TEST_F(SchedulerPreemptionTest, ACompanionThatWaitsAtPermitOnlyLosesItsPlace) {
  const std::string node = PlaceWithEffects("w");
  EndWrite(0);
  EndWrite(1);
  const std::string other = node == "n1" ? "n2" : "n1";
  Upsert(Grouped(MakePod("a", 1, other)));
  AddPod("p", 10);
  Propose(other, {"a"}, {"w"});
  effects_.Take();
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_EQ(scheduler_.cluster()->NodeOf("uid-w"), "");
  ASSERT_THAT(effects_.evictions, SizeIs(1));
  EXPECT_EQ(effects_.evictions[0].victim->pod.name(), "a");
  EXPECT_EQ(Queued("p").place, queue::Place::kGated);
}

TEST_F(SchedulerPreemptionTest, APluginThatCouldNotHelpMayHaveThePodTriedAgain) {
  AddPod("p", 10);
  v1beta1::PostFilterResponse answer;
  answer.mutable_rejection()->mutable_status()->set_plugin(kPlugin);
  answer.mutable_rejection()->mutable_status()->set_code(v1beta1::CODE_UNSCHEDULABLE);
  answer.mutable_rejection()->mutable_status()->add_reasons("not now");
  Answer(answer);
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  ASSERT_EQ(Queued("p").place, queue::Place::kUnschedulable);
  EXPECT_EQ(Queued("p").unschedulable_plugins, (absl::btree_set<std::string>{"Fit"}))
      << "numbers and hints are of the plugins that rejected it";
  for (const char* plugin : {"Stranger", kPlugin}) {
    EXPECT_EQ(Queued("p").place, queue::Place::kUnschedulable);
    v1beta1::SyncResponse push;
    push.mutable_activate()->set_plugin(plugin);
    push.mutable_activate()->add_pod_uids("uid-p");
    host_.pushes.push_back(push);
    scheduler_.Tick(now_);
  }
  EXPECT_EQ(Queued("p").place, queue::Place::kActive);
}

TEST_F(SchedulerPreemptionTest, VictimsThatAreLeavingAreNotAskedAgain) {
  auto leaving = MakePod("a", 1, "n1");
  leaving->pod.set_deletion_unix_seconds(999);
  Upsert(leaving);
  AddPod("p", 10);
  Propose("n1", {"a"});
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_THAT(effects_.Take(),
              ElementsAre(absl::StrCat("event p: ", kNoFit), "patch p Unschedulable nominated=n1"));
  EXPECT_THAT(observer_.preemptions, ElementsAre("n1 1 0"));
}

TEST_F(SchedulerPreemptionTest, LessImportantPodsLoseTheirNominationThere) {
  const auto nominated = [&](const char* name, int priority, const char* node) {
    auto pod = MakePod(name, priority);
    pod->pod.set_nominated_node_name(node);
    return pod;
  };
  AddPod("a", 1, "n1");
  AddPod("p", 10);  // Comes first: those of its priority are younger.
  Upsert(nominated("low", 5, "n1"));
  Upsert(nominated("equal", 10, "n1"));
  Upsert(nominated("other", 5, "n2"));
  auto foreign = nominated("foreign", 5, "n1");
  foreign->pod.set_scheduler_name("another");
  Upsert(foreign);
  Propose("n1", {"a"});
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_THAT(effects_.Take(),
              ElementsAre(absl::StrCat("event p: ", kNoFit), "patch p Unschedulable nominated=n1",
                          "patch low - nominated=", "evict a"));
}

TEST_F(SchedulerPreemptionTest, AVictimThatWaitsAtPermitOnlyLosesItsPlace) {
  host_.cycle = nullptr;
  host_.permit = [](const v1beta1::PermitRequest&) {
    v1beta1::PermitResponse response;
    response.add_waits()->set_plugin("Gang");
    response.mutable_waits(0)->set_timeout_micros(60'000'000);
    return response;
  };
  auto waiting = MakePod("w", 1);
  (*waiting->pod.mutable_labels())["job-name"] = "j";
  Upsert(waiting);
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  const std::string node = scheduler_.cluster()->NodeOf("uid-w");
  ASSERT_EQ(scheduler_.waiting_pods(), 1u);
  effects_.Take();

  NothingFits();
  AddPod("p", 10);
  Propose(node, {"w"});
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_THAT(
      effects_.Take(),
      ElementsAre(absl::StrCat("event p: ", kNoFit),
                  absl::StrCat("patch p Unschedulable nominated=", node),
                  "event w: waiting on permit for pod: preempted", "patch w SchedulerError -",
                  absl::StrCat("event w preempted by uid-p on ", node, " in memory")));
  EXPECT_EQ(scheduler_.waiting_pods(), 0u);
  EXPECT_EQ(scheduler_.cluster()->NodeOf("uid-w"), "");
  EXPECT_EQ(Queued("w").place, queue::Place::kErrorBackoff);
  EXPECT_EQ(Queued("p").place, queue::Place::kBackoff) << "there is room, and no gate";
}

constexpr char kPreempted[] =
    "event w: running PreBind plugin \"VolumeBinding\": preempted by DefaultPreemption";

TEST_F(SchedulerPreemptionTest, AVictimThatPreBindIsAskedAboutOnlyLosesItsPlace) {
  const std::string node = PlaceWithEffects("w");
  EndWrite(0);
  EndWrite(1);
  PreemptOn(node);
  EXPECT_THAT(effects_.Take(),
              ElementsAre(absl::StrCat("event p: ", kNoFit),
                          absl::StrCat("patch p Unschedulable nominated=", node), kPreempted,
                          "patch w SchedulerError -",
                          absl::StrCat("event w preempted by uid-p on ", node, " in memory")));
  EXPECT_EQ(scheduler_.attempts_in_flight(), 0u);
  EXPECT_EQ(scheduler_.cluster()->NodeOf("uid-w"), "");
  EXPECT_EQ(Queued("w").place, queue::Place::kErrorBackoff);
  EXPECT_EQ(Queued("p").place, queue::Place::kBackoff) << "there is room, and no gate";
  now_ += absl::Seconds(1);
  scheduler_.Tick(now_);
  EXPECT_THAT(effects_.binds, IsEmpty());
}

TEST_F(SchedulerPreemptionTest, AVictimLosesItsPlaceAfterItsRunningEffect) {
  for (const absl::Status& end : {absl::OkStatus(), absl::AbortedError("conflict")}) {
    SCOPED_TRACE(end.ToString());
    const size_t before = effects_.writes.size();
    const std::string node = PlaceWithEffects("w");
    ASSERT_EQ(effects_.writes.size(), before + 1);
    PreemptOn(node);
    EXPECT_THAT(effects_.Take(),
                ElementsAre(absl::StrCat("event p: ", kNoFit),
                            absl::StrCat("patch p Unschedulable nominated=", node),
                            absl::StrCat("event w preempted by uid-p on ", node, " in memory")));
    EndWrite(before, end);
    EXPECT_THAT(effects_.Take(), ElementsAre(kPreempted, "patch w SchedulerError -"));
    EXPECT_EQ(effects_.writes.size(), before + 1) << "no second one";
    EXPECT_EQ(scheduler_.cluster()->NodeOf("uid-w"), "");
    scheduler_.events()->OnPodDelete("uid-w", now_);
    scheduler_.events()->OnPodDelete("uid-p", now_);
  }
}

TEST_F(SchedulerPreemptionTest, AVictimThatIsBeingBoundIsEvicted) {
  const std::string node = PlaceWithEffects("w");
  EndWrite(0);
  EndWrite(1);
  host_.pre_bind = [](const v1beta1::PreBindRequest&) { return v1beta1::PreBindResponse(); };
  now_ += absl::Seconds(1);
  scheduler_.Tick(now_);
  ASSERT_THAT(effects_.binds, SizeIs(1));
  PreemptOn(node);
  EXPECT_THAT(effects_.Take(),
              ElementsAre(absl::StrCat("event p: ", kNoFit),
                          absl::StrCat("patch p Unschedulable nominated=", node), "evict w"));
}

TEST_F(SchedulerPreemptionTest, ALyingHostIsNotBelieved) {
  AddPod("a", 1, "n1");
  AddPod("peer", 10, "n1");
  AddPod("elsewhere", 1, "n2");
  struct Lie {
    std::string node;
    std::vector<std::string> victims;
    std::string complaint;
    std::vector<std::string> companions = {};
  };
  const std::vector<Lie> lies = {
      {"n1", {"a", "unknown"}, "unknown pod uid-unknown"},
      {"n1", {"peer"}, "ns/peer of priority 10 for one of priority 10"},
      {"n1", {"elsewhere"}, "ns/elsewhere from node n1, but it is on \"n2\""},
      {"n1", {"p"}, "ns/p from node n1, but it is on \"\""},
      {"n1", {}, "without victims"},
      {"n1", {"a", "a"}, "twice"},
      {"n9", {"a"}, "which has no node"},
      {"n1", {"a"}, "unknown pod uid-unknown", {"unknown"}},
      {"n1", {"a"}, "ns/peer of priority 10 for one of priority 10", {"peer"}},
      {"n1", {"a"}, "ns/p from any node, but it is on \"\"", {"p"}},
      {"n1", {"a"}, "twice", {"elsewhere", "a"}},
      {"n1", {}, "without victims", {"elsewhere"}},
      {"n1", {"a"}, "ns/elsewhere, which is of no victim's group", {"elsewhere"}},
  };
  for (const Lie& lie : lies) {
    AddPod("p", 10);
    Propose(lie.node, lie.victims, lie.companions);
    ASSERT_TRUE(scheduler_.ScheduleOne(now_));
    ASSERT_THAT(observer_.protocol_errors, SizeIs(1)) << lie.complaint;
    EXPECT_THAT(std::exchange(observer_.protocol_errors, {})[0], HasSubstr(lie.complaint));
    EXPECT_EQ(Queued("p").place, queue::Place::kParked);
    scheduler_.events()->OnPodDelete("uid-p", now_);
    now_ += framework::Breaker::kLongestPause;
    scheduler_.OnProbeAnswered(kHost, now_);  // Some lies in a row open the breaker.
  }
  EXPECT_THAT(effects_.evictions, IsEmpty());
  EXPECT_THAT(observer_.preemptions, IsEmpty());
}

TEST_F(SchedulerPreemptionTest, AHostThatGivesNoAnswerGetsThePodParked) {
  AddPod("p", 10);
  host_.post_filter = [](const auto&) { return absl::UnavailableError("gone"); };
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_EQ(Queued("p").place, queue::Place::kParked);
}

TEST_F(SchedulerPreemptionTest, FailuresAtPostFilterOpenTheBreaker) {
  host_.post_filter = [](const auto&) { return absl::DeadlineExceededError("too slow"); };
  for (const char* name : {"p", "q", "r"}) {
    EXPECT_FALSE(scheduler_.IsHeldBack(kHost)) << name;
    AddPod(name, 10);
    ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  }
  EXPECT_TRUE(scheduler_.IsHeldBack(kHost));
}

TEST_F(SchedulerPreemptionTest, AProfileWithoutPostFilterDoesNotAsk) {
  framework::ProfilePlan plan;
  plan.algorithm.name = kProfile;
  plan.algorithm.filter_plugins = {"Fit"};
  plan.host_names = {kHost};
  scheduler_.SetPlan(plan);
  AddPod("p", 10);
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_THAT(effects_.Take(),
              ElementsAre(absl::StrCat("event p: ", kNoFit), "patch p Unschedulable -"));
}

}  // namespace
}  // namespace outboard::scheduler::scheduler_preemption_test
