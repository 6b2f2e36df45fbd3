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
  uint64_t all = 0;
  for (const int64_t score : scores) {
    highest = score > highest ? score : highest;
    all |= static_cast<uint64_t>(score);
  }
  if (highest == 0) {
    if (reverse) {
      for (int64_t& score : scores) score = max;
    }
    return;
  }
  // Avoids slow divisions. For numbers this small, multiplying by a 56-bit reciprocal gives the
  // same integer: its error, less than one in the last bit, is smaller than the distance of any
  // quotient from the next integer.
  constexpr int kBits = 56;
  constexpr uint64_t kSmall = uint64_t{1} << 24;
  constexpr uint64_t kMedium = uint64_t{1} << 31;
  if (all < kSmall && max >= 0 && max < 128) {
    const uint64_t reciprocal = (uint64_t{1} << kBits) / static_cast<uint64_t>(highest) + 1;
    const uint64_t factor = static_cast<uint64_t>(max) * reciprocal;
    for (int64_t& score : scores)
      score = static_cast<int64_t>(static_cast<uint64_t>(score) * factor >> kBits);
  } else if (all < kMedium && max >= 0 && max <= int64_t{1} << 20) {
    // Dividing doubles is exact here, and faster: a quotient that is not an integer is farther from
    // the next integer than the rounding error.
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
