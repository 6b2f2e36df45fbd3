#include "plugins/default_preemption/default_preemption.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "plugin_host/mirror/mirror.h"
#include "plugin_host/runtime/evaluator.h"
#include "plugin_host/runtime/profile.h"
#include "plugin_host/sdk/plugin_registry.h"
#include "plugin_host/sdk/testing/builders.h"
#include "plugin_host/sdk/testing/plugin_harness.h"

namespace outboard::default_preemption {
namespace {

using sdk::Verdict;
using sdk::testing::NodeBuilder;
using sdk::testing::PodBuilder;
using ::testing::ElementsAre;

// Says no where CPUs are short, and never to nodes that are closed.
class Room : public sdk::Plugin, public sdk::NodeFilterPlugin {
 public:
  Verdict FilterNode(const sdk::Attempt& attempt, const sdk::NodeView& node) const override {
    if (node.Label("closed")) return Verdict::Unresolvable("closed");
    if (node.Label("broken")) return Verdict::Error("broken");
    const int64_t wanted = attempt.pod().usage().requests.cpu_millis;
    return node.Requested("cpu") + wanted > node.Allocatable("cpu")
               ? Verdict::Unschedulable("Insufficient cpu")
               : Verdict::Success();
  }
};

// A cluster of nodes with 4 CPUs, and a pod `p` of priority 10 that wants some.
class DefaultPreemptionTest : public ::testing::Test, public runtime::PushTarget {
 protected:
  void Decide(const std::string&, const sdk::WaitDecision&) override {}
  void SortKeysChanged(absl::Span<const std::string>) override {}
  void GateChanged(absl::Span<const std::string>) override {}

  void SetUp() override { Configure(""); }
  void Configure(const std::string& args_json) {
    registry_ = sdk::PluginRegistry();
    ASSERT_TRUE(registry_.Add(Descriptor()).ok());
    sdk::PluginDescriptor room;
    room.name = "Room";
    room.extension_points = {v1alpha1::FILTER};
    room.create = [](const sdk::PluginContext&) -> absl::StatusOr<std::unique_ptr<sdk::Plugin>> {
      return std::make_unique<Room>();
    };
    ASSERT_TRUE(registry_.Add(room).ok());
    v1alpha1::ProfileConfig config;
    config.set_name("default-scheduler");
    for (auto [point, plugin] : {std::pair{v1alpha1::FILTER, "Room"},
                                 std::pair{v1alpha1::POST_FILTER, "DefaultPreemption"}}) {
      auto* out = config.add_points();
      out->set_extension_point(point);
      out->add_plugins(plugin);
    }
    if (!args_json.empty()) {
      auto* args = config.add_args();
      args->set_plugin("DefaultPreemption");
      args->set_args_json(args_json);
    }
    google::protobuf::RepeatedPtrField<v1alpha1::ConfigProblem> problems;
    profile_ = runtime::Profile::Create(config, registry_, &mirror_, this, &problems);
    ASSERT_NE(profile_, nullptr) << problems[0].message();
    v1alpha1::SyncRequest snapshot;
    snapshot.set_version(1);
    for (auto phase :
         {v1alpha1::SyncRequest::SNAPSHOT_BEGIN, v1alpha1::SyncRequest::SNAPSHOT_END}) {
      snapshot.set_phase(phase);
      ASSERT_TRUE(mirror_.Apply(snapshot, now_).ok());
    }
    next_slot_ = 0;
  }
  void Apply(v1alpha1::SyncRequest request) {
    request.set_version(mirror_.version() + 1);
    const absl::Status applied = mirror_.Apply(request, now_);
    ASSERT_TRUE(applied.ok()) << applied;
  }
  void AddNode(const std::string& name, const std::string& label = "") {
    NodeBuilder node(name);
    node.Allocatable({{"cpu", "4"}, {"pods", "110"}});
    if (!label.empty()) node.Label(label, "");
    v1alpha1::SyncRequest request;
    auto* upsert = request.add_changes()->mutable_node_upsert();
    upsert->set_slot(next_slot_++);
    *upsert->mutable_node() = node.Build();
    Apply(request);
  }
  // On `node`; started at `start`, in seconds, unless 0.
  PodBuilder Running(const std::string& name, const std::string& node, int32_t priority,
                     const std::string& cpu, int64_t start = 0) {
    PodBuilder pod(name);
    pod.OnNode(node).Priority(priority).Requests({{"cpu", cpu}});
    pod.proto().set_start_unix_seconds(start);
    return pod;
  }
  void Add(const v1alpha1::Pod& pod) {
    v1alpha1::SyncRequest request;
    *request.add_changes()->mutable_pod_upsert()->mutable_pod() = pod;
    Apply(request);
  }
  void AddBudget(const std::string& name, const std::string& app, int32_t allowed,
                 const std::vector<std::string>& disrupted = {}) {
    v1alpha1::SyncRequest request;
    auto* budget = request.add_changes()->mutable_object_upsert()->mutable_pod_disruption_budget();
    budget->set_namespace_("default");
    budget->set_name(name);
    (*budget->mutable_selector()->mutable_match_labels())["app"] = app;
    budget->set_disruptions_allowed(allowed);
    for (const std::string& pod : disrupted) budget->add_disrupted_pods(pod);
    Apply(request);
  }

