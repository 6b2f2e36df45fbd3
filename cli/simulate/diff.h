// Compares two simulations of the same input.
#ifndef OUTBOARD_CLI_SIMULATE_DIFF_H_
#define OUTBOARD_CLI_SIMULATE_DIFF_H_

#include <cstddef>
#include <string>
#include <vector>

#include "cli/simulate/table.h"

namespace outboard::simulate {

// A pod with another result, node or victims.
struct PodDifference {
  PodRow before;
  PodRow after;
};

// In the order of `before`. Both are about the same pods.
std::vector<PodDifference> DifferencesOf(const std::vector<PodRow>& before,
                                         const std::vector<PodRow>& after);

// What the two simulations are called.
struct DiffNames {
  std::string before;
  std::string after;
};

// Like a unified diff, with the reason on each side. Ends with a newline.
std::string ToDiff(const std::vector<PodDifference>& differences, size_t pods,
                   const DiffNames& names, const Style& style);

// One line without a newline: `{"pod": …, "before": {…}, "after": {…}}`.
std::string ToJsonLine(const PodDifference& difference);

}  // namespace outboard::simulate

#endif  // OUTBOARD_CLI_SIMULATE_DIFF_H_
