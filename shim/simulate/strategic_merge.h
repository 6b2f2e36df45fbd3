// What an API server makes of a strategic merge patch, as far as plugins write them.
#ifndef OUTBOARD_SHIM_SIMULATE_STRATEGIC_MERGE_H_
#define OUTBOARD_SHIM_SIMULATE_STRATEGIC_MERGE_H_

#include <nlohmann/json.hpp>

namespace outboard::simulate {

// Merges `patch` into `object`. Members merge, null takes a member off. Of lists, finalizers are
// united, and those whose elements in the patch all have a uid (reservedFor, ownerReferences) merge
// by it, `$patch: delete` taking one off; others are replaced. `$deleteFromPrimitiveList/NAME` and
// `$setElementOrder/NAME` are understood as Kubernetes means them, the latter as saying nothing.
//
// Threading: pure.
void StrategicMerge(const nlohmann::json& patch, nlohmann::json* object);

}  // namespace outboard::simulate

#endif  // OUTBOARD_SHIM_SIMULATE_STRATEGIC_MERGE_H_
