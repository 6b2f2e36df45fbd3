#include "plugins/default_preemption/default_preemption.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "plugin_host/sdk/testing/builders.h"
#include "plugin_host/sdk/testing/case_runner.h"
#include "plugin_host/sdk/testing/preemption_harness.h"
#include "proto/short_names.h"

namespace outboard::default_preemption {
namespace {

using sdk::testing::NodeBuilder;
using sdk::testing::PodBuilder;
using sdk::testing::PreemptionHarness;
using ::testing::ElementsAre;

TEST(DefaultPreemptionHintsTest, Cases) {
  sdk::testing::RunCases(Descriptor(), "plugins/default_preemption/testdata");
}

// A cluster of nodes with 4 CPUs, and a pod `p` of priority 10 that requests CPU.
class DefaultPreemptionTest : public ::testing::Test {
 protected:
  void SetUp() override { Configure(""); }
  void Configure(const std::string& args_json) {
    auto made = PreemptionHarness::Create(Descriptor(), {sdk::testing::RoomFilter()}, args_json);
    ASSERT_TRUE(made.ok()) << made.status();
    harness_ = *std::move(made);
  }
  void AddNode(const std::string& name, const std::string& label = "") {
    NodeBuilder node(name);
    node.Allocatable({{"cpu", "4"}, {"pods", "110"}});
    if (!label.empty()) node.Label(label, "");
    harness_->AddNode(node);
  }
  // On `node`; started at `start` (seconds), unless 0.
  PodBuilder Running(const std::string& name, const std::string& node, int32_t priority,
                     const std::string& cpu, int64_t start = 0) {
    PodBuilder pod(name);
    pod.OnNode(node).Priority(priority).Requests({{"cpu", cpu}});
    pod.proto().set_start_unix_seconds(start);
    return pod;
  }
  void Add(const v1beta1::Pod& pod) { harness_->AddPod(pod); }
  void AddBudget(const std::string& name, const std::string& app, int32_t allowed,
                 const std::vector<std::string>& disrupted = {}) {
    v1beta1::PodDisruptionBudget budget;
    budget.set_namespace_("default");
    budget.set_name(name);
    (*budget.mutable_selector()->mutable_match_labels())["app"] = app;
    budget.set_disruptions_allowed(allowed);
    for (const std::string& pod : disrupted) budget.add_disrupted_pods(pod);
    harness_->AddBudget(budget);
  }
  // Candidates as `n1: a b`, best first, violations of budgets as `n1 !1: a b`; or the rejection.
  std::vector<std::string> Preempt(const v1beta1::Pod& pod) {
    const v1beta1::PostFilterResponse response = harness_->Attempt(pod);
    if (response.has_rejection()) {
      return {absl::StrCat(ShortName(response.rejection().status().code()), " ",
                           absl::StrJoin(response.rejection().status().reasons(), "; "),
                           response.rejection().clear_nomination() ? " (clear)" : "")};
    }
    std::vector<std::string> texts;
    for (const v1beta1::PreemptionCandidate& candidate : response.candidates().candidates()) {
      EXPECT_EQ(candidate.plugin(), "DefaultPreemption");
      const std::string violations = candidate.budget_violations() == 0
                                         ? ""
                                         : absl::StrCat(" !", candidate.budget_violations());
      texts.push_back(absl::StrCat(
          harness_->cluster().node(candidate.slot()).name(), violations, ": ",
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

  std::unique_ptr<PreemptionHarness> harness_;
};

TEST_F(DefaultPreemptionTest, TakesAsFewPodsOffAsPossibleTheLeastImportantFirst) {
  AddNode("n1");
  Add(Running("old", "n1", 1, "1", 100));
  Add(Running("young", "n1", 1, "1", 200));
  Add(Running("high", "n1", 5, "1", 300));
  Add(Running("peer", "n1", 10, "1", 50));
  EXPECT_THAT(Preempt(Preemptor("1")), ElementsAre("n1: young"));
  EXPECT_THAT(Preempt(Preemptor("1")), ElementsAre("n1: young")) << "no state is left behind";
}

TEST_F(DefaultPreemptionTest, ReportsWhyNoNodeHelps) {
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

TEST_F(DefaultPreemptionTest, NodesWhereNoEvictionHelpsAreNotCandidates) {
  AddNode("n1", "closed");
  Add(Running("low", "n1", 1, "4"));
  EXPECT_THAT(Preempt(Preemptor()),
              ElementsAre("UNSCHEDULABLE preemption: 0/1 nodes are available: 1 Preemption is not "
                          "helpful for scheduling. (clear)"));
}

TEST_F(DefaultPreemptionTest, APodThatMayNotPreemptGetsTheReason) {
  AddNode("n1");
  Add(Running("low", "n1", 1, "4"));
  PodBuilder pod = Preemptor();
  pod.proto().set_preemption_policy(v1beta1::PREEMPTION_POLICY_NEVER);
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
      << "it is deleted for another reason";
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

TEST_F(DefaultPreemptionTest, ReprievesPodsOfViolatedBudgetsFirst) {
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
  // a and b use up the allowed disruptions, so c is kept first; then a fits, and b does not.
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
      << "continues until a candidate violates no budget";
}

TEST_F(DefaultPreemptionTest, HigherPodsNominatedToANodeKeepTheirRoom) {
  AddNode("n1");
  Add(Running("low", "n1", 1, "4"));
  Add(PodBuilder("first").Priority(20).Requests({{"cpu", "2"}}));
  harness_->Nominate("default/first", "n1");
  EXPECT_THAT(Preempt(Preemptor("2")), ElementsAre("n1: low"));
  PodBuilder large("large");
  large.Priority(10).Requests({{"cpu", "3"}});
  EXPECT_THAT(Preempt(large),
              ElementsAre("UNSCHEDULABLE preemption: 0/1 nodes are available: 1 Insufficient cpu. "
                          "(clear)"));
}

TEST(DefaultPreemption, ChecksItsArguments) {
  const auto problems = [](const std::string& args) {
    return std::string(PreemptionHarness::Create(Descriptor(), {}, args).status().message());
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
