// A plugin host as a child process, for a simulation.
#ifndef OUTBOARD_CLI_SIMULATE_HOST_PROCESS_H_
#define OUTBOARD_CLI_SIMULATE_HOST_PROCESS_H_

#include <sys/types.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace outboard::simulate {

// Starts `outboard-host` on a socket in a temporary folder. The child also ends when this process
// dies for any reason.
//
// Threading: one thread.
// Lifetime: the destructor ends the process and removes the folder.
// Errors: NOT_FOUND without the binary, INTERNAL if it cannot be started.
class HostProcess {
 public:
  // `binary` empty: `outboard-host` beside this program, else on PATH. Its log goes to this
  // process's standard error, at glog's `verbosity`. 0 as `min_severity`: as in this process's
  // environment; else from this severity on.
  static absl::StatusOr<std::unique_ptr<HostProcess>> Start(std::string binary, int verbosity,
                                                            int min_severity = 0);
  ~HostProcess();
  HostProcess(const HostProcess&) = delete;
  HostProcess& operator=(const HostProcess&) = delete;

  // `unix:PATH`
  const std::string& address() const { return address_; }
  // Of the child.
  pid_t pid() const { return pid_; }
  // OK while the child runs; otherwise how it ended.
  absl::Status CheckAlive();

 private:
  HostProcess(pid_t pid, std::string named, std::string folder, std::string address)
      : pid_(pid),
        named_(std::move(named)),
        folder_(std::move(folder)),
        address_(std::move(address)) {}

  pid_t pid_;                // -1: has ended
  const std::string named_;  // the binary, if the user names one
  const std::string folder_;
  const std::string address_;
};

}  // namespace outboard::simulate

#endif  // OUTBOARD_CLI_SIMULATE_HOST_PROCESS_H_
