// Arithmetic on scores.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_SCORE_H_
#define OUTBOARD_PLUGIN_HOST_SDK_SCORE_H_

#include <cstdint>

#include "absl/types/span.h"

namespace outboard::sdk {

// Kubernetes' default normalisation: scales so that the highest becomes `max`; with `reverse`
// scores become max − score. If all are 0 they
// stay 0, or with `reverse` become `max`.
inline void NormalizeScores(int64_t max, bool reverse, absl::Span<int64_t> scores) {
  int64_t highest = 0;
  for (int64_t score : scores) highest = score > highest ? score : highest;
  if (highest == 0) {
    if (reverse) {
      for (int64_t& score : scores) score = max;
    }
    return;
  }
  // Whole numbers that are this small are divided exactly as doubles, which takes a fraction of the
  // time: a quotient that is not whole is farther from the next whole number than rounding goes.
  constexpr int64_t kSmall = int64_t{1} << 31;
  uint64_t all = 0;
  for (int64_t score : scores) all |= static_cast<uint64_t>(score);
  if (all < kSmall && max >= 0 && max <= int64_t{1} << 20) {
    const double scale_to = static_cast<double>(max), whole = static_cast<double>(highest);
    for (int64_t& score : scores)
      score = static_cast<int64_t>(static_cast<double>(score) * scale_to / whole);
  } else {
    for (int64_t& score : scores) score = max * score / highest;
  }
  if (reverse) {
    for (int64_t& score : scores) score = max - score;
  }
}

}  // namespace outboard::sdk

#endif  // OUTBOARD_PLUGIN_HOST_SDK_SCORE_H_
