// `outboard explain`: asks a running shim why a pod has its node, or none; or a plugin host what is
// known of a node.
#ifndef OUTBOARD_CLI_INSPECT_EXPLAIN_COMMAND_H_
#define OUTBOARD_CLI_INSPECT_EXPLAIN_COMMAND_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/inspect/cluster_node.h"
#include "shim/config/flag_table.h"
#include "shim/http/client.h"

namespace outboard::inspect {

struct ExplainLine {
  std::string pod;  // namespace/name
  http::ShimAddress shim;
  std::string node;                // empty: all nodes
  bool of_node = false;            // `explain node`, which reads files or the API server
  std::vector<std::string> files;  // only of a node
  std::string price_list;          // only of a node; empty: none
  ClusterFlags cluster;            // only of a node
  std::string host_binary;         // only of a node; empty: the default
  bool json = false;
  bool help = false;
};

extern const char kExplainHelp[];

config::FlagTable ExplainFlags(ExplainLine* line);

// Errors: INVALID_ARGUMENT naming the wrong argument.
absl::StatusOr<ExplainLine> ParseExplain(const std::vector<std::string>& arguments);

// Returns the exit code: 0 shown; 1 no attempt at the pod is on record, the node does not exist, or
// the shim, the host or the API server cannot be asked; 2 invalid usage.
int RunExplain(const std::vector<std::string>& arguments);

}  // namespace outboard::inspect

#endif  // OUTBOARD_CLI_INSPECT_EXPLAIN_COMMAND_H_
