#include "cli/simulate/why.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace outboard::simulate {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

AttemptReport Scheduled(const std::string& node) {
  AttemptReport report;
  report.pod = "default/p";
  report.result = kScheduled;
  report.node = node;
  report.nodes = 3;
  report.attempt = 1;
  return report;
}

AttemptReport Unschedulable(std::map<std::string, uint32_t> reasons,
                            const std::string& post_filter = "") {
  AttemptReport report;
  report.result = kUnschedulable;
  report.nodes = 5;
  report.reasons = std::move(reasons);
  report.post_filter_message = post_filter;
  return report;
}

diagnostics::NodeScores Scores(int64_t total, std::map<std::string, int64_t> plugins) {
  return {total, std::move(plugins), {}};
}

TEST(WhyTest, NamesTheNextNodeAndWhatDecided) {
  AttemptReport report = Scheduled("cpu-b");
  report.scores["cpu-b"] = Scores(463, {{"NodeResourcesFit", 90}, {"Spread", 70}, {"Taints", 303}});
  report.scores["cpu-a"] = Scores(425, {{"NodeResourcesFit", 52}, {"Spread", 70}, {"Taints", 303}});
  report.scores["cpu-c"] = Scores(400, {{"NodeResourcesFit", 97}, {"Taints", 303}});
  EXPECT_EQ(Why(report), "463, next cpu-a 425: NodeResourcesFit 90 against 52");
  // Two plugins decided together; a third one was of the other opinion.
  report.scores["cpu-a"] = Scores(440, {{"NodeResourcesFit", 70}, {"Spread", 40}, {"Taints", 330}});
  EXPECT_EQ(Why(report), "463, next cpu-a 440: Spread 70 against 40");
  report.scores["cpu-a"] = Scores(413, {{"NodeResourcesFit", 60}, {"Spread", 50}, {"Taints", 303}});
  EXPECT_EQ(Why(report),
            "463, next cpu-a 413: NodeResourcesFit 90 against 60, Spread 70 against 50");
}

TEST(WhyTest, SaysThatNodesHadTheSameScore) {
  AttemptReport report = Scheduled("n1");
  report.scores["n1"] = Scores(90, {{"A", 90}});
  report.scores["n2"] = Scores(90, {{"B", 90}});
  EXPECT_EQ(Why(report), "90, tied with n2");
  report.scores["n3"] = Scores(90, {{"B", 90}});
  EXPECT_EQ(Why(report), "90, tied with 2 other nodes");
}

TEST(WhyTest, SaysWhyThereWasNoChoice) {
  AttemptReport report = Scheduled("n1");
  report.filter["n2"] = {"Unschedulable", "NodeResourcesFit", {"Insufficient cpu"}};
  report.filter["n3"] = {"Unschedulable", "NodeResourcesFit", {"Insufficient cpu"}};
  EXPECT_EQ(Why(report), "only this node fits; of the others: 2 Insufficient cpu");
  report.filter.clear();
  EXPECT_EQ(Why(report), "the first node that fits");
  report.was_nominated = true;
  EXPECT_EQ(Why(report), "the node that was nominated for it");
  report.group_pods = 8;
  EXPECT_EQ(Why(report), "placed with its group of 8 in one pass");
  report = Scheduled("n1");
  report.nodes = 1;
  EXPECT_EQ(Why(report), "the only node");
}

TEST(WhyTest, SaysWhatTheNodesLack) {
  EXPECT_EQ(Why(Unschedulable({{"Insufficient cpu", 2}, {"node(s) had untolerated taint(s)", 3}})),
            "no node of 5: 3 had untolerated taint(s), 2 Insufficient cpu");
  EXPECT_EQ(Why(Unschedulable({{"insufficient GPU: need 16, available 4", 1},
                               {"insufficient GPU: need 16, available 10", 3},
                               {"insufficient GPU: need 16, available 0", 1}})),
            "no node of 5: 5 insufficient GPU: need 16, available 0 to 10");
  AttemptReport report = Unschedulable({});
  report.pre_filter_message = "persistentvolumeclaim \"data\" not found";
  EXPECT_EQ(Why(report), "persistentvolumeclaim \"data\" not found");
  report.pre_filter_message =
      "gang \"g\": 1 of 3 members fit; 1 need 4, available 1, 2 need 4, available 3, 1 Too many "
      "pods";
  EXPECT_EQ(Why(report),
            "gang \"g\": 1 of 3 members fit; 3 need 4, available 1 to 3, 1 Too many pods");
  report.pre_filter_message = "first; second";
  EXPECT_EQ(Why(report), "first; second");
}

