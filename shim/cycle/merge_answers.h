// What several hosts of a profile say, as if their plugins had run one after the other in the
// profile's order.
#ifndef OUTBOARD_SHIM_CYCLE_MERGE_ANSWERS_H_
#define OUTBOARD_SHIM_CYCLE_MERGE_ANSWERS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "proto/outboard/v1alpha1/filter.pb.h"
#include "proto/outboard/v1alpha1/score.pb.h"
#include "shim/cycle/answer_check.h"

namespace outboard::cycle {

// All functions: `profile` are the names of the profile's plugins at the point, in order; answers
// were checked, and each host answers for plugins of its own only. Pure, but for `more`.

// Of the rejections the one at which kube-scheduler would have stopped, else the last. Node sets
// are intersected; where only those of several hosts have nothing in common, the rejection names
// all plugins up to the host that left no node.
v1alpha1::PreFilterResponse MergePreFilter(const std::vector<std::string>& profile,
                                           std::vector<v1alpha1::PreFilterResponse> answers);

// Each answer is about the same list of `num_nodes`, all of it unless a plugin failed; the search
// ends at the first feasible node beyond `num_to_find`, or with a failure that no earlier plugin's
// rejection hides. Where it hides one, `more(host, i)` judges the nodes from the i-th on anew.
using MoreVerdicts =
    absl::FunctionRef<absl::StatusOr<v1alpha1::FilterResponse>(size_t host, uint32_t i)>;
absl::StatusOr<v1alpha1::FilterResponse> MergeFilter(const std::vector<std::string>& profile,
                                                     std::vector<v1alpha1::FilterResponse> answers,
                                                     uint32_t num_nodes, uint32_t num_to_find,
                                                     MoreVerdicts more);

// The failure of the plugin that stands first, or who skipped.
v1alpha1::PreScoreResponse MergePreScore(const std::vector<std::string>& profile,
                                         const std::vector<v1alpha1::PreScoreResponse>& answers);

// The failure of the plugin that stands first, or all scores, in the profile's order.
v1alpha1::ScoreResponse MergeScore(const std::vector<WeightedPlugin>& profile,
                                   std::vector<v1alpha1::ScoreResponse> answers);

}  // namespace outboard::cycle

#endif  // OUTBOARD_SHIM_CYCLE_MERGE_ANSWERS_H_
