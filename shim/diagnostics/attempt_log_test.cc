#include "shim/diagnostics/attempt_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"

namespace outboard::diagnostics {
namespace {

using ::testing::HasSubstr;

constexpr size_t kAmple = size_t{64} << 20;

class AttemptLogTest : public ::testing::Test {
 protected:
  void AddNodes(int count) {
    for (int i = 0; i < count; ++i) {
      auto node = std::make_shared<kube::NodeObject>();
      node->node.set_uid(absl::StrCat("uid-", next_node_));
      node->node.set_name(absl::StrCat("n", next_node_++));
      cluster_.UpsertNode(std::move(node));
    }
  }
  static kube::PodObject Pod(const std::string& name) {
    kube::PodObject pod;
    pod.pod.set_uid("uid-" + name);
    pod.pod.set_namespace_("ns");
    pod.pod.set_name(name);
    return pod;
  }
  // All nodes were examined; the first `feasible` nodes passed, the others were rejected.
  void Algorithm(AttemptLog& log, const kube::PodObject& pod, uint32_t feasible) {
    framework::AlgorithmProfile profile;
    profile.name = "default-scheduler";
    profile.score_plugins = {{"Fit", 2}};
    framework::AlgorithmResult result;
    result.snapshot_version = 42;
    v1beta1::PlanResponse response;
    v1beta1::PluginStatus* reason = response.mutable_evaluation()->mutable_filter()->add_reasons();
    reason->set_plugin("NodeResourcesFit");
    reason->set_code(v1beta1::CODE_UNSCHEDULABLE);
    reason->add_reasons("Insufficient cpu");
    v1beta1::PluginScores* scores = response.mutable_evaluation()->mutable_score()->add_plugins();
    scores->set_plugin("Fit");
    for (const uint32_t slot : cluster_.node_order()) {
      const uint32_t position = static_cast<uint32_t>(result.examined_slots.size());
      result.examined_slots.push_back(slot);
      if (position < feasible) {
        result.feasible_positions.push_back(position);
        result.totals.push_back(2 * position);
        scores->mutable_scores()->push_back(static_cast<char>(position % 100));
      } else {
        response.mutable_evaluation()->mutable_filter()->add_rejected(0);
      }
    }
    result.evaluated_nodes = static_cast<uint32_t>(result.examined_slots.size());
    log.OnAlgorithm(pod, profile, result, response, absl::Microseconds(77));
  }
  static nlohmann::json Explained(const AttemptLog& log, const std::string& pod) {
    absl::StatusOr<std::string> text = log.Explain(pod);
    EXPECT_TRUE(text.ok()) << text.status();
    return text.ok() ? nlohmann::json::parse(*text) : nlohmann::json();
  }

