#include "shim/framework/multi_host/merge_answers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "shim/framework/testing/rejection_reasons.h"

namespace outboard::framework {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using v1beta1::FilterResponse;
using v1beta1::PluginStatus;
using v1beta1::PreFilterResponse;
using v1beta1::PreScoreResponse;
using v1beta1::ScoreResponse;

// In a profile of A1 B1 A2 B2 A3, hosts A and B serve the plugins with their letter.
const std::vector<std::string>& Profile() {
  static const auto& profile = *new std::vector<std::string>{"A1", "B1", "A2", "B2", "A3"};
  return profile;
}

PluginStatus Status(const std::string& plugin, v1beta1::Code code = v1beta1::CODE_UNSCHEDULABLE) {
  PluginStatus status;
  status.set_plugin(plugin);
  status.set_code(code);
  status.add_reasons(plugin + " rejects");
  return status;
}

PreFilterResponse Rejected(const std::string& plugin,
                           v1beta1::Code code = v1beta1::CODE_UNSCHEDULABLE) {
  PreFilterResponse answer;
  *answer.mutable_rejection() = Status(plugin, code);
  if (code != v1beta1::CODE_ERROR) answer.add_rejected_by(plugin);
  return answer;
}

PreFilterResponse Nodes(std::vector<std::string> plugins, std::vector<std::string> names) {
  PreFilterResponse answer;
  answer.mutable_node_names()->mutable_names()->Assign(names.begin(), names.end());
  answer.mutable_restricted_by()->Assign(plugins.begin(), plugins.end());
  return answer;
}

// One letter per node: '.' feasible, a digit the rejecting plugin of the host, 'n' a rejection only
// without nominated pods, 'E' a failure of plugin 2, at which the answer ends.
FilterResponse Answer(const std::string& host, const std::string& nodes) {
  FilterResponse answer;
  std::string bits((nodes.size() + 7) / 8, '\0');
  uint32_t i = 0;
  for (const char c : nodes) {
    if (c == 'n') {
      answer.add_only_without_nominated(static_cast<uint32_t>(answer.rejected_size()));
      continue;
    }
    if (c == 'E') {
      *answer.mutable_error() = Status(host + "2", v1beta1::CODE_ERROR);
      break;
    }
    if (c == '.') {
      bits[i / 8] |= static_cast<char>(1 << (i % 8));
    } else {
      answer.add_rejected(static_cast<uint32_t>(answer.reasons_size()));
      *answer.add_reasons() = Status(absl::StrCat(host, std::string(1, c)));
    }
    ++i;
  }
  bits.resize((i + 7) / 8);
  answer.set_processed(i);
  answer.set_feasible(bits);
  // Alternates between the two forms of rejections.
  testing::PutIntoBitmaps(static_cast<int>(nodes.size()) % (answer.reasons_size() + 1), &answer);
  return answer;
}

std::string Text(const FilterResponse& merged) {
  std::string text;
  for (const PluginStatus* status : testing::ReasonsByNode(merged))
    absl::StrAppend(&text, text.empty() ? "" : " ", status == nullptr ? "." : status->plugin());
  if (merged.has_error()) absl::StrAppend(&text, " error of ", merged.error().plugin());
  return text;
}

absl::StatusOr<FilterResponse> Never(size_t, uint32_t) {
  ADD_FAILURE() << "asked for more";
  return absl::InternalError("no");
}

std::string Merge(const std::string& a, const std::string& b, uint32_t nodes, uint32_t to_find) {
  auto merged = MergeFilter(Profile(), {Answer("A", a), Answer("B", b)}, nodes, to_find, Never);
  EXPECT_TRUE(merged.ok()) << merged.status();
  return Text(*merged);
}

TEST(MergePreFilter, NoHostRejects) {
  const PreFilterResponse merged = MergePreFilter(Profile(), {{}, {}});
  EXPECT_FALSE(merged.has_rejection());
  EXPECT_FALSE(merged.has_node_names());
}

TEST(MergePreFilter, TheFirstThatEndsTheRoundIsReported) {
  using v1beta1::CODE_UNSCHEDULABLE_AND_UNRESOLVABLE;
  auto merged = MergePreFilter(Profile(), {Rejected("A2", CODE_UNSCHEDULABLE_AND_UNRESOLVABLE),
                                           Rejected("B1", CODE_UNSCHEDULABLE_AND_UNRESOLVABLE)});
  EXPECT_EQ(merged.rejection().plugin(), "B1");
  EXPECT_THAT(merged.rejected_by(), ElementsAre("B1"));
  // An error behind a rejection would not have happened.
  merged = MergePreFilter(Profile(), {Rejected("A1", CODE_UNSCHEDULABLE_AND_UNRESOLVABLE),
                                      Rejected("B1", v1beta1::CODE_ERROR)});
  EXPECT_EQ(merged.rejection().code(), CODE_UNSCHEDULABLE_AND_UNRESOLVABLE);
  merged = MergePreFilter(Profile(), {Rejected("A2", CODE_UNSCHEDULABLE_AND_UNRESOLVABLE),
                                      Rejected("B1", v1beta1::CODE_ERROR)});
  EXPECT_EQ(merged.rejection().code(), v1beta1::CODE_ERROR);
  EXPECT_THAT(merged.rejected_by(), IsEmpty());
}

TEST(MergePreFilter, ARejectionThatEndsNothingIsKeptWhileOthersRun) {
  auto merged = MergePreFilter(Profile(), {Rejected("A1"), Rejected("B2")});
  EXPECT_EQ(merged.rejection().plugin(), "B2");
  EXPECT_THAT(merged.rejected_by(), ::testing::UnorderedElementsAre("A1", "B2"));
  merged = MergePreFilter(Profile(), {Rejected("A3"), Rejected("B2")});
  EXPECT_EQ(merged.rejection().plugin(), "A3");
  // Without what is behind the end.
  merged = MergePreFilter(
      Profile(), {Rejected("A3"), Rejected("B1", v1beta1::CODE_UNSCHEDULABLE_AND_UNRESOLVABLE)});
  EXPECT_EQ(merged.rejection().plugin(), "B1");
  EXPECT_THAT(merged.rejected_by(), ElementsAre("B1"));
}

TEST(MergePreFilter, NodeNamesAreIntersected) {
  auto merged =
      MergePreFilter(Profile(), {Nodes({"A1", "A3"}, {"n1", "n2"}), Nodes({"B2"}, {"n2", "n3"})});
  EXPECT_FALSE(merged.has_rejection());
  EXPECT_THAT(merged.node_names().names(), ElementsAre("n2"));
  EXPECT_THAT(merged.restricted_by(), ElementsAre("A1", "B2", "A3"));
  merged = MergePreFilter(Profile(), {{}, Nodes({"B2"}, {"n2"})});
  EXPECT_THAT(merged.node_names().names(), ElementsAre("n2"));
  EXPECT_THAT(merged.restricted_by(), ElementsAre("B2"));
}

TEST(MergePreFilter, DisjointSetsRejectWithUpstreamsText) {
  auto merged = MergePreFilter(Profile(), {Nodes({"A2"}, {"n1"}), Nodes({"B1"}, {"n2"})});
  EXPECT_EQ(merged.rejection().plugin(), "");
  EXPECT_THAT(merged.rejection().reasons(),
              ElementsAre("node(s) didn't satisfy plugin(s) [A2 B1] simultaneously"));
  EXPECT_EQ(merged.rejection().code(), v1beta1::CODE_UNSCHEDULABLE_AND_UNRESOLVABLE);
  EXPECT_TRUE(CheckPreFilter(merged).ok());
  // An earlier rejection ends the round first.
  merged = MergePreFilter(
      Profile(),
      {Nodes({"A2"}, {"n1"}), Rejected("B1", v1beta1::CODE_UNSCHEDULABLE_AND_UNRESOLVABLE)});
  EXPECT_EQ(merged.rejection().plugin(), "B1");
}

TEST(MergeFilter, TheFirstPluginOfTheProfileIsReported) {
  EXPECT_EQ(Merge("1.2.3", "11122", 5, 5), "A1 B1 B1 B2 B2");
  EXPECT_EQ(Merge("..3", "...", 3, 3), ". . A3");
}

TEST(MergeFilter, EndsAtTheFirstNodeBeyondTheSample) {
  EXPECT_EQ(Merge("....1.", "1.....", 6, 2), "B1 . .");
  // Rejected nodes before that one count as examined.
  EXPECT_EQ(Merge("...1..", "......", 6, 3), ". . . A1");
  EXPECT_EQ(Merge("......", "......", 6, 6), ". . . . . .");
}

TEST(MergeFilter, RejectionsThatNeedTheNominatedPodsGoneComeLast) {
  EXPECT_EQ(Merge("n1", "2", 1, 1), "B2");
  EXPECT_EQ(Merge("n1", "n2", 1, 1), "A1");
  EXPECT_EQ(Merge("1n1", "2n1", 2, 2), "A1 A1");
  EXPECT_EQ(Merge("3", "n1", 1, 1), "A3");
}

TEST(MergeFilter, AnErrorBehindARejectionIsIgnoredAndTheSearchGoesOn) {
  std::vector<std::string> asked;
  const auto more = [&](size_t host, uint32_t first) -> absl::StatusOr<FilterResponse> {
    asked.push_back(absl::StrCat(host, " from ", first));
    return Answer("B", asked.size() == 1 ? "1E" : ".");
  };
  // B fails at node 1, where A1 comes first; called again it fails at node 3, again behind A1.
  auto merged = MergeFilter(Profile(), {Answer("A", ".1.1."), Answer("B", ".E")}, 5, 5, more);
  ASSERT_TRUE(merged.ok()) << merged.status();
  EXPECT_EQ(Text(*merged), ". A1 B1 A1 .");
  EXPECT_THAT(asked, ElementsAre("1 from 2", "1 from 4"));
}

TEST(MergeFilter, AnErrorThatComesFirstEndsTheSearch) {
  EXPECT_EQ(Merge(".3.", ".E", 3, 3), ". error of B2");
  EXPECT_EQ(Merge("...", ".E", 3, 3), ". error of B2");
  // Behind the end of the search it does not occur.
  EXPECT_EQ(Merge("...", "..E", 3, 1), ".");
  EXPECT_EQ(Merge("E", "nE", 1, 1), " error of A2");
}

TEST(MergeFilter, WithoutFiltersEveryNodeIsFeasible) {
  auto merged = MergeFilter({}, {}, 3, 2, Never);
  ASSERT_TRUE(merged.ok());
  EXPECT_EQ(Text(*merged), ". .");
}

TEST(MergeScore, InTheProfilesOrderOrTheFirstFailure) {
  ScoreResponse a, b;
  for (const char* plugin : {"A1", "A3"}) a.add_plugins()->set_plugin(plugin);
  for (const char* plugin : {"B2"}) b.add_plugins()->set_plugin(plugin);
  std::vector<WeightedPlugin> profile;
  for (const std::string& name : Profile()) profile.push_back({name, 1});
  const ScoreResponse merged = MergeScore(profile, {b, a});
  std::vector<std::string> names;
  for (const auto& scores : merged.plugins()) names.push_back(scores.plugin());
  EXPECT_THAT(names, ElementsAre("A1", "B2", "A3"));
  *a.mutable_error() = Status("A2", v1beta1::CODE_ERROR);
  *b.mutable_error() = Status("B1", v1beta1::CODE_ERROR);
  EXPECT_EQ(MergeScore(profile, {a, b}).error().plugin(), "B1");
}

TEST(MergePreScore, SkippedPluginsOrTheFirstFailure) {
  PreScoreResponse a, b;
  a.add_skipped("A1");
  b.add_skipped("B1");
  EXPECT_THAT(MergePreScore(Profile(), {a, b}).skipped(), ElementsAre("A1", "B1"));
  *a.mutable_error() = Status("A2", v1beta1::CODE_ERROR);
  EXPECT_EQ(MergePreScore(Profile(), {a, b}).error().plugin(), "A2");
}

}  // namespace
}  // namespace outboard::framework
