// What an attempt does without a host's answer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "shim/clock.h"
#include "shim/framework/multi_host/extension_point_runner.h"
#include "shim/framework/profile_plan.h"
#include "shim/framework/testing/scripted_host.h"

namespace outboard::framework {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using v1beta1::FilterRequest;
using v1beta1::FilterResponse;
using v1beta1::ScoreResponse;

constexpr uint32_t kNodes = 3;

// "a" filters and scores, "b" scores only.
class FailurePoliciesTest : public ::testing::Test {
 protected:
  FailurePoliciesTest() {
    profile_.name = "profile";
    profile_.filter_plugins = {"Fit"};
    profile_.score_plugins = {{"A", 1}, {"B", 1}};
    profile_.shares.resize(2);
    profile_.shares[0].filter_plugins = {"Fit"};
    profile_.shares[0].score_plugins = {{"A", 1}};
    profile_.shares[0].score_fail_open = true;
    profile_.shares[1].score_plugins = {{"B", 1}};
    profile_.shares[1].pre_filter_fail_open = true;
    profile_.shares[1].filter_fail_open = true;
    profile_.shares[1].score_fail_open = true;
    for (ScriptedHost* host : {&a_, &b_}) {
      host->pre_filter = [](const v1beta1::PreFilterRequest&) {
        return v1beta1::PreFilterResponse();
      };
      host->filter = [](const FilterRequest&) {
        FilterResponse response;
        response.set_processed(kNodes);
        response.set_feasible("\x07");
        return response;
      };
    }
    a_.score = [](const v1beta1::ScoreRequest& request) { return Scores("A", request, 1); };
    b_.score = [](const v1beta1::ScoreRequest& request) { return Scores("B", request, 10); };
    hosts_ = {{&a_, 1}, {&b_, 1}};
  }
  // Each node's slot times `factor`.
  static ScoreResponse Scores(const std::string& plugin, const v1beta1::ScoreRequest& request,
                              int factor) {
    ScoreResponse response;
    auto* scores = response.add_plugins();
    scores->set_plugin(plugin);
    for (const uint32_t slot : request.nodes().slots())
      scores->mutable_scores()->push_back(static_cast<char>(factor * static_cast<int>(slot)));
    return response;
  }
  void Silence(ScriptedHost* host) {
    host->score = [](const v1beta1::ScoreRequest&) -> absl::StatusOr<ScoreResponse> {
      return absl::DeadlineExceededError("late");
    };
  }
  ExtensionPointRunner Panel() {
    ExtensionPointRunner runner(&hosts_, &profile_, 1, SteadyNow() + absl::Seconds(1));
    runner.UseLastScores(&last_scores_, "owner");
    return runner;
  }
  static v1beta1::NodeSet Nodes(std::vector<uint32_t> slots) {
    v1beta1::NodeSet nodes;
    nodes.mutable_slots()->Assign(slots.begin(), slots.end());
    return nodes;
  }
  // `plugin scores` of an answer.
  static std::vector<std::string> Texts(const absl::StatusOr<ScoreResponse>& response) {
    if (!response.ok()) return {response.status().ToString()};
    std::vector<std::string> texts;
    for (const auto& plugin : response->plugins()) {
      std::string text = plugin.plugin();
      for (const char score : plugin.scores()) absl::StrAppend(&text, " ", static_cast<int>(score));
      texts.push_back(text);
    }
    return texts;
  }

