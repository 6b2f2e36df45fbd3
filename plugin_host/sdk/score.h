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
  for (int64_t& score : scores) {
    score = max * score / highest;
    if (reverse) score = max - score;
  }
}

}  // namespace outboard::sdk

#endif  // OUTBOARD_PLUGIN_HOST_SDK_SCORE_H_
