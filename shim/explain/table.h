// Turns what the shim answers at /explain into text for people.
#ifndef OUTBOARD_SHIM_EXPLAIN_TABLE_H_
#define OUTBOARD_SHIM_EXPLAIN_TABLE_H_

#include <string>

#include "absl/status/statusor.h"

namespace outboard::explain {

// `json` as AttemptLog::Explain gives it; `node` limits it to one node, empty: all. Pure.
// Errors: INTERNAL if it is not such JSON; NOT_FOUND if no attempt knows the node.
absl::StatusOr<std::string> ToTable(const std::string& json, const std::string& node);
// The JSON with nothing but this node in `filter` and `scores`; as it is if `node` is empty.
absl::StatusOr<std::string> OnlyNode(const std::string& json, const std::string& node);

}  // namespace outboard::explain

#endif  // OUTBOARD_SHIM_EXPLAIN_TABLE_H_
