// `outboard explain node`: what plugins know of nodes in manifests, or of a node of a cluster. A
// plugin host answers, because only hosts interpret labels.
#ifndef OUTBOARD_CLI_INSPECT_EXPLAIN_NODE_H_
#define OUTBOARD_CLI_INSPECT_EXPLAIN_NODE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cli/inspect/cluster_node.h"

namespace outboard::inspect {

struct ExplainNodeLine {
  std::string name;                // empty: all nodes of the files
  std::vector<std::string> files;  // as of --cluster of simulate; `-`: standard input
  std::string price_list;          // a file; empty: none
  ClusterFlags cluster;            // without files
  std::string host_binary;         // empty: outboard-host beside this program, else on PATH
  bool json = false;
};

// Errors: INVALID_ARGUMENT for mistakes in the files; NOT_FOUND without such a node; those of the
// API server and of the host. Warnings go to standard error.
absl::StatusOr<std::string> ExplainNode(const ExplainNodeLine& line);

// The host's answer as a table. Errors: INTERNAL if it is something else.
absl::StatusOr<std::string> NodeFactsTable(absl::string_view answer);

}  // namespace outboard::inspect

#endif  // OUTBOARD_CLI_INSPECT_EXPLAIN_NODE_H_
