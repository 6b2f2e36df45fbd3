// Runs a program, with limits for its time and its output.
#ifndef OUTBOARD_NODE_PROBE_COMMAND_RUNNER_H_
#define OUTBOARD_NODE_PROBE_COMMAND_RUNNER_H_

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "shim/kube/cancel_token.h"

namespace outboard::node_probe {

struct CommandLimits {
  absl::Duration timeout = absl::Seconds(30);
  size_t max_output = size_t{1} << 20;  // bytes
};

// A driver that hangs keeps nvidia-smi in the kernel, where no signal ends it. Run then returns
// nevertheless, and starts no further process until that one has ended.
//
// Threading: thread-compatible.
// Lifetime: the destructor does not wait for a process that no signal ends.
class CommandRunner {
 public:
  explicit CommandRunner(CommandLimits limits) : limits_(limits) {}
  CommandRunner(const CommandRunner&) = delete;
  CommandRunner& operator=(const CommandRunner&) = delete;

  // Runs a program (searched in PATH), and returns its standard output when it has ended with
  // status 0. Otherwise ends it and the processes that it started.
  //
  // Errors: the message begins with the command line.
  // - NOT_FOUND: no such program
  // - FAILED_PRECONDITION: another exit status, with the last line of its output
  // - RESOURCE_EXHAUSTED: more output than allowed
  // - DEADLINE_EXCEEDED: ran for too long, or an earlier one still has not ended
  // - CANCELLED
  absl::StatusOr<std::string> Run(const std::vector<std::string>& command,
                                  const kube::CancelToken& cancel);

 private:
  const CommandLimits limits_;
  pid_t unended_ = -1;  // an earlier process that SIGKILL has not ended
};

}  // namespace outboard::node_probe

#endif  // OUTBOARD_NODE_PROBE_COMMAND_RUNNER_H_
