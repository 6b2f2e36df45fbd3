// A search in which some hosts are asked only about nodes that all others left.
#ifndef OUTBOARD_SHIM_CYCLE_LATE_FILTER_H_
#define OUTBOARD_SHIM_CYCLE_LATE_FILTER_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "proto/outboard/v1alpha1/filter.pb.h"

namespace outboard::cycle {

// What the late hosts say together of the nodes at these positions of the list, which rise: of all
// of them, unless a plugin failed.
using AskLate = absl::FunctionRef<absl::StatusOr<v1alpha1::FilterResponse>(
    const std::vector<uint32_t>& positions)>;

// `early` is what the other hosts say of a list of `num_nodes`, of all of it unless a plugin
// failed. All plugins of late hosts stand behind those of the others in the profile, so what they
// say of a node that these reject would not be reported, and the outcome is MergeFilter's; but late
// hosts are asked about little more than the sample, where everybody else may judge thousands. The
// search ends at the first feasible node beyond `num_to_find`, or with a failure.
// Errors: those of `ask`. Pure, but for `ask`. Answers were checked.
absl::StatusOr<v1alpha1::FilterResponse> FilterLate(const v1alpha1::FilterResponse& early,
                                                    uint32_t num_nodes, uint32_t num_to_find,
                                                    AskLate ask);

}  // namespace outboard::cycle

#endif  // OUTBOARD_SHIM_CYCLE_LATE_FILTER_H_