  // The first attempt of a pod: Filter, and, where that finds nothing, PostFilter.
  v1alpha1::PostFilterResponse Attempt(const v1alpha1::Pod& pod) {
    Add(pod);
    const sdk::PodRecord& record = *mirror_.FindPod(pod.uid());
    runtime::AttemptRecord attempt;
    attempt.Begin(1, pod.uid(), profile_);
    v1alpha1::FilterResponse filter;
    std::vector<sdk::Slot> feasible;
    evaluator_.Filter(attempt, record, now_, mirror_.view().node_order(), {}, &filter, &feasible);
    EXPECT_TRUE(feasible.empty()) << "the pod fits as it is";
    v1alpha1::PostFilterResponse response;
    evaluator_.PostFilter(attempt, record, now_, &response);
    return response;
  }
  // Candidates as `n1: a b`, best first, a budget's violations as `n1 !1: a b`; or the rejection.
  std::vector<std::string> Preempt(const v1alpha1::Pod& pod) {
    const v1alpha1::PostFilterResponse response = Attempt(pod);
    if (response.has_rejection()) {
      return {absl::StrCat(v1alpha1::Code_Name(response.rejection().code()), " ",
                           absl::StrJoin(response.rejection().reasons(), "; "),
                           response.clear_nomination() ? " (clear)" : "")};
    }
    std::vector<std::string> texts;
    for (const v1alpha1::PreemptionCandidate& candidate : response.candidates()) {
      EXPECT_EQ(candidate.plugin(), "DefaultPreemption");
      const std::string violations = candidate.budget_violations() == 0
                                         ? ""
                                         : absl::StrCat(" !", candidate.budget_violations());
      texts.push_back(absl::StrCat(
          mirror_.view().node(candidate.slot()).name(), violations, ": ",
          absl::StrJoin(candidate.victim_uids(), " ", [](std::string* out, const std::string& uid) {
            absl::StrAppend(out, uid.substr(sizeof("default/") - 1));
          })));
    }
    return texts;
  }
  static PodBuilder Preemptor(const std::string& cpu = "4", int32_t priority = 10) {
    PodBuilder pod("p");
    pod.Priority(priority).Requests({{"cpu", cpu}});
    return pod;
  }

