#include "cli/conformance/fused.h"

#include "proto/short_names.h"

namespace outboard::conformance {

using namespace v1beta1;  // NOLINT: the contract's messages are this file's vocabulary.

absl::Status ToRound(const Kit& kit, const CycleResponse& response, bool score_single,
                     Round* round) {
  if (response.has_error()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "Cycle returns ", ShortName(response.error().reason()), ": ", response.error().message()));
  }
  if (response.has_rejection()) {
    round->pre_filter = response.rejection().pre_filter();
    if (!round->pre_filter.has_rejection())
      return Wrong(kFusedRejection, "PreFilter does not reject");
    return CheckPreFilter(kit, round->pre_filter);
  }
  if (!response.has_evaluation()) return Wrong(kFusedOutcome, "neither a rejection nor nodes");
  const CycleEvaluation& evaluation = response.evaluation();
  round->pre_filter = evaluation.pre_filter();
  round->filter = evaluation.filter();
  round->pre_score = evaluation.pre_score();
  round->score = evaluation.score();
  CONFORMANCE_TRY(CheckPreFilter(kit, round->pre_filter));
  if (round->pre_filter.has_rejection()) return Wrong(kFusedEvaluation, "PreFilter rejects");
  if (!evaluation.has_filter()) return Wrong(kFusedFilter, "it is missing");
  const FilterResponse& filter = round->filter;
  if (filter.feasible().size() != (size_t{filter.processed()} + 7) / 8)
    return Malformed("FilterService", Wrong(kFeasibleSize, "in a fused answer"));
  size_t feasible = 0;
  for (const char byte : filter.feasible())
    feasible += __builtin_popcount(static_cast<unsigned char>(byte));
  if (evaluation.has_score() && feasible < (score_single ? 1 : 2))
    return Wrong(kFusedScore, absl::StrCat("scores with ", feasible, " feasible nodes"));
  return absl::OkStatus();
}

}  // namespace outboard::conformance
