#include "shim/scheduler/externally_scheduled_pods.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "shim/framework/testing/scripted_host.h"

namespace outboard::scheduler {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kProfile[] = "extender";
constexpr char kHost[] = "main";

class RecordedBinds final : public ClusterActions {
 public:
  void Bind(const BindOrder& order, absl::Time) override { binds.push_back(order); }
  void Evict(const EvictOrder&, absl::Time) override { ADD_FAILURE(); }
  void RecordPreempted(const kube::PodObject&, const std::string&, const std::string&,
                       const std::string&, bool, absl::Time) override {}
  void Write(const EffectOrder&, absl::Time) override { ADD_FAILURE(); }
  void RecordScheduled(const kube::PodObject&, const std::string&, const std::string&,
                       absl::Time) override {
    ADD_FAILURE() << "kube-scheduler writes this event";
  }
  void RecordFailed(const kube::PodObject&, const std::string&, const std::string&,
                    absl::Time) override {
    ADD_FAILURE();
  }
  void PatchStatus(const kube::PodObject&, const std::optional<PodScheduledFalse>&,
                   const std::optional<std::string>&, absl::Time) override {
    ADD_FAILURE();
  }
  std::vector<BindOrder> binds;
};

class ExternallyScheduledPodsTest : public ::testing::Test {
 protected:
  ExternallyScheduledPodsTest()
      : scheduler_(SchedulerOptions(), queue::QueueOptions(), &effects_, &observer_, nullptr,
                   now_) {
    scheduler_.SetProfileNames({kProfile});
    plan_.algorithm.name = kProfile;
    plan_.algorithm.pre_filter_plugins = {"Model", "Fit"};
    plan_.algorithm.filter_plugins = {"Model", "Fit"};
    plan_.algorithm.score_plugins = {{"Model", 3}, {"Spread", 1}};
    plan_.host_names = {kHost};
    plan_.guard.resources = true;
    scheduler_.SetPlan(plan_);
    scheduler_.SetHost(kHost, &host_, scheduler_.cluster()->AddHost({}), now_);
    for (const char* name : {"a", "b", "c"}) AddNode(name);
    pod_ = AddPod("p");
  }

  void AddNode(const std::string& name) {
    auto node = std::make_shared<kube::NodeObject>();
    node->node.set_uid(absl::StrCat("uid-", name));
    node->node.set_name(name);
    node->node.mutable_allocatable()->set_cpu_millis(1000);
    node->node.mutable_allocatable()->set_pods(10);
    node->resource_version = absl::StrCat(++resource_version_);
    scheduler_.events()->OnNodeUpsert(node, now_);
  }
  kube::PodPtr AddPod(const std::string& name, const std::string& node = "") {
    auto pod = std::make_shared<kube::PodObject>();
    pod->pod.set_uid(absl::StrCat("uid-", name));
    pod->pod.set_namespace_("ns");
    pod->pod.set_name(name);
    pod->pod.set_scheduler_name("default-scheduler");
    pod->pod.set_node_name(node);
    pod->pod.add_containers()->mutable_requests()->set_cpu_millis(600);
    pod->resource_version = absl::StrCat(++resource_version_);
    scheduler_.events()->OnPodUpsert(pod, now_);
    return pod;
  }
  std::vector<uint32_t> Slots(const std::vector<std::string>& names) {
    std::vector<uint32_t> slots;
    for (const std::string& name : names) slots.push_back(scheduler_.cluster()->SlotOf(name));
    return slots;
  }
  absl::Status Evaluate(const std::vector<std::string>& names) {
    return pods_.Evaluate(kProfile, *pod_, Slots(names), now_, &evaluation_);
  }
  // One rejected node in the middle of three.
  static void RejectSecond(v1beta1::PlanResponse* response) {
    response->mutable_evaluation()->mutable_pre_filter();
    v1beta1::FilterResponse* filter = response->mutable_evaluation()->mutable_filter();
    filter->set_processed(3);
    filter->set_feasible(std::string(1, '\x05'));
    v1beta1::PluginStatus* reason = filter->add_reasons();
    reason->set_plugin("Model");
    reason->set_code(v1beta1::CODE_UNSCHEDULABLE_AND_UNRESOLVABLE);
    reason->add_reasons("model mismatch");
    filter->add_rejected(0);
    v1beta1::PluginScores* scores = response->mutable_evaluation()->mutable_score()->add_plugins();
    scores->set_plugin("Model");
    scores->set_scores(std::string("\x64\x0a", 2));
  }

