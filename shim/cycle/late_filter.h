// A search in which some hosts are asked only about nodes that all others left.
#ifndef OUTBOARD_SHIM_CYCLE_LATE_FILTER_H_
#define OUTBOARD_SHIM_CYCLE_LATE_FILTER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "proto/outboard/v1alpha1/filter.pb.h"

namespace outboard::cycle {

// What some hosts say together of the nodes at these positions of the list, which rise: of all of
// them, unless a plugin failed.
using AskAbout = absl::FunctionRef<absl::StatusOr<v1alpha1::FilterResponse>(
    const std::vector<uint32_t>& positions)>;

// `early` is what the other hosts say of a list of `num_nodes`: of all of it, or, where one host
// searched as if it were alone, up to the first feasible node beyond `num_to_find`; to the failure
// where a plugin failed. The outcome is MergeFilter's: the search ends at the first feasible node
// beyond `num_to_find`, or with a failure, and the plugin that stands first in `profile` is
// reported. But late hosts are asked about little more than the sample, where everybody else may
// judge thousands: about nodes that the early ones leave, and those which these reject with a
// plugin behind the first of a late host, `first_late`. Where the search goes on behind what
// `early` has, `early_again` is asked. Errors: those of the two. Pure, but for them. Answers were
// checked.
absl::StatusOr<v1alpha1::FilterResponse> FilterLate(const std::vector<std::string>& profile,
                                                    size_t first_late,
                                                    v1alpha1::FilterResponse early,
                                                    uint32_t num_nodes, uint32_t num_to_find,
                                                    AskAbout early_again, AskAbout late);

}  // namespace outboard::cycle

#endif  // OUTBOARD_SHIM_CYCLE_LATE_FILTER_H_