TEST(WhyTest, SaysWhyPreemptionDoesNotHelp) {
  const auto why = [](const std::string& post_filter) {
    return Why(Unschedulable({{"Insufficient cpu", 5}}, post_filter));
  };
  const std::string nodes = "no node of 5: 5 Insufficient cpu";
  EXPECT_EQ(why(""), nodes);
  // A matter of course.
  EXPECT_EQ(why("no new claims to deallocate, preemption: 0/5 nodes are available: 5 Preemption is "
                "not helpful for scheduling."),
            nodes);
  EXPECT_EQ(why("preemption: 0/5 nodes are available: 2 No preemption victims found for incoming "
                "pod, 3 Preemption is not helpful for scheduling."),
            nodes + "; no pods that it could preempt");
  EXPECT_EQ(why("preemption: not eligible due to preemptionPolicy=Never."),
            nodes + "; may not preempt: preemptionPolicy Never");
  EXPECT_EQ(
      why("preemption: the group does not fit even if all pods of lower priority are evicted."),
      nodes +
          "; preemption: the group does not fit even if all pods of lower priority are evicted");
  EXPECT_EQ(why("preemption: 0/5 nodes are available: 5 Too far away."),
            nodes + "; preemption: 0/5 nodes are available: 5 Too far away");
}

TEST(WhyTest, NamesVictims) {
  AttemptReport report = Unschedulable({{"Insufficient cpu", 5}});
  report.result = kPreempting;
  report.victims = {"a/1", "a/2", "a/3", "a/4"};
  EXPECT_EQ(Why(report), "preempts a/1, a/2, a/3, a/4; no node of 5: 5 Insufficient cpu");
  report.victims.push_back("a/5");
  EXPECT_EQ(Why(report), "preempts a/1, a/2, a/3 and 2 more; no node of 5: 5 Insufficient cpu");
  report.leader = "a/leader";
  EXPECT_EQ(Why(report), "its group preempts, see a/leader; no node of 5: 5 Insufficient cpu");
}

TEST(WhyTest, SaysThatThePodLostItsNode) {
  AttemptReport report = Unschedulable({});
  report.lost_node = "n1";
  report.message = "0/1 nodes are available: 1 rejected due to timeout after waiting 30s.";
  EXPECT_EQ(Why(report), "had n1, then: rejected due to timeout after waiting 30s");
}

TEST(WhyTest, ReadsCountedTexts) {
  EXPECT_THAT(ParseCountedTexts("1 need 4, available 1, 12 Insufficient cpu"),
              ElementsAre(Pair(1, "need 4, available 1"), Pair(12, "Insufficient cpu")));
  EXPECT_THAT(ParseCountedTexts("no, 1 x"), IsEmpty());
  EXPECT_THAT(ParseCountedTexts(""), IsEmpty());
  EXPECT_THAT(ParseCountedTexts("7"), IsEmpty());
}

TEST(WhyTest, JoinsTextsThatDifferOnlyInNumbers) {
  EXPECT_THAT(JoinLikeTexts({{1, "need 8GB, available 4GB"}, {2, "need 8GB, available 2.5GB"}}),
              ElementsAre(Pair(3, "need 8GB, available 2.5 to 4GB")));
  // Parts of names are not numbers.
  EXPECT_THAT(JoinLikeTexts({{1, "node-7 is away"},
                             {1, "node-8 is away"},
                             {1, "10.0.0.1 is away"},
                             {1, "10.0.0.2 is away"},
                             {1, "1st is away"}}),
              ::testing::SizeIs(5));
}

TEST(WhyTest, CountsPodsByReason) {
  const AttemptReport a = Unschedulable(
      {{"need 16, available 1", 1}, {"need 16, available 3", 1}, {"Too many pods", 3}});
  const AttemptReport b = Unschedulable({{"need 4, available 1", 5}});
  AttemptReport c;
  c.message = "waiting for scheduling gates: [x]";
  EXPECT_THAT(PodsByReason({&a, &b, &c}),
              ElementsAre(Pair(2, "need 4 to 16, available 1 to 3"), Pair(1, "Too many pods"),
                          Pair(1, "waiting for scheduling gates: [x]")));
}

}  // namespace
}  // namespace outboard::simulate