  ScriptedHost a_, b_;
  AttemptHosts hosts_;
  AlgorithmProfile profile_;
  LastScores last_scores_;
};

TEST_F(FailurePoliciesTest, WhereScoresAreOpenASilentHostScoresNothing) {
  Silence(&b_);
  ExtensionPointRunner runner = Panel();
  ASSERT_TRUE(runner.PreFilter("uid").ok());
  EXPECT_THAT(Texts(runner.Score(Nodes({0, 1, 2}))), ElementsAre("A 0 1 2"));
  ASSERT_THAT(runner.ignored_failures(), SizeIs(1));
  EXPECT_EQ(runner.ignored_failures()[0].host, 1u);
  EXPECT_EQ(runner.ignored_failures()[0].point, v1beta1::EXTENSION_POINT_SCORE);
  EXPECT_FALSE(runner.ignored_failures()[0].used_last);
}

TEST_F(FailurePoliciesTest, WhereTheyAreClosedTheAttemptHasNoAnswer) {
  profile_.shares[1].score_fail_open = false;
  Silence(&b_);
  ExtensionPointRunner runner = Panel();
  EXPECT_EQ(runner.Score(Nodes({0, 1, 2})).status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(runner.failed_host(), 1u);
  EXPECT_THAT(runner.ignored_failures(), IsEmpty());
}

TEST_F(FailurePoliciesTest, AFilterThatInsistsIsWaitedFor) {
  a_.filter = [](const FilterRequest&) -> absl::StatusOr<FilterResponse> {
    return absl::UnavailableError("gone");
  };
  ExtensionPointRunner runner = Panel();
  const std::vector<uint32_t> candidates = {0, 1, 2};
  EXPECT_FALSE(runner.Filter(v1beta1::NodeSearch(), candidates, kNodes).ok());
  EXPECT_EQ(runner.failed_host(), 0u);
}

TEST_F(FailurePoliciesTest, AnAbsentHostIsIgnoredAtAllPoints) {
  hosts_[1].client = nullptr;
  ExtensionPointRunner runner = Panel();
  ASSERT_TRUE(runner.PreFilter("uid").ok());
  const std::vector<uint32_t> candidates = {0, 1, 2};
  ASSERT_TRUE(runner.Filter(v1beta1::NodeSearch(), candidates, kNodes).ok());
  EXPECT_THAT(Texts(runner.Score(Nodes({2, 1}))), ElementsAre("A 2 1"));
  ASSERT_THAT(runner.ignored_failures(), SizeIs(1)) << "it is counted once";
  EXPECT_EQ(runner.ignored_failures()[0].point, v1beta1::EXTENSION_POINT_PRE_FILTER);
}

TEST_F(FailurePoliciesTest, AtLeastOneHostMustAnswer) {
  profile_.shares[0].pre_filter_fail_open = profile_.shares[0].filter_fail_open = true;
  hosts_[0].client = hosts_[1].client = nullptr;
  ExtensionPointRunner runner = Panel();
  EXPECT_EQ(runner.PreFilter("uid").status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(FailurePoliciesTest, UseLastTakesTheScoresOfTheLastPodOfTheOwner) {
  profile_.shares[1].score_uses_last = true;
  EXPECT_THAT(Texts(Panel().Score(Nodes({0, 1, 2}))), ElementsAre("A 0 1 2", "B 0 10 20"));
  Silence(&b_);
  ExtensionPointRunner runner = Panel();
  EXPECT_THAT(Texts(runner.Score(Nodes({2, 0}))), ElementsAre("A 2 0", "B 20 0"));
  EXPECT_TRUE(runner.ignored_failures()[0].used_last);
  // A node without a score at that time: no node gets one.
  EXPECT_THAT(Texts(Panel().Score(Nodes({2, 3}))), ElementsAre("A 2 3"));
  ExtensionPointRunner stranger(&hosts_, &profile_, 1, SteadyNow() + absl::Seconds(1));
  stranger.UseLastScores(&last_scores_, "another owner");
  EXPECT_THAT(Texts(stranger.Score(Nodes({2, 0}))), ElementsAre("A 2 0"));
}

TEST(LastScores, AgeAndNumberAreBounded) {
  LastScores scores;
  const absl::Time now = absl::FromUnixSeconds(1000);
  v1beta1::NodeSet nodes;
  nodes.add_slots(4);
  ScoreResponse kept;
  kept.add_plugins()->set_plugin("B");
  kept.mutable_plugins(0)->set_scores("\x07");
  for (int i = 0; i < 100; ++i)
    scores.Keep(std::to_string(i), nodes, kept, now + absl::Milliseconds(i));
  EXPECT_FALSE(scores.Find("35", nodes, now).has_value());
  ASSERT_TRUE(scores.Find("36", nodes, now).has_value());
  EXPECT_EQ(scores.Find("99", nodes, now)->plugins(0).scores(), "\x07");
  EXPECT_TRUE(scores.Find("99", nodes, now + absl::Seconds(5)).has_value());
  EXPECT_FALSE(scores.Find("99", nodes, now + absl::Seconds(6)).has_value());
}

TEST(ProfilePlan, AHostCanBeDoneWithoutIfNoPointInsists) {
  ProfilePlan plan;
  plan.host_names = {"a", "b", "c"};
  plan.algorithm.shares.resize(2);
  plan.algorithm.shares[1].pre_filter_fail_open = true;
  plan.algorithm.shares[1].filter_fail_open = true;
  plan.algorithm.shares[1].score_fail_open = true;
  EXPECT_FALSE(plan.CanDoWithout(0));
  EXPECT_TRUE(plan.CanDoWithout(1));
  plan.permit = {{"c", {{"Gang", {}, 0}}}};
  EXPECT_FALSE(plan.CanDoWithout(2));
  plan.permit[0].fail_open = true;
  EXPECT_TRUE(plan.CanDoWithout(2));
  plan.post_filter_hosts = {"b"};
  EXPECT_FALSE(plan.CanDoWithout(1));
}

}  // namespace
}  // namespace outboard::framework
