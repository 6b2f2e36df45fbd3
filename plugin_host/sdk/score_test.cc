#include "plugin_host/sdk/score.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

namespace outboard::sdk {
namespace {

// As in kube-scheduler.
std::vector<int64_t> ByWholeNumbers(int64_t max, bool reverse, std::vector<int64_t> scores) {
  const int64_t highest = std::max<int64_t>(0, *std::max_element(scores.begin(), scores.end()));
  for (int64_t& score : scores) {
    if (highest != 0) score = max * score / highest;
    if (reverse) score = max - score;
  }
  return scores;
}

TEST(NormalizeScoresTest, TheSameWhateverTheSize) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 20000; ++round) {
    const int64_t largest = int64_t{1} << (random() % 50);
    std::vector<int64_t> scores(1 + random() % 5);
    for (int64_t& score : scores) score = static_cast<int64_t>(random() % (largest + 1));
    const int64_t max = round % 7 == 0 ? static_cast<int64_t>(random() % 5000) : 100;
    const bool reverse = round % 2 == 0;
    const std::vector<int64_t> wanted = ByWholeNumbers(max, reverse, scores);
    NormalizeScores(max, reverse, absl::MakeSpan(scores));
    ASSERT_EQ(scores, wanted) << "round " << round;
  }
}

TEST(NormalizeScoresTest, QuotientsThatAreWhole) {
  for (int64_t highest = 1; highest < 3000; ++highest) {
    for (int64_t score = 0; score <= highest; score += 1 + highest / 100) {
      std::vector<int64_t> scores = {score, highest};
      NormalizeScores(100, false, absl::MakeSpan(scores));
      ASSERT_EQ(scores[0], 100 * score / highest);
    }
  }
  // As near as possible to the next integer, for any divisor.
  for (const int64_t max : {1, 100, 127, 128}) {
    for (int64_t highest = (int64_t{1} << 24) - 50; highest < (int64_t{1} << 24) + 50; ++highest) {
      std::vector<int64_t> scores = {highest - 1, highest / 2, highest};
      NormalizeScores(max, false, absl::MakeSpan(scores));
      ASSERT_EQ(scores[0], max * (highest - 1) / highest);
      ASSERT_EQ(scores[1], max * (highest / 2) / highest);
      ASSERT_EQ(scores[2], max);
    }
  }
  std::vector<int64_t> scores = {(int64_t{1} << 31) - 2, (int64_t{1} << 31) - 1};
  NormalizeScores(int64_t{1} << 20, false, absl::MakeSpan(scores));
  EXPECT_EQ(scores[0], (int64_t{1} << 20) - 1);
}

TEST(NormalizeScoresTest, NothingAndLessThanNothing) {
  std::vector<int64_t> none = {0, 0};
  NormalizeScores(100, true, absl::MakeSpan(none));
  EXPECT_EQ(none, (std::vector<int64_t>{100, 100}));
  std::vector<int64_t> negative = {-50, 200};
  NormalizeScores(100, false, absl::MakeSpan(negative));
  EXPECT_EQ(negative, (std::vector<int64_t>{-25, 100}));
}

}  // namespace
}  // namespace outboard::sdk
