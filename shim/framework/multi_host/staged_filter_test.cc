#include "shim/framework/multi_host/staged_filter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "shim/framework/multi_host/merge_answers.h"
#include "shim/framework/testing/rejection_reasons.h"

namespace outboard::framework::staged_filter_test {
namespace {

using v1beta1::FilterResponse;

const std::vector<std::string> kProfile = {"A", "B"};

// One host's answer about a node.
struct Verdict {
  enum Kind { kFeasible, kRejected, kError } kind = kFeasible;
  bool only_without_nominated = false;
  std::string reason;
};

FilterResponse Answer(const std::string& plugin, const std::vector<Verdict>& all,
                      const std::vector<uint32_t>& positions) {
  FilterResponse answer;
  std::string bits;
  uint32_t i = 0;
  uint32_t num_rejected = 0;
  for (const uint32_t position : positions) {
    const Verdict& verdict = all[position];
    v1beta1::PluginStatus status;
    status.set_plugin(plugin);
    status.set_code(v1beta1::CODE_UNSCHEDULABLE);
    status.add_reasons(verdict.reason);
    if (verdict.only_without_nominated) answer.add_only_without_nominated(num_rejected);
    if (verdict.kind == Verdict::kError) {
      status.set_code(v1beta1::CODE_ERROR);
      *answer.mutable_error() = status;
      break;
    }
    if (i % 8 == 0) bits.push_back('\0');
    if (verdict.kind == Verdict::kFeasible) {
      bits.back() = static_cast<char>(bits.back() | (1 << (i % 8)));
    } else {
      int reason = 0;
      while (reason < answer.reasons_size() && answer.reasons(reason).reasons(0) != verdict.reason)
        ++reason;
      if (reason == answer.reasons_size()) *answer.add_reasons() = status;
      answer.add_rejected(static_cast<uint32_t>(reason));
      ++num_rejected;
    }
    ++i;
  }
  answer.set_processed(i);
  answer.set_feasible(bits);
  // Alternates between the two forms of rejections.
  testing::PutIntoBitmaps(static_cast<int>(positions.size()) % (answer.reasons_size() + 1),
                          &answer);
  return answer;
}

std::vector<uint32_t> UpTo(uint32_t count) {
  std::vector<uint32_t> all(count);
  for (uint32_t i = 0; i < count; ++i) all[i] = i;
  return all;
}

std::string Text(const FilterResponse& answer) {
  std::string text = absl::StrCat(answer.processed(), ":");
  for (const v1beta1::PluginStatus* status : testing::ReasonsByNode(answer)) {
    if (status == nullptr) {
      text += " +";
    } else {
      absl::StrAppend(&text, " ", status->plugin(), status->reasons(0));
    }
  }
  if (answer.has_error()) absl::StrAppend(&text, " error ", answer.error().plugin());
  return text;
}

std::vector<Verdict> RandomVerdicts(uint32_t count, double rejected, double failing,
                                    std::mt19937* random) {
  std::uniform_real_distribution<double> chance(0, 1);
  std::vector<Verdict> all(count);
  for (Verdict& verdict : all) {
    if (chance(*random) < failing) {
      verdict.kind = Verdict::kError;
    } else if (chance(*random) < rejected) {
      verdict.kind = Verdict::kRejected;
      verdict.reason = absl::StrCat((*random)() % 3);
    }
    verdict.only_without_nominated = verdict.kind != Verdict::kFeasible && chance(*random) < 0.2;
  }
  return all;
}

// For searches that end within the known nodes.
absl::StatusOr<FilterResponse> NotCalled(const std::vector<uint32_t>&) {
  return absl::InternalError("called again");
}

TEST(StagedFilterTest, EqualsCallingAllHostsTogether) {
  int continued = 0;
  for (uint32_t seed = 0; seed < 4000; ++seed) {
    std::mt19937 random(seed);
    const uint32_t count = 1 + random() % 700;
    const uint32_t to_find = 1 + random() % count;
    const double rejected = 0.1 * (random() % 11);
    const double failing = seed % 4 == 0 ? 0.01 : 0;
    const std::vector<Verdict> first = RandomVerdicts(count, rejected, failing, &random);
    const std::vector<Verdict> second =
        RandomVerdicts(count, 0.1 * (random() % 11), failing, &random);
    const FilterResponse all_early = Answer("A", first, UpTo(count));
    const auto from = [&](size_t host, uint32_t i) -> absl::StatusOr<FilterResponse> {
      std::vector<uint32_t> rest = UpTo(count);
      rest.erase(rest.begin(), rest.begin() + i);
      return Answer(host == 0 ? "A" : "B", host == 0 ? first : second, rest);
    };
    // B may also stand before A.
    const std::vector<std::string> profile =
        seed % 3 == 0 ? std::vector<std::string>{"B", "A"} : kProfile;
    const size_t first_late = seed % 3 == 0 ? 0 : 1;
    auto at_once =
        MergeFilter(profile, {all_early, Answer("B", second, UpTo(count))}, count, to_find, from);
    ASSERT_TRUE(at_once.ok());
    // Its own search ends at the sample.
    FilterResponse early = all_early;
    if (seed % 2 == 1) {
      std::vector<uint32_t> searched;
      uint32_t found = 0;
      for (uint32_t i = 0; i < count; ++i) {
        if (first[i].kind == Verdict::kFeasible && found++ == to_find) break;
        searched.push_back(i);
        if (first[i].kind == Verdict::kError) break;
      }
      early = Answer("A", first, searched);
    }
    auto late = StagedFilter(
        profile, first_late, early, count, to_find,
        [&](const std::vector<uint32_t>& positions) {
          ++continued;
          return Answer("A", first, positions);
        },
        [&](const std::vector<uint32_t>& positions) { return Answer("B", second, positions); });
    ASSERT_TRUE(late.ok());
    ASSERT_EQ(Text(*late), Text(*at_once)) << "seed " << seed;
  }
  EXPECT_GT(continued, 500);
}

TEST(StagedFilterTest, AsksAboutLittleMoreThanTheSample) {
  const std::vector<Verdict> all(5000);
  std::vector<size_t> asked;
  auto late = StagedFilter(kProfile, 1, Answer("A", all, UpTo(5000)), 5000, 500, NotCalled,
                           [&](const std::vector<uint32_t>& positions) {
                             asked.push_back(positions.size());
                             return Answer("B", all, positions);
                           });
  ASSERT_TRUE(late.ok());
  EXPECT_EQ(late->processed(), 500u);
  EXPECT_THAT(asked, ::testing::ElementsAre(501));
}

TEST(StagedFilterTest, IfTheSampleStandsNoHostIsCalledAgain) {
  const std::vector<Verdict> all(5000);
  // The node behind the sample is part of the question: the search ends there only if all hosts
  // accept it.
  for (const uint32_t rejected : {5000u, 500u, 499u}) {
    std::vector<Verdict> second = all;
    if (rejected < 5000) second[rejected] = {Verdict::kRejected, false, "no"};
    std::vector<std::string> asked;
    auto late = StagedFilter(
        kProfile, 1, Answer("A", all, UpTo(500)), 5000, 500,
        [&](const std::vector<uint32_t>& positions) {
          asked.push_back(absl::StrCat("early ", positions.front(), " ", positions.size()));
          return Answer("A", all, positions);
        },
        [&](const std::vector<uint32_t>& positions) {
          asked.push_back(absl::StrCat("late ", positions.front(), " ", positions.size()));
          return Answer("B", second, positions);
        });
    ASSERT_TRUE(late.ok());
    if (rejected == 5000) {
      EXPECT_THAT(asked, ::testing::ElementsAre("late 0 501"));
      EXPECT_EQ(late->processed(), 500u);
    } else {
      EXPECT_THAT(asked, ::testing::ElementsAre("late 0 501", "early 501 501", "late 501 200"));
      EXPECT_EQ(late->processed(), 501u);
    }
  }
}

TEST(StagedFilterTest, WhereNearlyAllAreRejectedItTakesFewCalls) {
  const std::vector<Verdict> feasible(5000);
  const std::vector<Verdict> rejected(5000, {Verdict::kRejected, false, "no"});
  int calls = 0;
  auto late = StagedFilter(kProfile, 1, Answer("A", feasible, UpTo(5000)), 5000, 1, NotCalled,
                           [&](const std::vector<uint32_t>& positions) {
                             ++calls;
                             return Answer("B", rejected, positions);
                           });
  ASSERT_TRUE(late.ok());
  EXPECT_EQ(late->processed(), 5000u);
  EXPECT_LE(calls, 6);
}

TEST(StagedFilterTest, NoHostIsCalledIfNoNodeIsLeft) {
  const std::vector<Verdict> rejected(300, {Verdict::kRejected, false, "no"});
  auto late = StagedFilter(kProfile, 1, Answer("A", rejected, UpTo(300)), 300, 100, NotCalled,
                           [](const std::vector<uint32_t>&) -> absl::StatusOr<FilterResponse> {
                             return absl::InternalError("asked");
                           });
  ASSERT_TRUE(late.ok()) << late.status();
  EXPECT_EQ(late->processed(), 300u);
}

TEST(StagedFilterTest, WithoutAnAnswerThereIsNone) {
  const std::vector<Verdict> all(10);
  auto late = StagedFilter(kProfile, 1, Answer("A", all, UpTo(10)), 10, 10, NotCalled,
                           [](const std::vector<uint32_t>&) -> absl::StatusOr<FilterResponse> {
                             return absl::DeadlineExceededError("too slow");
                           });
  EXPECT_TRUE(absl::IsDeadlineExceeded(late.status()));
}

}  // namespace
}  // namespace outboard::framework::staged_filter_test
