// A storm on the real queue, cycle and host process, on virtual time.
#ifndef OUTBOARD_INTEGRATION_SIMULATOR_STORMS_PLAY_H_
#define OUTBOARD_INTEGRATION_SIMULATOR_STORMS_PLAY_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "integration/simulator/storms/plan.h"
#include "shim/config/config.h"

namespace outboard::simulate::storms {

struct Outcome {
  // Faults, with the history of the affected gangs; empty: none.
  std::vector<std::string> complaints;
  // Gangs that would never be placed.
  std::vector<std::string> left;
  std::vector<std::string> story;
  // Figures of the run.
  int64_t placed = 0;  // gangs that had `min` bound members at some time
  // The time until that, from the storm's start.
  std::map<std::string, absl::Duration> placed_after;
  int64_t removed = 0;  // gangs deleted before
  int64_t binds = 0;
  int64_t failed_binds = 0;
  int64_t attempts = 0;
  int64_t switches = 0;  // other host processes that began to serve
  absl::Duration took;   // virtual
};

// A profile named `storm` on one host, `main`, with these plugins beside kube-scheduler's, without
// preemption. `queue_sort`: instead of PrioritySort; may be empty.
absl::StatusOr<config::Config> StormConfig(const std::string& queue_sort);

// Plays the storm to its end. Errors: a host process cannot be started, or does not answer.
absl::StatusOr<Outcome> Play(const Storm& storm, const config::Config& config,
                             const std::string& host_binary);

}  // namespace outboard::simulate::storms

#endif  // OUTBOARD_INTEGRATION_SIMULATOR_STORMS_PLAY_H_
