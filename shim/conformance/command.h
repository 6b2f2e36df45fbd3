// `outboard conformance`.
#ifndef OUTBOARD_SHIM_CONFORMANCE_COMMAND_H_
#define OUTBOARD_SHIM_CONFORMANCE_COMMAND_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "shim/conformance/kit.h"

namespace outboard::conformance {

struct CommandLine {
  Options options;
  std::string junit;  // a file; empty: none
  bool list = false;
  bool help = false;
};
// Errors: INVALID_ARGUMENT, saying what is wrong.
absl::StatusOr<CommandLine> ParseCommandLine(const std::vector<std::string>& arguments);

// Runs the command; returns the exit code: 0 all cases passed, 1 one failed, 2 wrong usage or an
// unreachable host.
int RunConformance(const std::vector<std::string>& arguments);

}  // namespace outboard::conformance

#endif  // OUTBOARD_SHIM_CONFORMANCE_COMMAND_H_
