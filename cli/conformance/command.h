// `outboard conformance`.
#ifndef OUTBOARD_CLI_CONFORMANCE_COMMAND_H_
#define OUTBOARD_CLI_CONFORMANCE_COMMAND_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/conformance/kit.h"
#include "shim/config/flag_table.h"

namespace outboard::conformance {

struct CommandLine {
  Options options;
  config::HostTls tls;
  std::string junit;  // a file; empty: none
  int minutes = 10;
  bool list = false;
  bool args_before_plugin = false;
  bool help = false;
};

extern const char kConformanceHelp[];

config::FlagTable ConformanceFlags(CommandLine* line);

// Errors: INVALID_ARGUMENT naming the flag.
absl::StatusOr<CommandLine> ParseCommandLine(const std::vector<std::string>& arguments);

// Runs the command. Returns the exit code: 0 no case failed; 1 a case failed; 2 invalid usage, or
// the host cannot be reached or configured.
int RunConformance(const std::vector<std::string>& arguments);

}  // namespace outboard::conformance

#endif  // OUTBOARD_CLI_CONFORMANCE_COMMAND_H_
