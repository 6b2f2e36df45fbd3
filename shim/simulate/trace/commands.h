// `outboard simulate --trace` and `outboard generate-workload`.
#ifndef OUTBOARD_SHIM_SIMULATE_TRACE_COMMANDS_H_
#define OUTBOARD_SHIM_SIMULATE_TRACE_COMMANDS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "shim/config/config.h"
#include "shim/simulate/simulation.h"
#include "shim/simulate/trace/replay.h"
#include "shim/simulate/trace/report.h"
#include "shim/simulate/trace/trace.h"

namespace outboard::simulate::trace {

struct TraceRun {
  ReplayOptions replay;
  Window window;
  bool json = false;
  // Attempts that cannot place their pods are not made, see cycle::VainAttempts.
  bool spare_attempts = false;
};

// Plays the trace on the scene's cluster with the plugin hosts at `addresses`; what there is to
// print. Errors: INVALID_ARGUMENT for a scene with pods that have no node yet, or a job whose
// scheduler no profile is; else as Stage::Open and SchedulerCluster::Settle.
absl::StatusOr<std::string> RunTrace(const Trace& trace, const Scene& scene,
                                     const config::Config& config,
                                     const std::vector<std::string>& addresses,
                                     const TraceRun& run);

// Exit code: 0 written, 1 it could not be, 2 wrong usage.
int RunGenerateWorkload(const std::vector<std::string>& arguments);

}  // namespace outboard::simulate::trace

#endif  // OUTBOARD_SHIM_SIMULATE_TRACE_COMMANDS_H_
