// `outboard explain`: asks a running shim why a pod went where it went.
#ifndef OUTBOARD_SHIM_EXPLAIN_COMMAND_H_
#define OUTBOARD_SHIM_EXPLAIN_COMMAND_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "shim/http/client.h"

namespace outboard::explain {

struct CommandLine {
  std::string pod;  // namespace/name
  http::ShimAddress shim;
  std::string node;  // empty: all nodes
  bool json = false;
  bool help = false;
};

extern const char kExplainHelp[];

// Errors: INVALID_ARGUMENT naming what is wrong.
absl::StatusOr<CommandLine> ParseExplain(std::vector<std::string> arguments);

// The exit code: 0 explained; 1 nothing is known of the pod, or the shim cannot be reached; 2 wrong
// usage.
int RunExplain(const std::vector<std::string>& arguments);

}  // namespace outboard::explain

#endif  // OUTBOARD_SHIM_EXPLAIN_COMMAND_H_
