#include "plugins/default_preemption/victims.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

namespace outboard::default_preemption {
namespace {

using sdk::PodRecord;
using sdk::PreemptionCandidate;

// A pod that has not started counts as younger than all that have.
int64_t StartOf(const PodRecord& pod) {
  const int64_t start = pod.pod.start_unix_seconds();
  return start == 0 ? std::numeric_limits<int64_t>::max() : start;
}

// Rank of a candidate; the smallest is the best.
using Cost = std::tuple<int, int32_t, int64_t, size_t, int64_t>;

Cost CostOf(const PreemptionCandidate& candidate) {
  int32_t highest = std::numeric_limits<int32_t>::min();
  for (const PodRecord* victim : candidate.victims) {
    highest = std::max(highest, victim->pod.priority());
  }
  int64_t sum = 0;
  int64_t earliest_start = std::numeric_limits<int64_t>::max();
  for (const PodRecord* victim : candidate.victims) {
    // Shifted, so that an additional victim of negative priority also adds cost.
    sum += int64_t{victim->pod.priority()} + (int64_t{1} << 31);
    if (victim->pod.priority() != highest) continue;
    earliest_start = std::min(earliest_start, StartOf(*victim));
  }
  return {candidate.budget_violations, highest, sum, candidate.victims.size(), -earliest_start};
}

}  // namespace

void SortByPreference(std::vector<PreemptionCandidate>* candidates) {
  std::vector<std::pair<Cost, size_t>> ranks;
  ranks.reserve(candidates->size());
  for (const PreemptionCandidate& candidate : *candidates) {
    ranks.emplace_back(CostOf(candidate), ranks.size());
  }
  std::sort(ranks.begin(), ranks.end());
  std::vector<PreemptionCandidate> sorted;
  sorted.reserve(candidates->size());
  for (const auto& [cost, index] : ranks) sorted.push_back(std::move((*candidates)[index]));
  *candidates = std::move(sorted);
}

}  // namespace outboard::default_preemption
