// `outboard simulate`: its command line.
#ifndef OUTBOARD_CLI_SIMULATE_COMMAND_H_
#define OUTBOARD_CLI_SIMULATE_COMMAND_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/simulate/trace/commands.h"

namespace outboard::simulate {

struct CommandLine {
  std::vector<std::string> cluster_files;
  std::vector<std::string> pod_files;
  bool strict = false;                   // unknown fields in manifests are errors
  std::vector<std::string> trace_files;  // empty: place pods once; else replay jobs
  trace::TraceRun trace_run;
  std::string trace_flag;                   // the last flag that requires --trace; empty: none
  std::string pods_flag;                    // the last flag that requires --pods; empty: none
  std::string config_file;                  // empty: defaults
  std::vector<std::string> host_addresses;  // empty: start one
  std::string host_binary;                  // empty: beside this program, else on PATH
  std::string scheduler_name;               // of all pods; empty: each pod's own
  bool until_settled = false;
  std::string explain;                  // only the story of this pod; empty: of none
  std::string diff_config;              // compare with this configuration; empty: the same one
  std::vector<std::string> diff_hosts;  // compare with these hosts; empty: the same ones
  bool json = false;
  bool verbose = false;  // else only errors are logged
  int verbosity = 0;
  bool help = false;
  bool help_trace = false;   // the help on the format of traces
  bool help_output = false;  // the help on the fields of the JSON

  bool compares() const { return !diff_config.empty() || !diff_hosts.empty(); }
};

extern const char kSimulateHelp[];
extern const char kOutputHelp[];

config::FlagTable SimulateFlags(CommandLine* line);

// Errors: INVALID_ARGUMENT naming the flag.
absl::StatusOr<CommandLine> ParseCommandLine(const std::vector<std::string>& arguments);

// Runs the command. Returns the exit code: 0 simulated, with any result for the pods; 1 the
// simulation failed; 2 invalid usage or input. When it compares: 0 no pod differs; 1 pods differ; 2
// a simulation failed, or invalid usage or input.
int RunSimulate(const std::vector<std::string>& arguments);

}  // namespace outboard::simulate

#endif  // OUTBOARD_CLI_SIMULATE_COMMAND_H_