  cache::ClusterState cluster_;
  const cache::ClusterState* cluster_pointer_ = &cluster_;
  int next_node_ = 0;
};

TEST_F(AttemptLogTest, ReportsEveryNodeOfAnAttempt) {
  AttemptLog log(&cluster_pointer_, kAmple);
  AddNodes(4);
  Algorithm(log, Pod("a"), 2);
  EXPECT_EQ(Explained(log, "ns/a")["attempts"][0]["result"], "in progress");
  log.OnAttemptEnd(Pod("a"), "default-scheduler", scheduler::AttemptResult::kScheduled, "n1", "",
                   absl::ZeroDuration());
  const nlohmann::json attempt = Explained(log, "ns/a")["attempts"][0];
  EXPECT_EQ(attempt["result"], "scheduled");
  EXPECT_EQ(attempt["node"], "n1");
  EXPECT_EQ(attempt["snapshotVersion"], 42);
  EXPECT_EQ(attempt["nodes"], 4);
  EXPECT_EQ(attempt["scores"]["n1"]["total"], 2);
  EXPECT_EQ(attempt["scores"]["n1"]["plugins"]["Fit"], 2);
  EXPECT_EQ(attempt["filter"].size(), 2u);
  EXPECT_EQ(attempt["filter"]["n3"]["plugin"], "NodeResourcesFit");
  EXPECT_EQ(attempt["filter"]["n3"]["reasons"][0], "Insufficient cpu");
}

TEST_F(AttemptLogTest, KeepsTheNamesThatNodesHadThen) {
  AttemptLog log(&cluster_pointer_, kAmple);
  AddNodes(1);
  Algorithm(log, Pod("a"), 0);
  cluster_.RemoveNode("n0");
  AddNodes(1);  // n1 reuses the slot
  Algorithm(log, Pod("a"), 0);
  const nlohmann::json attempts = Explained(log, "ns/a")["attempts"];
  ASSERT_EQ(attempts.size(), 2u);
  EXPECT_TRUE(attempts[0]["filter"].contains("n1"));  // The newest comes first.
  EXPECT_TRUE(attempts[1]["filter"].contains("n0"));
}

TEST_F(AttemptLogTest, KeepsThreeAttemptsOfAPod) {
  AttemptLog log(&cluster_pointer_, kAmple);
  AddNodes(2);
  for (int i = 0; i < 5; ++i) {
    Algorithm(log, Pod("a"), 0);
    log.OnAttemptEnd(Pod("a"), "p", scheduler::AttemptResult::kUnschedulable, "",
                     absl::StrCat("try ", i), absl::ZeroDuration());
  }
  const nlohmann::json attempts = Explained(log, "ns/a")["attempts"];
  ASSERT_EQ(attempts.size(), 3u);
  EXPECT_EQ(attempts[0]["message"], "try 4");
  EXPECT_EQ(attempts[2]["message"], "try 2");
}

TEST_F(AttemptLogTest, AnAttemptWithoutAnAnswerIsOnRecordToo) {
  AttemptLog log(&cluster_pointer_, kAmple);
  log.OnAttemptEnd(Pod("a"), "p", scheduler::AttemptResult::kHostUnavailable, "",
                   "host \"main\" is unavailable", absl::ZeroDuration());
  const nlohmann::json attempt = Explained(log, "ns/a")["attempts"][0];
  EXPECT_EQ(attempt["result"], "error");
  EXPECT_EQ(attempt["message"], "host \"main\" is unavailable");
  EXPECT_FALSE(attempt.contains("snapshotVersion"));
}

TEST_F(AttemptLogTest, ReportsVictims) {
  AttemptLog log(&cluster_pointer_, kAmple);
  AddNodes(1);
  Algorithm(log, Pod("a"), 0);
  log.OnPreemption(Pod("a"), "n0", {std::make_shared<kube::PodObject>(Pod("victim"))}, 1);
  log.OnAttemptEnd(Pod("a"), "p", scheduler::AttemptResult::kUnschedulable, "", "no room",
                   absl::ZeroDuration());
  const nlohmann::json attempt = Explained(log, "ns/a")["attempts"][0];
  EXPECT_EQ(attempt["nominatedNode"], "n0");
  EXPECT_EQ(attempt["victims"][0], "ns/victim");
}

TEST_F(AttemptLogTest, ARecreatedPodDoesNotEndTheAttemptOfItsNamesake) {
  AttemptLog log(&cluster_pointer_, kAmple);
  AddNodes(1);
  Algorithm(log, Pod("a"), 0);
  kube::PodObject again = Pod("a");
  again.pod.set_uid("another");
  log.OnAttemptEnd(again, "p", scheduler::AttemptResult::kHostUnavailable, "", "unavailable",
                   absl::ZeroDuration());
  const nlohmann::json attempts = Explained(log, "ns/a")["attempts"];
  ASSERT_EQ(attempts.size(), 2u);
  EXPECT_EQ(attempts[1]["result"], "in progress");
}

TEST_F(AttemptLogTest, StaysWithinItsMemoryAtFiveThousandNodes) {
  constexpr size_t kMax = size_t{8} << 20;
  AttemptLog log(&cluster_pointer_, kMax);
  AddNodes(5000);
  for (int i = 0; i < 600; ++i) {
    if (i % 50 == 0) {  // Node changes create new name tables.
      cluster_.RemoveNode(absl::StrCat("n", i));
      AddNodes(1);
    }
    Algorithm(log, Pod(absl::StrCat("p", i)), 500);
    EXPECT_LE(log.bytes(), kMax);
  }
  EXPECT_GT(log.attempts(), 50u);
  EXPECT_LT(log.attempts(), 600u);
  EXPECT_TRUE(absl::IsNotFound(log.Explain("ns/p0").status()));
  EXPECT_EQ(Explained(log, "ns/p599")["attempts"][0]["filter"].size(), 4500u);
  EXPECT_THAT(std::string(log.Explain("ns/p0").status().message()), HasSubstr("ns/p0"));
}

}  // namespace
}  // namespace outboard::diagnostics
