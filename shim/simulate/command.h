// `outboard simulate`: the command line around a simulation.
#ifndef OUTBOARD_SHIM_SIMULATE_COMMAND_H_
#define OUTBOARD_SHIM_SIMULATE_COMMAND_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "shim/simulate/trace/commands.h"

namespace outboard::simulate {

enum class Output { kTable, kJson };

struct CommandLine {
  std::vector<std::string> cluster_files;
  std::vector<std::string> pod_files;
  std::vector<std::string> trace_files;  // empty: pods are placed once, else jobs come and go
  trace::TraceRun trace_run;
  std::string config_file;                  // empty: defaults
  std::vector<std::string> host_addresses;  // empty: start one
  std::string host_binary;                  // empty: beside this program, else on PATH
  Output output = Output::kTable;
  int verbosity = 0;
  bool help = false;
  bool help_trace = false;  // about the format of traces
};

extern const char kSimulateHelp[];

// Errors: INVALID_ARGUMENT naming the flag.
absl::StatusOr<CommandLine> ParseCommandLine(const std::vector<std::string>& arguments);

// Runs the command; the exit code: 0 whatever became of the pods, 1 if the simulation failed, 2 for
// wrong usage or input.
int RunSimulate(const std::vector<std::string>& arguments);

}  // namespace outboard::simulate

#endif  // OUTBOARD_SHIM_SIMULATE_COMMAND_H_
