// One profile, two hosts.
#include "shim/scheduler/testing/several_hosts.h"

namespace outboard::framework::several_hosts {
namespace {

TEST_F(SeveralHostsTest, TheSumOfAllHostsDecidesOnTheNodesThatAllTake) {
  rejects_["a"] = {{"n1", "cpu"}};
  scores_ = {{"a", {100, 90, 30}}, {"b", {100, 10, 50}}};
  AddPod("p");
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_THAT(effects_.binds, ElementsAre("n3"));
  EXPECT_THAT(Log(),
              ElementsAre("a preFilter", "b preFilter", "a filter", "b filter", "a score of 2",
                          "b score of 2", "a reserve", "b reserve", "b permit", "a permit"));
  EXPECT_THAT(hosts_["a"].cycles, IsEmpty());
}

TEST_F(SeveralHostsTest, AHostThatIsNotPartOfTheAlgorithmIsAskedLaterOnly) {
  ProfilePlan plan;
  plan.algorithm.name = kProfile;
  plan.algorithm.score_plugins = {{"Score", 1}};
  plan.host_names = {"a", "b"};
  plan.permit = {{"b", {{"Gang", {}, 0}}}};
  plan.guard.resources = false;
  scheduler_.SetPlan(plan);
  hosts_["a"].num_nodes = kNodes;
  AddPod("p");
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_THAT(hosts_["a"].cycles, SizeIs(1));
  EXPECT_THAT(Log(), ElementsAre("b permit"));
  EXPECT_THAT(effects_.binds, SizeIs(1));
  // Without it no attempt begins.
  hosts_["b"].is_usable = false;
  AddPod("q");
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_THAT(hosts_["a"].cycles, SizeIs(1));
  Pass(absl::Seconds(5));
  EXPECT_THAT(effects_.failures,
              ElementsAre("plugin host \"b\" did not answer: the host is unavailable"));
}

// As "SLOT UID…".
std::vector<std::string> Named(
    const google::protobuf::RepeatedPtrField<v1beta1::NominatedPods>& nominated) {
  std::vector<std::string> all;
  for (const v1beta1::NominatedPods& node : nominated)
    all.push_back(absl::StrCat(node.slot(), " ", absl::StrJoin(node.pod_uids(), " ")));
  return all;
}

TEST_F(SeveralHostsTest, QuestionsNameTheNodesToEvaluateTwice) {
  NothingFits();
  const auto nominate = [&](const std::string& name, int32_t priority, const std::string& node) {
    auto pod = std::make_shared<kube::PodObject>();
    pod->pod.set_uid("uid-" + name);
    pod->pod.set_namespace_("ns");
    pod->pod.set_name(name);
    pod->pod.set_scheduler_name("another");
    pod->pod.set_priority(priority);
    pod->resource_version = absl::StrCat(++resource_version_);
    scheduler_.events()->OnPodUpsert(pod, now_);
    EXPECT_TRUE(
        scheduler_.cluster()->Nominate("uid-" + name, scheduler_.cluster()->SlotOf(node)).ok());
  };
  nominate("y", 5, "n3");
  nominate("x", 6, "n3");
  nominate("z", 5, "n1");
  nominate("low", 4, "n2");
  std::vector<FilterRequest> searches;
  for (auto& [name, host] : hosts_) {
    host.filter = [&, name = name](const FilterRequest& request) {
      if (!request.simulation().nodes().empty()) return AnswerHypotheses(name, request);
      searches.push_back(request);
      return AnswerFilter(name);
    };
  }
  hosts_["a"].post_filter = [&](const v1beta1::PostFilterRequest& request) {
    v1beta1::PostFilterResponse answer;
    if (!request.answers().empty()) {
      answer.mutable_none();
      return answer;
    }
    auto* asked = answer.mutable_questions()->add_questions()->mutable_simulated_node();
    asked->set_slot(scheduler_.cluster()->SlotOf("n3"));
    asked->add_removed_pod_uids("uid-v3");
    return answer;
  };
  AddPod("p", 5);
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  ASSERT_THAT(searches, SizeIs(2));
  for (const FilterRequest& request : searches)
    EXPECT_THAT(Named(request.search().nominated()), ElementsAre("0 uid-z", "2 uid-x uid-y"));
  ASSERT_THAT(hypotheses_, SizeIs(1));
  EXPECT_THAT(Named(hypotheses_[0].simulation().nominated()), ElementsAre("2 uid-x uid-y"))
      << "only of the simulated nodes";
}

// Host "b" is interested only in pods with claims; "a" handles the others alone.
class SkippedHostTest : public SeveralHostsTest {
 protected:
  SkippedHostTest() {
    ProfilePlan plan = AlgorithmOfBoth({"Fit", "Ports"});
    auto without = std::make_shared<ProfilePlan>();
    without->algorithm.name = kProfile;
    without->algorithm.pre_filter_plugins = {"Volumes", "Behind"};
    without->algorithm.filter_plugins = {"Fit"};
    without->algorithm.score_plugins = {{"Score", 1}};
    without->algorithm.post_filter_plugins = {"DefaultPreemption"};
    without->host_names = {"a"};
    without->post_filter_hosts = {"a"};
    without->skipped_before = {{"no claims", {"Volumes"}}};
    without->guard.resources = false;
    plan.skipped.push_back({"b", {"b", {"spec.resourceClaims"}}, without});
    scheduler_.SetPlan(plan);
    hosts_["a"].num_nodes = kNodes;
  }
  void AddPodWithClaim(const std::string& name) {
    AddPod(name);
    auto pod = std::make_shared<kube::PodObject>(*scheduler_.cluster()->FindPod("uid-" + name));
    pod->pod.add_claims()->set_name("c");
    pod->resource_version = absl::StrCat(++resource_version_);
    scheduler_.events()->OnPodUpsert(pod, now_);
  }
};

TEST_F(SkippedHostTest, APodThatTheOtherHostSkipsNeedsOneMessageToOneHost) {
  AddPod("p");
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_THAT(hosts_["a"].cycles, SizeIs(1));
  EXPECT_THAT(Log(), IsEmpty());
  EXPECT_THAT(effects_.binds, SizeIs(1));
  AddPodWithClaim("q");
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_THAT(hosts_["a"].cycles, SizeIs(1));
  EXPECT_THAT(Log(), ::testing::Contains("b filter"));
  EXPECT_THAT(effects_.binds, SizeIs(2));
}

TEST_F(SkippedHostTest, OnlyPodsThatAnUnavailableHostHandlesWaitForIt) {
  hosts_["b"].is_usable = false;
  AddPodWithClaim("q");
  AddPod("p");
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  Pass(absl::Seconds(5));
  EXPECT_THAT(effects_.failures,
              ElementsAre("plugin host \"b\" did not answer: the host is unavailable"));
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_THAT(effects_.binds, SizeIs(1));
  EXPECT_EQ(scheduler_.queue().counts().parked, 1u);
  hosts_["b"].is_usable = true;
  scheduler_.SetHost("b", &hosts_["b"], scheduler_.cluster()->AddHost({}), now_);
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_THAT(effects_.binds, SizeIs(2));
}

// They never have an attempt that could report it.
TEST_F(SeveralHostsTest, PodsThatWaitForAnAbsentHostsGateGetAnEventAfterTheGrace) {
  scheduler_.SetHost("b", nullptr, 0, now_);
  AddPod("p");
  scheduler_.Tick(now_);
  EXPECT_THAT(effects_.failures, IsEmpty()) << "it may be back in a moment";
  EXPECT_LE(scheduler_.NextWakeup(now_), now_ + absl::Seconds(5));
  Pass(absl::Seconds(5));
  EXPECT_THAT(effects_.failures,
              ElementsAre("plugin host \"b\" did not answer: the host is unavailable"));
  Pass(absl::Seconds(5));
  EXPECT_THAT(effects_.failures, SizeIs(1)) << "once";
  // A host that returns in time is not reported.
  scheduler_.SetHost("b", &hosts_["b"], scheduler_.cluster()->AddHost({}), now_);
  scheduler_.SetHost("b", nullptr, 0, now_);
  AddPod("q");
  scheduler_.SetHost("b", &hosts_["b"], scheduler_.cluster()->AddHost({}), now_);
  now_ += absl::Seconds(10);
  scheduler_.Tick(now_);
  EXPECT_THAT(effects_.failures, SizeIs(1));
}

// Each call delays all pods for its deadline.
TEST_F(SeveralHostsTest, AHostThatIsSilentAtTheGateIsAskedNoMoreUntilItAnswersAProbe) {
  const auto answers = hosts_["b"].pre_enqueue;
  int asked = 0;
  hosts_["b"].pre_enqueue =
      [&](const v1beta1::PreEnqueueRequest&) -> absl::StatusOr<v1beta1::PreEnqueueResponse> {
    ++asked;
    return absl::DeadlineExceededError("too slow");
  };
  for (const char* name : {"p", "q", "r", "s", "t"}) {
    AddPod(name);
    scheduler_.Tick(now_);
    EXPECT_GT(scheduler_.NextWakeup(now_), now_) << name;
  }
  EXPECT_EQ(asked, 3);
  EXPECT_TRUE(scheduler_.IsHeldBack("b"));
  EXPECT_EQ(scheduler_.NextWakeup(now_), now_ + absl::Seconds(1));
  Pass(absl::Seconds(5));
  const std::string late = "plugin host \"b\" did not answer: too slow";
  const std::string unavailable = "plugin host \"b\" did not answer: the host is unavailable";
  EXPECT_THAT(effects_.failures, ElementsAre(late, late, unavailable, unavailable, unavailable));
  hosts_["b"].pre_enqueue = answers;
  scheduler_.OnProbeAnswered("b", now_);
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_THAT(effects_.binds, SizeIs(5));
}

TEST_F(SkippedHostTest, ANewPlanReplacesThePlanOfRunningAttempts) {
  AddPod("p");
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  ProfilePlan plan;
  plan.algorithm.name = kProfile;
  plan.host_names = {"a"};
  plan.guard.resources = false;
  scheduler_.SetPlan(plan);
  // The attempt began with a plan that no pod uses now.
  effects_.binder->OnBindEnded(1, scheduler::BindEnd::kNotBound, "no", now_);
  EXPECT_THAT(effects_.failures, SizeIs(1));
}

TEST_F(SkippedHostTest, WhatItWouldHaveSaidAtPostFilterIsSaid) {
  hosts_["a"].cycle = [this](const v1beta1::PlanRequest&, v1beta1::PlanResponse* response) {
    hosts_["a"].Infeasible("Fit", "cpu", response);
    return absl::OkStatus();
  };
  hosts_["a"].post_filter = [this](const v1beta1::PostFilterRequest&) {
    v1beta1::PostFilterResponse answer;
    *answer.mutable_rejection()->mutable_status() = Status("DefaultPreemption", "no victims");
    return answer;
  };
  AddPod("p");
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_THAT(effects_.failures,
              ElementsAre("0/3 nodes are available: 3 cpu. no claims, no victims"));
}

// As kube-scheduler's plugins whose PreFilter did not write their state.
TEST_F(SkippedHostTest, ItsStateIsMissingWhereAPluginBeforeItEndedPreFilter) {
  const auto reject = [this](const std::string& plugin) {
    hosts_["a"].cycle = [this, plugin](const v1beta1::PlanRequest&,
                                       v1beta1::PlanResponse* response) {
      v1beta1::PluginStatus* status =
          response->mutable_rejection()->mutable_pre_filter()->mutable_rejection();
      *status = Status(plugin, "no claim");
      status->set_code(v1beta1::CODE_UNSCHEDULABLE_AND_UNRESOLVABLE);
      response->mutable_rejection()->mutable_pre_filter()->add_rejected_by(plugin);
      return absl::OkStatus();
    };
  };
  bool asked = false;
  hosts_["a"].post_filter = [&](const v1beta1::PostFilterRequest&) {
    asked = true;
    v1beta1::PostFilterResponse answer;
    *answer.mutable_rejection()->mutable_status() = Status("DefaultPreemption", "no victims");
    return answer;
  };
  reject("Volumes");
  AddPod("p");
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_FALSE(asked);
  reject("Behind");
  AddPod("q");
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_TRUE(asked);
  EXPECT_THAT(effects_.failures,
              ElementsAre("0/3 nodes are available: no claim. not found",
                          "0/3 nodes are available: no claim. no claims, no victims"));
}

TEST_F(SeveralHostsTest, NoHostSeesAChangeBetweenPreFilterAndScore) {
  std::vector<size_t> sent;
  std::vector<int64_t> versions;
  for (auto& [name, host] : hosts_) {
    host.pre_filter = [&, &host = host](const v1beta1::PreFilterRequest& request) {
      sent.push_back(host.changes.size());
      versions.push_back(request.header().exact_version());
      EXPECT_EQ(host.changes.back().version(), request.header().exact_version());
      return v1beta1::PreFilterResponse();
    };
    auto score = host.score;
    host.score = [&, &host = host, score](const v1beta1::ScoreRequest& request) {
      sent.push_back(host.changes.size());
      versions.push_back(request.header().exact_version());
      return score(request);
    };
  }
  AddPod("p");
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  ASSERT_THAT(sent, SizeIs(4));
  EXPECT_EQ(sent[0], sent[2]);
  EXPECT_EQ(sent[1], sent[3]);
  EXPECT_EQ(versions[0], versions[2]);
  EXPECT_EQ(versions[1], versions[3]);
  // Both learn that the attempt is over.
  effects_.binder->OnBindEnded(1, scheduler::BindEnd::kBound, "", now_);
  AddPod("next");
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  for (const auto& [name, host] : hosts_) {
    uint64_t ended = 0;
    for (const auto& change : host.changes) {
      for (const uint64_t id : change.ended_attempts()) ended = id;
    }
    EXPECT_EQ(ended, 1u) << name;
  }
}

TEST_F(SeveralHostsTest, TheFirstPluginOfTheProfileIsReportedForANode) {
  rejects_["a"] = {{"n1", "cpu"}, {"n2", "cpu"}, {"n3", "cpu"}};
  rejects_["b"] = {{"n2", "port"}};
  hosts_["a"].post_filter = [](const auto&) { return NoPodHasToLeave(); };
  AddPod("p");
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_THAT(effects_.failures, ElementsAre("0/3 nodes are available: 1 port, 2 cpu."));
}

TEST_F(SeveralHostsTest, APodIsParkedForTheUnavailableHost) {
  AddPod("p");
  hosts_["b"].is_usable = false;
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  Pass(absl::Seconds(5));
  EXPECT_THAT(effects_.failures,
              ElementsAre("plugin host \"b\" did not answer: the host is unavailable"));
  EXPECT_THAT(Log(), IsEmpty());
  EXPECT_EQ(scheduler_.queue().counts().parked, 1u);
  hosts_["b"].is_usable = true;
  scheduler_.SetHost("b", &hosts_["b"], scheduler_.cluster()->AddHost({}), now_);
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_THAT(effects_.binds, SizeIs(1));
}

// As a shim that starts: its pods come before its host has the cluster.
TEST_F(SeveralHostsTest, AHostThatIsPreparedForTheFirstTimeIsWaitedFor) {
  ProfilePlan plan;
  plan.algorithm.name = kProfile;
  plan.algorithm.score_plugins = {{"Score", 1}};
  plan.host_names = {"a", "new"};
  plan.pre_enqueue = {{"new", {{"Gate", {}}}}};
  plan.guard.resources = false;
  scheduler_.SetPlan(plan);
  scheduler_.ExpectHost("new", now_);
  AddPod("p");
  scheduler_.Tick(now_);
  EXPECT_EQ(scheduler_.queue().counts().parked, 1u);
  EXPECT_THAT(effects_.failures, IsEmpty());
  now_ += absl::Seconds(6);
  scheduler_.ExpectHost("new", now_);
  scheduler_.Tick(now_);
  EXPECT_THAT(effects_.failures,
              ElementsAre("plugin host \"new\" did not answer: the host is unavailable"));
}

TEST_F(SeveralHostsTest, APodIsNotParkedForAHostThatItsProfileNoLongerUses) {
  AddPod("p");
  scheduler_.SetHost("b", nullptr, 0, now_);
  now_ += absl::Seconds(6);
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_EQ(scheduler_.queue().counts().parked, 1u);
  ProfilePlan plan;
  plan.algorithm.name = kProfile;
  plan.algorithm.score_plugins = {{"Score", 1}};
  plan.host_names = {"a"};
  plan.guard.resources = false;
  scheduler_.SetPlan(plan);
  hosts_["a"].num_nodes = kNodes;
  scheduler_.Tick(now_);
  EXPECT_EQ(scheduler_.queue().counts().parked, 0u);
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_THAT(effects_.binds, SizeIs(1));
}

TEST_F(SeveralHostsTest, WhileOneHostIsBrieflyUnavailablePodsKeepTheirPlaces) {
  AddPod("p");
  scheduler_.SetHost("b", nullptr, 0, now_);
  EXPECT_FALSE(scheduler_.ScheduleOne(now_));
  EXPECT_EQ(scheduler_.NextWakeup(now_), now_ + absl::Seconds(5));
  EXPECT_FALSE(scheduler_.ScheduleOne(now_ + absl::Seconds(4)));
  EXPECT_THAT(effects_.failures, IsEmpty());
  EXPECT_TRUE(scheduler_.ScheduleOne(now_ + absl::Seconds(6)));
  EXPECT_EQ(scheduler_.queue().counts().parked, 1u);
  EXPECT_LE(scheduler_.NextWakeup(now_), now_ + absl::Seconds(6));
  scheduler_.Tick(now_ + absl::Seconds(6));
  EXPECT_THAT(effects_.failures,
              ElementsAre("plugin host \"b\" did not answer: the host is unavailable"));
}

TEST_F(SeveralHostsTest, AnAnswerForAnotherHostsPluginIsRejected) {
  hosts_["b"].filter = [this](const FilterRequest&) {
    rejects_["a"] = {{"n1", "cpu"}};
    return AnswerFilter("a");
  };
  AddPod("p");
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_THAT(errors_.all, ElementsAre("Filter answers for \"Fit\", which this host does not "
                                       "serve in the profile"));
  Pass(absl::Seconds(5));
  EXPECT_THAT(effects_.failures, ElementsAre(HasSubstr("plugin host \"b\" did not answer")));
}

TEST_F(SeveralHostsTest, UnreservesInReverseOrder) {
  *permitted_["a"].mutable_rejection() = Status("Other", "no");
  AddPod("p");
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  const std::vector<std::string> log = Log();
  EXPECT_THAT(
      std::vector<std::string>(log.end() - 6, log.end()),
      ElementsAre("a reserve", "b reserve", "b permit", "a permit", "b unreserve", "a unreserve"));
  EXPECT_THAT(effects_.failures, ElementsAre("0/1 nodes are available: 1 no."));
}

TEST_F(SeveralHostsTest, AReserveThatFailsGivesBackWhatOthersReserved) {
  *reserved_["b"].mutable_rejection() = Status("Gang", "no");
  AddPod("p");
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  const std::vector<std::string> log = Log();
  EXPECT_THAT(std::vector<std::string>(log.end() - 4, log.end()),
              ElementsAre("a reserve", "b reserve", "b unreserve", "a unreserve"));
  EXPECT_THAT(effects_.binds, IsEmpty());
}

TEST_F(SeveralHostsTest, WaitsForTheDecisionsOfAllHosts) {
  for (const auto& [host, plugin] : {std::pair("a", "Other"), std::pair("b", "Gang")}) {
    auto* wait = permitted_[host].add_waits();
    wait->set_plugin(plugin);
    wait->set_timeout_micros(60'000'000);
  }
  AddPod("p");
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_EQ(scheduler_.waiting_pods(), 1u);
  for (const auto& [host, plugin] : {std::pair("a", "Other"), std::pair("b", "Gang")}) {
    EXPECT_THAT(effects_.binds, IsEmpty());
    auto* decision = hosts_[host].pushes.emplace_back().mutable_wait_decision();
    decision->set_attempt_id(1);
    decision->set_pod_uid("uid-p");
    decision->set_plugin(plugin);
    decision->set_allow(true);
    scheduler_.Tick(now_);
  }
  EXPECT_THAT(effects_.binds, SizeIs(1));
}

// A host cannot release a pod from the wait of another host's plugin, nor reject it in its name.
TEST_F(SeveralHostsTest, AHostDecidesOnlyForItsOwnPlugins) {
  auto* wait = permitted_["b"].add_waits();
  wait->set_plugin("Gang");
  wait->set_timeout_micros(60'000'000);
  AddPod("p");
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  ASSERT_EQ(scheduler_.waiting_pods(), 1u);
  v1beta1::WaitDecision decision;
  decision.set_attempt_id(1);
  decision.set_pod_uid("uid-p");
  decision.set_plugin("Gang");
  for (const bool allow : {true, false}) {
    decision.set_allow(allow);
    *hosts_["a"].pushes.emplace_back().mutable_wait_decision() = decision;
    scheduler_.Tick(now_);
    EXPECT_EQ(scheduler_.waiting_pods(), 1u) << allow;
  }
  EXPECT_THAT(errors_.all, SizeIs(2));
  // Nor in its answer about another pod.
  decision.set_allow(true);
  *permitted_["a"].add_decisions() = decision;
  permitted_["b"].clear_waits();
  AddPod("q");
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_EQ(scheduler_.waiting_pods(), 1u);
  EXPECT_THAT(effects_.binds, SizeIs(1)) << "pod q";
  *hosts_["b"].pushes.emplace_back().mutable_wait_decision() = decision;
  scheduler_.Tick(now_);
  EXPECT_THAT(effects_.binds, SizeIs(2));
}

TEST_F(SeveralHostsTest, EachHostIsAskedAboutItsOwnEffects) {
  scheduler_.events()->OnObjectUpsert(testing::DelayedClass(), now_);
  scheduler_.events()->OnObjectUpsert(testing::WaitingClaim("ns", "claim", "u", "1"), now_);
  int n = 0;
  for (const char* host : {"a", "b"}) {
    auto* effect = reserved_[host].add_effects();
    effect->set_plugin(host == std::string("a") ? "Volumes" : "Gang");
    effect->set_key(absl::StrCat("key-", ++n));
    auto* select = effect->mutable_select_node();
    select->set_namespace_("ns");
    select->set_name("claim");
    select->set_uid("u");
    select->set_resource_version("1");
    select->set_node_name("n1");
    hosts_[host].pre_bind = [this, host](const v1beta1::PreBindRequest& request) {
      Note(host, " preBind of ", request.effects(0).plugin(), " ", request.results(0).key(), " ",
           request.effects_size(), request.results_size());
      return v1beta1::PreBindResponse();
    };
  }
  auto pod = std::make_shared<kube::PodObject>();
  pod->pod.set_uid("uid-p");
  pod->pod.set_namespace_("ns");
  pod->pod.set_name("p");
  pod->pod.set_scheduler_name(kProfile);
  auto* volume = pod->pod.add_volumes();
  volume->set_source("persistentVolumeClaim");
  volume->set_claim_name("claim");
  pod->resource_version = "x";
  scores_ = {{"a", {9, 0, 0}}, {"b", {0, 0, 0}}};
  scheduler_.events()->OnPodUpsert(pod, now_);
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  for (size_t i = 0; i < 2; ++i) {
    ASSERT_THAT(effects_.writes, SizeIs(i + 1));
    effects_.writes[i].ordered_by->OnEffectEnded(effects_.writes[i], {absl::OkStatus(), "2"}, now_);
  }
  Log();
  scheduler_.Tick(now_ + absl::Seconds(2));
  EXPECT_THAT(Log(), ElementsAre("a preBind of Volumes key-1 11", "b preBind of Gang key-2 11"));
  EXPECT_THAT(effects_.binds, ElementsAre("n1"));
}

TEST_F(SeveralHostsTest, TheFirstGateOfTheProfileIsReported) {
  gate_["a"] = Status("LateGate", "later");
  gate_["b"] = Status("EarlyGate", "not yet");
  AddPod("p");
  EXPECT_FALSE(scheduler_.ScheduleOne(now_));
  EXPECT_EQ(scheduler_.queue().Find("uid-p")->gate_message, "not yet");
  gate_["b"] = v1beta1::PluginStatus();
  AddPod("q");
  EXPECT_EQ(scheduler_.queue().Find("uid-q")->gate_message, "later");
}

TEST_F(SeveralHostsTest, PostFilterLearnsWhatAllSaidOfNodes) {
  NothingFits();
  Propose({});
  AddPod("p", 10);
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  ASSERT_THAT(post_filters_, SizeIs(1));
  EXPECT_TRUE(post_filters_[0].others_filter());
  const v1beta1::JudgedNodes& judged = post_filters_[0].judged();
  EXPECT_EQ(judged.others(), v1beta1::CODE_UNSCHEDULABLE_AND_UNRESOLVABLE);
  EXPECT_THAT(judged.slots(), ElementsAre(0, 1, 2));
  EXPECT_THAT(judged.codes(), ElementsAre(v1beta1::CODE_UNSCHEDULABLE, v1beta1::CODE_UNSCHEDULABLE,
                                          v1beta1::CODE_UNSCHEDULABLE_AND_UNRESOLVABLE));
}

TEST_F(SeveralHostsTest, TakesTheFirstCandidateOnWhichAllAgree) {
  NothingFits();
  rejects_["b"]["n1 uid-v1"] = "port";
  // Not n3: by b's verdict no eviction helps there.
  Propose({"n3", "n1", "n2"});
  AddPod("p", 10);
  Log();
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_THAT(effects_.evicted, ElementsAre("v2"));
  EXPECT_THAT(effects_.nominations, ElementsAre("n2"));
  // One call for all of them, at the version of the attempt, to the other host only.
  ASSERT_THAT(hypotheses_, SizeIs(1));
  EXPECT_THAT(hypotheses_[0].simulation().nodes(), SizeIs(2));
  EXPECT_EQ(hypotheses_[0].header().attempt_id(), post_filters_[0].header().attempt_id());
  EXPECT_THAT(Log(), ElementsAre("a preFilter", "b preFilter", "a filter", "b filter", "b filter"));
}

TEST_F(SeveralHostsTest, ANodeThatOthersFoundUnresolvableIsNotACandidate) {
  NothingFits();
  Propose({"n3"});
  AddPod("p", 10);
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_THAT(effects_.evicted, IsEmpty());
  EXPECT_THAT(hypotheses_, IsEmpty());
  EXPECT_THAT(effects_.failures, ElementsAre(HasSubstr("none of 1 candidates")));
}

TEST_F(SeveralHostsTest, WhereTheOthersObjectToAllNothingIsEvicted) {
  NothingFits();
  rejects_["b"]["n1 uid-v1"] = "port";
  Propose({"n1"});
  AddPod("p", 10);
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_THAT(effects_.evicted, IsEmpty());
  EXPECT_THAT(effects_.failures,
              ElementsAre("0/3 nodes are available: 1 cpu, 1 never, 1 port. preemption: none of 1 "
                          "candidates is accepted by all hosts"));
}

TEST_F(SeveralHostsTest, QuestionsOfPostFilterGoToTheOthers) {
  NothingFits();
  rejects_["b"]["n1 uid-v1"] = "port";
  hosts_["a"].post_filter = [this](const v1beta1::PostFilterRequest& request) {
    post_filters_.push_back(request);
    v1beta1::PostFilterResponse answer;
    if (!request.answers().empty()) {
      *answer.mutable_rejection()->mutable_status() = Status("DefaultPreemption", "enough");
      return answer;
    }
    for (const char* node : {"n1", "n1", "n2", "n2"}) {
      auto* question = answer.mutable_questions()->add_questions();
      question->mutable_simulated_node()->set_slot(scheduler_.cluster()->SlotOf(node));
      question->mutable_simulated_node()->add_removed_pod_uids(absl::StrCat("uid-v", node + 1));
    }
    *answer.mutable_questions()->mutable_questions(1)->mutable_own() = Status("Fit", "cpu");
    *answer.mutable_questions()->mutable_questions(3)->mutable_own() = Status("Fit", "cpu");
    return answer;
  };
  AddPod("p", 10);
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  ASSERT_THAT(post_filters_, SizeIs(2));
  ASSERT_THAT(hypotheses_, SizeIs(1));
  std::vector<std::string> answers;
  for (const auto& answer : post_filters_[1].answers()) answers.push_back(answer.plugin());
  // Ports stands before Fit.
  EXPECT_THAT(answers, ElementsAre("Ports", "Ports", "", "Fit"));
  EXPECT_THAT(effects_.failures, ElementsAre(HasSubstr(" enough")));
}

TEST_F(SeveralHostsTest, PodsAreParkedForTheHostThatDoesNotAnswerAQuestion) {
  NothingFits();
  Propose({"n1"});
  auto filter = hosts_["b"].filter;
  hosts_["b"].filter = [filter](const FilterRequest& request) -> absl::StatusOr<FilterResponse> {
    if (request.simulation().nodes().empty()) return filter(request);
    return absl::DeadlineExceededError("too slow");
  };
  AddPod("p", 10);
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  Pass(absl::Seconds(5));
  EXPECT_THAT(effects_.failures, ElementsAre("plugin host \"b\" did not answer: too slow"));
  EXPECT_THAT(effects_.evicted, IsEmpty());
}

TEST_F(SeveralHostsTest, EventsAreDelegatedOnlyIfAllHostsEvaluateThem) {
  for (const bool both : {false, true}) {
    ScriptedHost a, b;
    a.EvaluateHints();
    if (both) b.EvaluateHints();
    Program("a", &a);
    Program("b", &b);
    a.post_filter = [](const auto&) { return NoPodHasToLeave(); };
    for (const auto& [name, host] : {std::pair("a", &a), std::pair("b", &b)}) {
      const cache::ClusterState::Cursor cursor = scheduler_.cluster()->AddHost({});
      // The snapshot, which the owner of the connection takes and sends.
      scheduler_.cluster()->TakeChanges(cursor, now_);
      scheduler_.SetHost(name, host, cursor, now_);
    }
    rejects_["a"] = {{"n1", "cpu"}, {"n2", "cpu"}, {"n3", "cpu"}};
    const std::string name = both ? "delegated" : "plain";
    AddPod(name);
    ASSERT_TRUE(scheduler_.ScheduleOne(now_));
    EXPECT_EQ(scheduler_.queue().Find("uid-" + name)->delegated, both);
    scheduler_.Tick(now_);
    if (both) {
      for (const ScriptedHost* host : {&a, &b}) {
        ASSERT_THAT(host->changes.back().unschedulable_pods(), SizeIs(1));
        EXPECT_THAT(host->changes.back().unschedulable_pods(0).rejected_by(), ElementsAre("Fit"));
      }
    }
    scheduler_.events()->OnPodDelete("uid-" + name, now_);
    scheduler_.SetHost("a", &hosts_["a"], scheduler_.cluster()->AddHost({}), now_);
    scheduler_.SetHost("b", &hosts_["b"], scheduler_.cluster()->AddHost({}), now_);
  }
}

}  // namespace
}  // namespace outboard::framework::several_hosts
