#include "shim/cycle/late_filter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "shim/cycle/merge_answers.h"

namespace outboard::cycle {
namespace {

using v1alpha1::FilterResponse;

// What one host would say of a node.
struct Verdict {
  enum Kind { kFeasible, kRejected, kOnlyWithoutNominated, kError } kind = kFeasible;
  std::string reason;
};

FilterResponse Answer(const std::string& plugin, const std::vector<Verdict>& all,
                      const std::vector<uint32_t>& positions) {
  FilterResponse answer;
  std::string bits;
  uint32_t i = 0;
  for (const uint32_t position : positions) {
    const Verdict& verdict = all[position];
    v1alpha1::PluginStatus status;
    status.set_plugin(plugin);
    status.set_code(v1alpha1::UNSCHEDULABLE);
    status.add_reasons(verdict.reason);
    if (verdict.kind == Verdict::kError) {
      status.set_code(v1alpha1::ERROR);
      *answer.mutable_error() = status;
      break;
    }
    if (i % 8 == 0) bits.push_back('\0');
    if (verdict.kind == Verdict::kFeasible) {
      bits.back() = static_cast<char>(bits.back() | (1 << (i % 8)));
    } else {
      if (verdict.kind == Verdict::kOnlyWithoutNominated)
        answer.add_only_without_nominated(static_cast<uint32_t>(answer.rejected_size()));
      int reason = 0;
      while (reason < answer.reasons_size() && answer.reasons(reason).reasons(0) != verdict.reason)
        ++reason;
      if (reason == answer.reasons_size()) *answer.add_reasons() = status;
      answer.add_rejected(static_cast<uint32_t>(reason));
    }
    ++i;
  }
  answer.set_processed(i);
  answer.set_feasible(bits);
  return answer;
}

std::vector<uint32_t> UpTo(uint32_t count) {
  std::vector<uint32_t> all(count);
  for (uint32_t i = 0; i < count; ++i) all[i] = i;
  return all;
}

std::string Text(const FilterResponse& answer) {
  std::string text = absl::StrCat(answer.processed(), ":");
  int next = 0;
  for (uint32_t i = 0; i < answer.processed(); ++i) {
    if ((answer.feasible()[i / 8] >> (i % 8)) & 1) {
      text += " +";
    } else {
      const auto& status = answer.reasons(static_cast<int>(answer.rejected(next++)));
      absl::StrAppend(&text, " ", status.plugin(), status.reasons(0));
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
      verdict.kind = chance(*random) < 0.2 ? Verdict::kOnlyWithoutNominated : Verdict::kRejected;
      verdict.reason = absl::StrCat((*random)() % 3);
    }
  }
  return all;
}

TEST(LateFilterTest, SaysWhatAskingAllAtOnceSays) {
  for (uint32_t seed = 0; seed < 2000; ++seed) {
    std::mt19937 random(seed);
    const uint32_t count = 1 + random() % 700;
    const uint32_t to_find = 1 + random() % count;
    const double rejected = 0.1 * (random() % 11);
    const double failing = seed % 4 == 0 ? 0.01 : 0;
    const std::vector<Verdict> first = RandomVerdicts(count, rejected, failing, &random);
    const std::vector<Verdict> second =
        RandomVerdicts(count, 0.1 * (random() % 11), failing, &random);
    const FilterResponse early = Answer("A", first, UpTo(count));
    const auto from = [&](size_t host, uint32_t i) -> absl::StatusOr<FilterResponse> {
      std::vector<uint32_t> rest = UpTo(count);
      rest.erase(rest.begin(), rest.begin() + i);
      return Answer(host == 0 ? "A" : "B", host == 0 ? first : second, rest);
    };
    auto at_once =
        MergeFilter({"A", "B"}, {early, Answer("B", second, UpTo(count))}, count, to_find, from);
    ASSERT_TRUE(at_once.ok());
    auto late = FilterLate(early, count, to_find, [&](const std::vector<uint32_t>& positions) {
      return Answer("B", second, positions);
    });
    ASSERT_TRUE(late.ok());
    ASSERT_EQ(Text(*late), Text(*at_once)) << "seed " << seed;
  }
}

TEST(LateFilterTest, AsksAboutLittleMoreThanTheSample) {
  const std::vector<Verdict> all(5000);
  std::vector<size_t> asked;
  auto late = FilterLate(Answer("A", all, UpTo(5000)), 5000, 500,
                         [&](const std::vector<uint32_t>& positions) {
                           asked.push_back(positions.size());
                           return Answer("B", all, positions);
                         });
  ASSERT_TRUE(late.ok());
  EXPECT_EQ(late->processed(), 500u);
  EXPECT_THAT(asked, ::testing::ElementsAre(501));
}

TEST(LateFilterTest, WhereNearlyAllAreRejectedItTakesFewCalls) {
  const std::vector<Verdict> feasible(5000);
  const std::vector<Verdict> rejected(5000, {Verdict::kRejected, "no"});
  int calls = 0;
  auto late = FilterLate(Answer("A", feasible, UpTo(5000)), 5000, 1,
                         [&](const std::vector<uint32_t>& positions) {
                           ++calls;
                           return Answer("B", rejected, positions);
                         });
  ASSERT_TRUE(late.ok());
  EXPECT_EQ(late->processed(), 5000u);
  EXPECT_LE(calls, 6);
}

TEST(LateFilterTest, NobodyIsAskedWhereNothingIsLeft) {
  const std::vector<Verdict> rejected(300, {Verdict::kRejected, "no"});
  auto late = FilterLate(Answer("A", rejected, UpTo(300)), 300, 100,
                         [](const std::vector<uint32_t>&) -> absl::StatusOr<FilterResponse> {
                           return absl::InternalError("asked");
                         });
  ASSERT_TRUE(late.ok()) << late.status();
  EXPECT_EQ(late->processed(), 300u);
}

TEST(LateFilterTest, WithoutAnAnswerThereIsNone) {
  const std::vector<Verdict> all(10);
  auto late = FilterLate(Answer("A", all, UpTo(10)), 10, 10,
                         [](const std::vector<uint32_t>&) -> absl::StatusOr<FilterResponse> {
                           return absl::DeadlineExceededError("too slow");
                         });
  EXPECT_TRUE(absl::IsDeadlineExceeded(late.status()));
}

}  // namespace
}  // namespace outboard::cycle
