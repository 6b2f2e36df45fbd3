// Strategic merge patches as an API server applies them, for the patches that plugins write.
#ifndef OUTBOARD_CLI_SIMULATE_STRATEGIC_MERGE_H_
#define OUTBOARD_CLI_SIMULATE_STRATEGIC_MERGE_H_

#include <nlohmann/json.hpp>

namespace outboard::simulate {

// Merges `patch` into `object`. Members merge; null removes a member. Lists:
// - finalizers: the union;
// - lists whose elements in the patch all have a uid (reservedFor, ownerReferences) merge by uid;
// `$patch: delete` removes an element;
// - others are replaced.
// `$deleteFromPrimitiveList/NAME` works as in Kubernetes. `$setElementOrder/NAME` has no effect.
//
// Threading: pure.
void StrategicMerge(const nlohmann::json& patch, nlohmann::json* object);

}  // namespace outboard::simulate

#endif  // OUTBOARD_CLI_SIMULATE_STRATEGIC_MERGE_H_
