// Formats the shim's JSON at /explain as a table.
#ifndef OUTBOARD_CLI_INSPECT_EXPLAIN_TABLE_H_
#define OUTBOARD_CLI_INSPECT_EXPLAIN_TABLE_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"

namespace outboard::inspect {

// `json` is the result of AttemptLog::Explain. `node` limits the table to one node; empty: all
// nodes. Names at most `names_shown` of the nodes with the same reason. Pure.
// Errors: INTERNAL for JSON of another form; NOT_FOUND if no attempt knows the node.
absl::StatusOr<std::string> ExplainTable(const std::string& json, const std::string& node,
                                         size_t names_shown = 3);
// The JSON with only this node in `filter` and `scores`; unchanged if `node` is empty.
absl::StatusOr<std::string> OnlyNode(const std::string& json, const std::string& node);

}  // namespace outboard::inspect

#endif  // OUTBOARD_CLI_INSPECT_EXPLAIN_TABLE_H_