  absl::Time now_ = absl::FromUnixSeconds(1000);
  sdk::PluginRegistry registry_;
  mirror::Mirror mirror_;
  std::shared_ptr<const runtime::Profile> profile_;
  runtime::Evaluator evaluator_{&mirror_};
  sdk::Slot next_slot_ = 0;
};

TEST_F(DefaultPreemptionTest, TakesAsFewPodsOffAsPossibleTheLeastImportantFirst) {
  AddNode("n1");
  Add(Running("old", "n1", 1, "1", 100));
  Add(Running("young", "n1", 1, "1", 200));
  Add(Running("high", "n1", 5, "1", 300));
  Add(Running("peer", "n1", 10, "1", 50));
  EXPECT_THAT(Preempt(Preemptor("1")), ElementsAre("n1: young"));
  EXPECT_THAT(Preempt(Preemptor("1")), ElementsAre("n1: young")) << "nothing has stayed behind";
}

TEST_F(DefaultPreemptionTest, SaysWhyNoNodeHelps) {
  AddNode("n1");
  AddNode("n2");
  AddNode("n3", "closed");
  AddNode("n4");
  Add(Running("peer1", "n1", 10, "4"));
  Add(Running("peer2", "n2", 10, "2"));
  Add(Running("low2", "n2", 1, "2"));
  Add(Running("peer4", "n4", 10, "4"));
  EXPECT_THAT(
      Preempt(Preemptor("4")),
      ElementsAre("UNSCHEDULABLE preemption: 0/4 nodes are available: 1 Insufficient cpu, 1 "
                  "Preemption is not helpful for scheduling, 2 No preemption victims found for "
                  "incoming pod. (clear)"));
}

TEST_F(DefaultPreemptionTest, NodesThatNobodysLeavingHelpsAreNoCandidates) {
  AddNode("n1", "closed");
  Add(Running("low", "n1", 1, "4"));
  EXPECT_THAT(Preempt(Preemptor()),
              ElementsAre("UNSCHEDULABLE preemption: 0/1 nodes are available: 1 Preemption is not "
                          "helpful for scheduling. (clear)"));
}

TEST_F(DefaultPreemptionTest, APodThatMayNotPreemptSaysSo) {
  AddNode("n1");
  Add(Running("low", "n1", 1, "4"));
  PodBuilder pod = Preemptor();
  pod.proto().set_preemption_policy(v1alpha1::NEVER);
  EXPECT_THAT(Preempt(pod),
              ElementsAre("UNSCHEDULABLE preemption: not eligible due to preemptionPolicy=Never."));
}

TEST_F(DefaultPreemptionTest, WaitsForEarlierVictimsOnItsNominatedNode) {
  AddNode("n1");
  AddNode("n2");
  PodBuilder leaving = Running("leaving", "n1", 1, "4");
  leaving.proto().set_deletion_unix_seconds(900);
  leaving.proto().set_preempted_by_scheduler(true);
  Add(leaving);
  Add(Running("low", "n2", 1, "4"));
  PodBuilder pod = Preemptor();
  EXPECT_THAT(Preempt(pod), ElementsAre("n1: leaving", "n2: low")) << "not nominated";
  pod.proto().set_nominated_node_name("n1");
  Add(pod);
  EXPECT_THAT(Preempt(pod), ElementsAre("UNSCHEDULABLE preemption: not eligible due to a "
                                        "terminating pod on the nominated node."));
  leaving.proto().set_preempted_by_scheduler(false);
  Add(leaving);
  EXPECT_THAT(Preempt(pod), ElementsAre("n1: leaving", "n2: low"))
      << "it leaves for another reason";
}

TEST_F(DefaultPreemptionTest, DoesNotWaitOnANodeThatCannotTakeItAnyMore) {
  AddNode("n1", "closed");
  AddNode("n2");
  PodBuilder leaving = Running("leaving", "n1", 1, "4");
  leaving.proto().set_deletion_unix_seconds(900);
  leaving.proto().set_preempted_by_scheduler(true);
  Add(leaving);
  Add(Running("low", "n2", 1, "4"));
  PodBuilder pod = Preemptor();
  pod.proto().set_nominated_node_name("n1");
  EXPECT_THAT(Preempt(pod), ElementsAre("n2: low"));
}

TEST_F(DefaultPreemptionTest, SparesPodsOfBrokenBudgetsFirst) {
  AddNode("n1");
  Add(Running("guarded", "n1", 1, "2", 100).Label("app", "db"));
  Add(Running("free", "n1", 5, "2", 100).Label("app", "web"));
  AddBudget("db", "db", 0);
  EXPECT_THAT(Preempt(Preemptor("2")), ElementsAre("n1: free")) << "though it is more important";
  AddBudget("web", "web", 0);
  EXPECT_THAT(Preempt(Preemptor("2")), ElementsAre("n1 !1: guarded"));
  EXPECT_THAT(Preempt(Preemptor("4")), ElementsAre("n1 !2: free guarded"));
}

TEST_F(DefaultPreemptionTest, ABudgetIsUsedUpByTheMoreImportantPods) {
  AddNode("n1");
  Add(Running("a", "n1", 1, "1", 100).Label("app", "db"));
  Add(Running("b", "n1", 1, "1", 200).Label("app", "db"));
  Add(Running("c", "n1", 1, "2", 300).Label("app", "db"));
  AddBudget("db", "db", 2);
  // a and b use up what is allowed, so c is spared first; then a fits, and b does not.
  EXPECT_THAT(Preempt(Preemptor("1")), ElementsAre("n1: b"));
  AddBudget("db", "db", 1, {"a"});
  EXPECT_THAT(Preempt(Preemptor("1")), ElementsAre("n1: b")) << "a is counted already";
  EXPECT_THAT(Preempt(Preemptor("4")), ElementsAre("n1 !1: a b c"));
}

TEST_F(DefaultPreemptionTest, PrefersNodesInUpstreamsOrder) {
  AddNode("violates");
  AddNode("high");
  AddNode("sum");
  AddNode("many");
  AddNode("old");
  AddNode("best");
  AddNode("also");
  Add(Running("v", "violates", 1, "4", 500).Label("app", "db"));
  AddBudget("db", "db", 0);
  Add(Running("h", "high", 3, "4", 500));
  Add(Running("s1", "sum", 2, "2", 500));
  Add(Running("s2", "sum", 2, "2", 500));
  Add(Running("m1", "many", 2, "2", 500));
  Add(Running("m2", "many", -2147483648, "2", 500));
  Add(Running("o", "old", 2, "4", 400));
  Add(Running("b", "best", 2, "4", 500));
  Add(Running("a", "also", 2, "4", 500));
  EXPECT_THAT(Preempt(Preemptor()), ElementsAre("best: b", "also: a", "old: o", "many: m1 m2",
                                                "sum: s1 s2", "high: h", "violates !1: v"));
}

TEST_F(DefaultPreemptionTest, TriesAsManyNodesAsItsArgumentsAsk) {
  Configure(R"({"minCandidateNodesPercentage": 50, "minCandidateNodesAbsolute": 1})");
  for (int i = 0; i < 6; ++i) {
    AddNode(absl::StrCat("n", i));
    Add(Running(absl::StrCat("low", i), absl::StrCat("n", i), 6 - i, "4")
            .Label("app", i < 4 ? "db" : "web"));
  }
  EXPECT_THAT(Preempt(Preemptor()), ElementsAre("n2: low2", "n1: low1", "n0: low0"));
  AddBudget("db", "db", 0);
  EXPECT_THAT(Preempt(Preemptor()),
              ElementsAre("n4: low4", "n3 !1: low3", "n2 !1: low2", "n1 !1: low1", "n0 !1: low0"))
      << "goes on until one breaks no budget";
}

TEST_F(DefaultPreemptionTest, HigherPodsNominatedToANodeKeepTheirRoom) {
  AddNode("n1");
  Add(Running("low", "n1", 1, "4"));
  Add(PodBuilder("first").Priority(20).Requests({{"cpu", "2"}}));
  v1alpha1::SyncRequest request;
  auto* placement = request.add_changes()->mutable_pod_placement();
  placement->set_uid("default/first");
  placement->set_state(v1alpha1::NOMINATED);
  placement->set_slot(0);
  Apply(request);
  EXPECT_THAT(Preempt(Preemptor("2")), ElementsAre("n1: low"));
  PodBuilder large("large");
  large.Priority(10).Requests({{"cpu", "3"}});
  EXPECT_THAT(Preempt(large),
              ElementsAre("UNSCHEDULABLE preemption: 0/1 nodes are available: 1 Insufficient cpu. "
                          "(clear)"));
}

TEST(DefaultPreemption, ChecksItsArguments) {
  const auto problems = [](const std::string& args) {
    return std::string(sdk::testing::PluginHarness::Create(Descriptor(), args).status().message());
  };
  EXPECT_EQ(problems(R"({"minCandidateNodesPercentage": 101, "minCandidateNodesAbsolute": -1})"),
            "minCandidateNodesPercentage: Invalid value: 101: not in valid range [0, 100]\n"
            "minCandidateNodesAbsolute: Invalid value: -1: not in valid range [0, inf)");
  EXPECT_EQ(problems(R"({"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 0})"),
            "minCandidateNodesPercentage: Invalid value: 0: cannot be zero at the same time as "
            "minCandidateNodesAbsolute\n"
            "minCandidateNodesAbsolute: Invalid value: 0: cannot be zero at the same time as "
            "minCandidateNodesPercentage");
  EXPECT_EQ(problems(R"({"minCandidateNodesPercentage": 0})"), "");
}

}  // namespace
}  // namespace outboard::default_preemption
