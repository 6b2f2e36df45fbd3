// Why a pod got its node, or none, in a few words.
#ifndef OUTBOARD_CLI_SIMULATE_WHY_H_
#define OUTBOARD_CLI_SIMULATE_WHY_H_

#include <string>
#include <utility>
#include <vector>

#include "cli/simulate/report.h"

namespace outboard::simulate {

// For the table: the essence, without a final period. `AttemptReport::message` has the whole text.
//   463, next cpu-a 425: NodeResourcesFit 90 against 52
//   no node of 8: 5 had untolerated taint(s), 3 Insufficient cpu
std::string Why(const AttemptReport& report);

// How often each text occurs. Pure.
using CountedTexts = std::vector<std::pair<size_t, std::string>>;

// How many of the pods, which have no node, have each reason; numbers of nodes do not count.
CountedTexts PodsByReason(const std::vector<const AttemptReport*>& pods);

// Joins texts that differ only in numbers, the most frequent first:
//   1 need 4, available 1 · 2 need 4, available 3  ->  3 need 4, available 1 to 3
CountedTexts JoinLikeTexts(const CountedTexts& texts);

// `1 x, 2 y` as counted texts; empty if `text` is not such a list.
CountedTexts ParseCountedTexts(const std::string& text);

}  // namespace outboard::simulate

#endif  // OUTBOARD_CLI_SIMULATE_WHY_H_
