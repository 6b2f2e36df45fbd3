// `outboard simulate --trace` and `outboard generate-workload`.
#ifndef OUTBOARD_CLI_SIMULATE_TRACE_COMMANDS_H_
#define OUTBOARD_CLI_SIMULATE_TRACE_COMMANDS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/simulate/simulation.h"
#include "cli/simulate/trace/replay.h"
#include "cli/simulate/trace/report.h"
#include "cli/simulate/trace/trace.h"
#include "cli/simulate/trace/workload.h"
#include "shim/config/config.h"
#include "shim/config/flag_table.h"

namespace outboard::simulate::trace {

struct TraceRun {
  ReplayOptions replay;
  Window window;
  bool json = false;
  // Skips attempts that cannot place their pods; see scheduler::EquivalenceCache.
  bool equivalence_cache = false;
};

// Replays the trace on the cluster of `scene` with the plugin hosts at `addresses`. Returns the
// text to print. Errors: INVALID_ARGUMENT for a scene with pending pods, or a job with an unknown
// scheduler; otherwise as SimulatedScheduler::Open and SchedulerCluster::Settle.
absl::StatusOr<std::string> RunTrace(const Trace& trace, const SimulationInput& scene,
                                     const config::Config& config,
                                     const std::vector<std::string>& addresses,
                                     const TraceRun& run);

struct GenerateLine {
  WorkloadOptions options;
  std::string cluster_file, trace_file;
  bool help = false;
};

extern const char kGenerateHelp[];

config::FlagTable GenerateFlags(GenerateLine* line);

// Returns the exit code: 0 written; 1 a file cannot be written; 2 invalid usage.
int RunGenerateWorkload(const std::vector<std::string>& arguments);

}  // namespace outboard::simulate::trace

#endif  // OUTBOARD_CLI_SIMULATE_TRACE_COMMANDS_H_
