// A storm on the real queue, cycle and host process, on virtual time.
#ifndef OUTBOARD_SHIM_SIMULATE_STORMS_PLAY_H_
#define OUTBOARD_SHIM_SIMULATE_STORMS_PLAY_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "shim/config/config.h"
#include "shim/simulate/storms/plan.h"

namespace outboard::simulate::storms {

struct Outcome {
  // What must not be; empty: all went well. With what happened to the gangs concerned.
  std::vector<std::string> complaints;
  // Gangs that would never be placed, however long one waits.
  std::vector<std::string> left;
  std::vector<std::string> story;
  // Of how it went.
  int64_t placed = 0;  // gangs that had their number at some time
  // When they had it first, from the storm's beginning.
  std::map<std::string, absl::Duration> placed_after;
  int64_t removed = 0;  // gangs that were deleted before
  int64_t binds = 0;
  int64_t failed_binds = 0;
  int64_t attempts = 0;
  int64_t switches = 0;  // other host processes that came to serve
  absl::Duration took;   // virtual
};

// A profile named `storm` on one host, `main`, with these plugins beside kube-scheduler's, and no
// preemption. `queue_sort`: in place of PrioritySort; may be empty.
absl::StatusOr<config::Config> StormConfig(const std::string& queue_sort);

// Plays the storm to its end. Errors: a host process could not be started, or does not answer.
absl::StatusOr<Outcome> Play(const Storm& storm, const config::Config& config,
                             const std::string& host_binary);

}  // namespace outboard::simulate::storms

#endif  // OUTBOARD_SHIM_SIMULATE_STORMS_PLAY_H_
