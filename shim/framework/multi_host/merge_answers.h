// Merges the answers of several hosts as if their plugins had run one after the other in the
// profile's order.
#ifndef OUTBOARD_SHIM_FRAMEWORK_MULTI_HOST_MERGE_ANSWERS_H_
#define OUTBOARD_SHIM_FRAMEWORK_MULTI_HOST_MERGE_ANSWERS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "outboard/v1beta1/filter.pb.h"
#include "outboard/v1beta1/score.pb.h"
#include "shim/framework/answer_check.h"

namespace outboard::framework {

// All functions: `profile` has the names of the profile's plugins at the point, in order. The
// answers were checked, and each host answers for its own plugins only. Pure, except for `more`.

// Returns the rejection at which kube-scheduler would have stopped, else the last one. Node sets
// are intersected. If only the sets of several hosts have no common node, the rejection names all
// plugins up to the host that left no node.
v1beta1::PreFilterResponse MergePreFilter(const std::vector<std::string>& profile,
                                          std::vector<v1beta1::PreFilterResponse> answers);

// Each answer covers the same list of `num_nodes`, all of it unless a plugin failed. The search
// ends at the first feasible node beyond `num_to_find`, or with a failure that no earlier plugin's
// rejection hides. If a rejection hides it, `more(host, i)` evaluates the nodes from the i-th on
// again.
using MoreVerdicts =
    absl::FunctionRef<absl::StatusOr<v1beta1::FilterResponse>(size_t host, uint32_t i)>;
absl::StatusOr<v1beta1::FilterResponse> MergeFilter(const std::vector<std::string>& profile,
                                                    std::vector<v1beta1::FilterResponse> answers,
                                                    uint32_t num_nodes, uint32_t num_to_find,
                                                    MoreVerdicts more);

// The failure of the first plugin in the profile, or the plugins that skipped.
v1beta1::PreScoreResponse MergePreScore(const std::vector<std::string>& profile,
                                        const std::vector<v1beta1::PreScoreResponse>& answers);

// The failure of the first plugin in the profile, or all scores in the profile's order.
v1beta1::ScoreResponse MergeScore(const std::vector<WeightedPlugin>& profile,
                                  std::vector<v1beta1::ScoreResponse> answers);

}  // namespace outboard::framework

#endif  // OUTBOARD_SHIM_FRAMEWORK_MULTI_HOST_MERGE_ANSWERS_H_