  void Bind(const kube::PodPtr& pod, const std::string& node,
            ExternallyScheduledPods::Bound bound) {
    pods_.Bind(kProfile, pod, node, now_ + absl::Seconds(4), now_, std::move(bound));
  }
  // The outcome of the first bind, for the part that ordered it.
  void EndBind(BindEnd end, const std::string& message) {
    const BindOrder& order = effects_.binds[0];
    order.ordered_by->OnBindEnded(order.attempt_id, end, message, now_);
  }

  absl::Time now_ = absl::UnixEpoch() + absl::Hours(24);
  int resource_version_ = 0;
  RecordedBinds effects_;
  Observer observer_;
  framework::ScriptedHost host_;
  framework::ProfilePlan plan_;
  Scheduler scheduler_;
  ExternallyScheduledPods pods_{scheduler_.shared_parts(), &effects_};
  kube::PodPtr pod_;
  framework::NodeEvaluation evaluation_;
};

TEST_F(ExternallyScheduledPodsTest, EvaluatesEveryNodeOnceInOneMessage) {
  host_.cycle = [](const v1beta1::PlanRequest&, v1beta1::PlanResponse* response) {
    RejectSecond(response);
    return absl::OkStatus();
  };
  ASSERT_TRUE(Evaluate({"c", "a", "b"}).ok());
  // Plugins without a score do not lower the mean.
  EXPECT_THAT(evaluation_.verdicts, ElementsAre(framework::NodeEvaluation::kFeasible, 0,
                                                framework::NodeEvaluation::kFeasible));
  EXPECT_THAT(evaluation_.scores, ElementsAre(1000, 0, 100));
  ASSERT_THAT(evaluation_.reasons, SizeIs(1));
  EXPECT_EQ(evaluation_.reasons[0].reasons(0), "model mismatch");

  ASSERT_THAT(host_.cycles, SizeIs(1));
  const v1beta1::CycleRequest& asked = host_.cycles[0].cycle();
  EXPECT_EQ(asked.pod_uid(), "uid-p");
  EXPECT_EQ(asked.header().profile(), kProfile);
  EXPECT_EQ(asked.search().num_feasible_nodes_to_find(), 3u);
  EXPECT_THAT(asked.search().nodes().slots(), ElementsAre(2, 0, 1));
  // It receives the pod before the call.
  ASSERT_FALSE(host_.changes.empty());
  EXPECT_EQ(host_.changes.back().version(), asked.header().exact_version());
  // The scheduler has no attempt of its own.
  EXPECT_FALSE(scheduler_.ScheduleOne(now_));
}

TEST_F(ExternallyScheduledPodsTest, AttemptEndsOnTheHost) {
  host_.num_nodes = 3;
  host_.cycle = [](const v1beta1::PlanRequest&, v1beta1::PlanResponse* response) {
    RejectSecond(response);
    return absl::OkStatus();
  };
  ASSERT_TRUE(Evaluate({"a", "b", "c"}).ok());
  ASSERT_TRUE(Evaluate({"a", "b", "c"}).ok());
  EXPECT_NE(host_.cycles[0].cycle().header().attempt_id(),
            host_.cycles[1].cycle().header().attempt_id());
  ASSERT_FALSE(host_.changes.empty());
  EXPECT_THAT(host_.changes.back().ended_attempts(),
              ElementsAre(host_.cycles[0].cycle().header().attempt_id()));
}

TEST_F(ExternallyScheduledPodsTest, NodesThatPreFilterLeavesOutAreNotAskedAbout) {
  host_.cycle = [](const v1beta1::PlanRequest& request, v1beta1::PlanResponse* response) {
    v1beta1::PreFilterResponse* pre_filter = response->mutable_evaluation()->mutable_pre_filter();
    pre_filter->mutable_node_names()->add_names("b");
    pre_filter->add_restricted_by("Fit");
    const uint32_t count = static_cast<uint32_t>(request.cycle().search().nodes().slots_size());
    response->mutable_evaluation()->mutable_filter()->set_processed(count);
    response->mutable_evaluation()->mutable_filter()->set_feasible(
        std::string(1, static_cast<char>((1 << count) - 1)));
    v1beta1::PluginScores* scores = response->mutable_evaluation()->mutable_score()->add_plugins();
    scores->set_plugin("Spread");
    scores->set_scores(std::string(count, '\x32'));
    return absl::OkStatus();
  };
  ASSERT_TRUE(Evaluate({"a", "b", "c"}).ok());
  EXPECT_THAT(evaluation_.verdicts, ElementsAre(0, framework::NodeEvaluation::kFeasible, 0));
  EXPECT_THAT(evaluation_.scores, ElementsAre(0, 500, 0));
  EXPECT_EQ(evaluation_.reasons[0].reasons(0), "node(s) didn't satisfy plugin(s) [Fit]");
  EXPECT_EQ(evaluation_.reasons[0].code(), v1beta1::CODE_UNSCHEDULABLE_AND_UNRESOLVABLE);
  ASSERT_THAT(host_.cycles, SizeIs(2));
  EXPECT_THAT(host_.cycles[1].cycle().search().nodes().slots(), ElementsAre(1));
}

TEST_F(ExternallyScheduledPodsTest, APreFilterRejectionCoversAllNodes) {
  host_.cycle = [](const v1beta1::PlanRequest&, v1beta1::PlanResponse* response) {
    v1beta1::PluginStatus* rejection =
        response->mutable_rejection()->mutable_pre_filter()->mutable_rejection();
    rejection->set_plugin("Model");
    rejection->set_code(v1beta1::CODE_UNSCHEDULABLE);
    rejection->add_reasons("no quota");
    response->mutable_rejection()->mutable_pre_filter()->add_rejected_by("Model");
    return absl::OkStatus();
  };
  ASSERT_TRUE(Evaluate({"a", "b"}).ok());
  EXPECT_THAT(evaluation_.verdicts, ElementsAre(0, 0));
}

TEST_F(ExternallyScheduledPodsTest, APluginFailureIsNotAHostFailure) {
  host_.cycle = [](const v1beta1::PlanRequest&, v1beta1::PlanResponse* response) {
    response->mutable_evaluation()->mutable_pre_filter();
    v1beta1::PluginStatus* error =
        response->mutable_evaluation()->mutable_filter()->mutable_error();
    error->set_plugin("Model");
    error->set_code(v1beta1::CODE_ERROR);
    error->add_reasons("table is gone");
    return absl::OkStatus();
  };
  for (int i = 0; i < 5; ++i) {
    const absl::Status failed = Evaluate({"a"});
    EXPECT_EQ(failed.code(), absl::StatusCode::kUnknown);
    EXPECT_EQ(failed.message(), "table is gone");
  }
  EXPECT_FALSE(scheduler_.IsHeldBack(kHost));
}

TEST_F(ExternallyScheduledPodsTest, FailureToScoreLeavesVerdicts) {
  host_.cycle = [](const v1beta1::PlanRequest&, v1beta1::PlanResponse* response) {
    RejectSecond(response);
    response->mutable_evaluation()->mutable_score()->mutable_error()->set_plugin("Spread");
    response->mutable_evaluation()->mutable_score()->mutable_error()->add_reasons("no idea");
    return absl::OkStatus();
  };
  ASSERT_TRUE(Evaluate({"a", "b", "c"}).ok());
  EXPECT_EQ(evaluation_.scoring.message(), "no idea");
  EXPECT_THAT(evaluation_.scores, ElementsAre(0, 0, 0));
  EXPECT_EQ(evaluation_.verdicts[1], 0);
}

TEST_F(ExternallyScheduledPodsTest, BadAnswersOpenTheBreaker) {
  host_.cycle = [](const v1beta1::PlanRequest&, v1beta1::PlanResponse* response) {
    RejectSecond(response);
    response->mutable_evaluation()->mutable_filter()->set_processed(2);
    return absl::OkStatus();
  };
  for (int i = 0; i < 3; ++i) {
    const absl::Status failed = Evaluate({"a", "b", "c"});
    EXPECT_EQ(failed.code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(std::string(failed.message()), HasSubstr("plugin host \"main\" did not answer: "));
  }
  EXPECT_TRUE(scheduler_.IsHeldBack(kHost));
  EXPECT_EQ(Evaluate({"a"}).message(), "plugin host \"main\" is unavailable");
  EXPECT_THAT(host_.cycles, SizeIs(3));
}

TEST_F(ExternallyScheduledPodsTest, NothingIsAskedAboutNoNodesNorForUnknownProfiles) {
  ASSERT_TRUE(Evaluate({}).ok());
  EXPECT_THAT(host_.cycles, IsEmpty());
  EXPECT_TRUE(absl::IsNotFound(pods_.Evaluate("other", *pod_, Slots({"a"}), now_, &evaluation_)));
}

TEST_F(ExternallyScheduledPodsTest, VictimsAreHypotheses) {
  AddPod("v1", "a");
  AddPod("v2", "b");
  v1beta1::FilterRequest asked;
  host_.pre_filter = [](const v1beta1::PreFilterRequest&) { return v1beta1::PreFilterResponse(); };
  host_.filter = [&](const v1beta1::FilterRequest& request) {
    asked = request;
    v1beta1::FilterResponse response;
    response.set_processed(2);
    response.set_feasible(std::string(1, '\x02'));
    v1beta1::PluginStatus* reason = response.add_reasons();
    reason->set_plugin("Fit");
    reason->set_code(v1beta1::CODE_UNSCHEDULABLE);
    response.add_rejected(0);
    return response;
  };
  const std::vector<ExternallyScheduledPods::Evictions> evictions = {{Slots({"a"})[0], {"uid-v1"}},
                                                                     {Slots({"b"})[0], {"uid-v2"}}};
  std::vector<bool> fits;
  ASSERT_TRUE(pods_.EvaluateWithoutVictims(kProfile, *pod_, evictions, now_, &fits).ok());
  EXPECT_THAT(fits, ElementsAre(false, true));
  ASSERT_THAT(asked.simulation().nodes(), SizeIs(2));
  EXPECT_THAT(asked.simulation().nodes(1).removed_pod_uids(), ElementsAre("uid-v2"));
}

TEST_F(ExternallyScheduledPodsTest, BindCountsAtOnceAndTheGuardHolds) {
  std::vector<absl::Status> ends;
  const auto bound = [&](const absl::Status& end) { ends.push_back(end); };
  Bind(pod_, "a", bound);
  ASSERT_THAT(effects_.binds, SizeIs(1));
  EXPECT_EQ(effects_.binds[0].node_name, "a");
  EXPECT_TRUE(scheduler_.cluster()->IsAssumed("uid-p"));
  EXPECT_THAT(ends, IsEmpty());
  // 600 of 1000 are in use.
  kube::PodPtr other = AddPod("q");
  Bind(other, "a", bound);
  ASSERT_THAT(ends, SizeIs(1));
  EXPECT_TRUE(absl::IsResourceExhausted(ends[0])) << ends[0];

  EndBind(BindEnd::kBound, "");
  ASSERT_THAT(ends, SizeIs(2));
  EXPECT_TRUE(ends[1].ok());
  EXPECT_TRUE(scheduler_.cluster()->IsAssumed("uid-p"));  // until the informer says so
  EndBind(BindEnd::kBound, "");
  EXPECT_THAT(ends, SizeIs(2));
}

TEST_F(ExternallyScheduledPodsTest, FailedBindGivesThePlaceBack) {
  absl::Status end;
  Bind(pod_, "a", [&](const absl::Status& ended) { end = ended; });
  EndBind(BindEnd::kNotBound, "409");
  EXPECT_EQ(end.message(), "binding rejected: running Bind plugin \"DefaultBinder\": 409");
  EXPECT_FALSE(scheduler_.cluster()->IsAssumed("uid-p"));
  Bind(pod_, "nowhere", [&](const absl::Status& ended) { end = ended; });
  EXPECT_TRUE(absl::IsNotFound(end));
}

// A host that is called point by point gives the same verdict.
TEST_F(ExternallyScheduledPodsTest, AnAdmittedBindCountsBeforeItIsSeen) {
  EXPECT_TRUE(pods_.Admit(kProfile, pod_, "a", /*dry_run=*/true, now_).ok());
  EXPECT_EQ(pods_.cluster().NodeOf("uid-p"), "") << "it was a dry run";
  EXPECT_TRUE(pods_.Admit(kProfile, pod_, "a", false, now_).ok());
  EXPECT_EQ(pods_.cluster().NodeOf("uid-p"), "a");
  EXPECT_TRUE(pods_.Admit(kProfile, pod_, "a", false, now_).ok()) << "a repeated request";
  // 600 + 600 of 1000: neither another scheduler's pod nor ours fits.
  const kube::PodPtr other = AddPod("other");
  EXPECT_TRUE(absl::IsResourceExhausted(pods_.Admit(kProfile, other, "a", false, now_)));
  EXPECT_EQ(pods_.cluster().NodeOf("uid-other"), "");
  absl::Status ours;
  Bind(other, "a", [&](const absl::Status& ended) { ours = ended; });
  EXPECT_TRUE(absl::IsResourceExhausted(ours));
  EXPECT_TRUE(pods_.Admit(kProfile, other, "b", false, now_).ok());
  EXPECT_TRUE(pods_.Admit(kProfile, AddPod("third"), "unheard-of", false, now_).ok());
  // Once the watch has reported it, the API server is not asked.
  AddPod("p", "a");
  AddPod("other", "b");
  now_ += AdmittedBinds::kSettleAfter;
  pods_.Tick(now_);
  EXPECT_THAT(effects_.binds, SizeIs(0));
  EXPECT_EQ(pods_.NextTick(), absl::InfiniteFuture());
}

TEST_F(ExternallyScheduledPodsTest, AnAdmittedBindThatDoesNotComeIsLookedInto) {
  ASSERT_TRUE(pods_.Admit(kProfile, pod_, "a", false, now_).ok());
  EXPECT_EQ(pods_.NextTick(), now_ + AdmittedBinds::kSettleAfter);
  pods_.Tick(now_ + AdmittedBinds::kSettleAfter - absl::Seconds(1));
  EXPECT_THAT(effects_.binds, SizeIs(0));
  now_ += AdmittedBinds::kSettleAfter;
  pods_.Tick(now_);
  ASSERT_THAT(effects_.binds, SizeIs(1));
  EXPECT_TRUE(effects_.binds[0].bound_by_other_scheduler);
  EXPECT_EQ(effects_.binds[0].node_name, "a");
  EXPECT_EQ(pods_.cluster().NodeOf("uid-p"), "a") << "until the outcome is known";
  EndBind(BindEnd::kNotBound, "");
  EXPECT_EQ(pods_.cluster().NodeOf("uid-p"), "");
  EXPECT_TRUE(pods_.Admit(kProfile, AddPod("other"), "a", false, now_).ok());
}

// Its scheduler tries another node, so the first bind has failed; or the API server's requests
// arrived in another order than it sent them, and the bind to "a" is on its way.
TEST_F(ExternallyScheduledPodsTest, AnAdmittedPodIsAdmittedElsewhereOnlyOnceItWasRead) {
  ASSERT_TRUE(pods_.Admit(kProfile, pod_, "a", false, now_).ok());
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(pods_.Admit(kProfile, pod_, "b", false, now_),
              absl::AbortedError("pod ns/p may be on node a by an earlier bind, whose outcome is "
                                 "being read"));
  }
  ASSERT_THAT(effects_.binds, SizeIs(1)) << "it is read once, and at once";
  EXPECT_EQ(pods_.cluster().NodeOf("uid-p"), "a");
  EndBind(BindEnd::kNotBound, "");
  EXPECT_TRUE(pods_.Admit(kProfile, pod_, "b", false, now_).ok());
  EXPECT_EQ(pods_.cluster().NodeOf("uid-p"), "b");
}

TEST_F(ExternallyScheduledPodsTest, WhileAnAdmittedPodIsReadItIsNotAdmittedElsewhere) {
  ASSERT_TRUE(pods_.Admit(kProfile, pod_, "a", false, now_).ok());
  ASSERT_TRUE(pods_.Admit(kProfile, AddPod("other"), "b", false, now_).ok());
  now_ += AdmittedBinds::kSettleAfter;
  pods_.Tick(now_);
  ASSERT_THAT(effects_.binds, SizeIs(2));
  EXPECT_TRUE(absl::IsAborted(pods_.Admit(kProfile, pod_, "b", false, now_))) << "and b is full";
}

TEST_F(ExternallyScheduledPodsTest, AReadThatBeganBeforeABindWasRepeatedDoesNotEndIt) {
  ASSERT_TRUE(pods_.Admit(kProfile, pod_, "a", false, now_).ok());
  now_ += AdmittedBinds::kSettleAfter;
  pods_.Tick(now_);
  ASSERT_THAT(effects_.binds, SizeIs(1));
  ASSERT_TRUE(pods_.Admit(kProfile, pod_, "a", false, now_).ok());
  EndBind(BindEnd::kNotBound, "");
  EXPECT_EQ(pods_.cluster().NodeOf("uid-p"), "a") << "the second bind may be on its way";
  now_ += AdmittedBinds::kSettleAfter;
  pods_.Tick(now_);
  ASSERT_THAT(effects_.binds, SizeIs(2));
  pods_.Tick(now_);
  EXPECT_THAT(effects_.binds, SizeIs(2));
}

TEST_F(ExternallyScheduledPodsTest, ARepeatedBindHasItsWholeTime) {
  ASSERT_TRUE(pods_.Admit(kProfile, pod_, "a", false, now_).ok());
  now_ += AdmittedBinds::kSettleAfter - absl::Seconds(1);
  ASSERT_TRUE(pods_.Admit(kProfile, pod_, "a", false, now_).ok());
  now_ += AdmittedBinds::kSettleAfter - absl::Seconds(1);
  pods_.Tick(now_);
  EXPECT_THAT(effects_.binds, SizeIs(0));
  pods_.Tick(now_ + absl::Seconds(1));
  EXPECT_THAT(effects_.binds, SizeIs(1));
}

TEST_F(ExternallyScheduledPodsTest, AnAdmittedPodThatCannotBeReadStaysOnItsNode) {
  ASSERT_TRUE(pods_.Admit(kProfile, pod_, "a", false, now_).ok());
  now_ += AdmittedBinds::kSettleAfter;
  pods_.Tick(now_);
  ASSERT_THAT(effects_.binds, SizeIs(1));
  EndBind(BindEnd::kUnknown, "");
  EXPECT_EQ(pods_.cluster().NodeOf("uid-p"), "a");
  EXPECT_TRUE(absl::IsAborted(pods_.Admit(kProfile, pod_, "b", false, now_)));
  EXPECT_THAT(effects_.binds, SizeIs(2)) << "it is read again";
}

TEST_F(ExternallyScheduledPodsTest, PodsOfOursAreOnlyChecked) {
  auto ours = std::make_shared<kube::PodObject>(*AddPod("ours"));
  ours->pod.set_scheduler_name(kProfile);
  EXPECT_TRUE(pods_.Admit(kProfile, ours, "a", false, now_).ok());
  EXPECT_EQ(pods_.cluster().NodeOf("uid-ours"), "");
  ASSERT_TRUE(pods_.Admit(kProfile, pod_, "a", false, now_).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(pods_.Admit(kProfile, ours, "a", false, now_)));
}

TEST_F(ExternallyScheduledPodsTest, SeveralHostsAreMerged) {
  framework::ScriptedHost second;
  plan_.host_names = {kHost, "second"};
  framework::HostProfile first_share;
  first_share.pre_filter_plugins = {"Model"};
  first_share.filter_plugins = {"Model"};
  first_share.score_plugins = {{"Model", 3}};
  framework::HostProfile second_share;
  second_share.filter_plugins = {"Fit"};
  second_share.score_plugins = {{"Spread", 1}};
  plan_.algorithm.shares = {first_share, second_share};
  plan_.algorithm.pre_filter_plugins = {"Model"};
  scheduler_.SetPlan(plan_);
  scheduler_.SetHost("second", &second, scheduler_.cluster()->AddHost({}), now_);
  const auto rejects = [](const std::string& plugin, char feasible, uint32_t rejected) {
    return [=](const v1beta1::FilterRequest&) {
      v1beta1::FilterResponse response;
      response.set_processed(3);
      response.set_feasible(std::string(1, feasible));
      v1beta1::PluginStatus* reason = response.add_reasons();
      reason->set_plugin(plugin);
      reason->set_code(v1beta1::CODE_UNSCHEDULABLE);
      for (uint32_t i = 0; i < rejected; ++i) response.add_rejected(0);
      return response;
    };
  };
  const auto scores = [](const std::string& plugin, char score) {
    return [=](const v1beta1::ScoreRequest& request) {
      v1beta1::ScoreResponse response;
      response.add_plugins()->set_plugin(plugin);
      response.mutable_plugins(0)->set_scores(
          std::string(static_cast<size_t>(request.nodes().slots_size()), score));
      return response;
    };
  };
  for (framework::ScriptedHost* host : {&host_, &second})
    host->pre_filter = [](const v1beta1::PreFilterRequest&) {
      return v1beta1::PreFilterResponse();
    };
  host_.filter = rejects("Model", '\x06', 1);
  second.filter = rejects("Fit", '\x03', 1);
  host_.score = scores("Model", 100);
  second.score = scores("Spread", 20);
  ASSERT_TRUE(Evaluate({"a", "b", "c"}).ok());
  EXPECT_EQ(evaluation_.verdicts[1], framework::NodeEvaluation::kFeasible);
  EXPECT_EQ(evaluation_.reasons[static_cast<size_t>(evaluation_.verdicts[0])].plugin(), "Model");
  EXPECT_EQ(evaluation_.reasons[static_cast<size_t>(evaluation_.verdicts[2])].plugin(), "Fit");
  EXPECT_THAT(evaluation_.scores, ElementsAre(0, 800, 0));
}

}  // namespace
}  // namespace outboard::scheduler
