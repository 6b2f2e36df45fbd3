// A search in which some hosts evaluate only the nodes that all others left.
#ifndef OUTBOARD_SHIM_FRAMEWORK_MULTI_HOST_STAGED_FILTER_H_
#define OUTBOARD_SHIM_FRAMEWORK_MULTI_HOST_STAGED_FILTER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "outboard/v1beta1/filter.pb.h"

namespace outboard::framework {

// The merged answer of some hosts about the nodes at these positions of the list, in ascending
// order: about all of them, unless a plugin failed.
using AskAbout = absl::FunctionRef<absl::StatusOr<v1beta1::FilterResponse>(
    const std::vector<uint32_t>& positions)>;

// `early` is the answer of the other hosts about a list of `num_nodes`:
// - about all of it;
// - if one host searched as if it were alone, up to the first feasible node beyond `num_to_find`;
// - if a plugin failed, up to the failure.
//
// Returns the result of MergeFilter: the search ends at the first feasible node beyond
// `num_to_find`, or with a failure, and each rejection names the first rejecting plugin in
// `profile`. But late hosts evaluate only
// - the nodes that the early hosts find feasible;
// - the nodes that the early hosts reject with a plugin after `first_late`, the first plugin of a
//   late host, because then a plugin of a late host may be the first.
// That is little more than the sample, whereas the early hosts may evaluate thousands of nodes. If
// the search goes beyond `early`, it calls `early_again`. The answers were checked.
// Pure, except for the two callbacks.
// Errors: those of the callbacks.
absl::StatusOr<v1beta1::FilterResponse> StagedFilter(const std::vector<std::string>& profile,
                                                     size_t first_late,
                                                     v1beta1::FilterResponse early,
                                                     uint32_t num_nodes, uint32_t num_to_find,
                                                     AskAbout early_again, AskAbout late);

}  // namespace outboard::framework

#endif  // OUTBOARD_SHIM_FRAMEWORK_MULTI_HOST_STAGED_FILTER_H_
