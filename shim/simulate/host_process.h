// A plugin host as a child process, for a simulation.
#ifndef OUTBOARD_SHIM_SIMULATE_HOST_PROCESS_H_
#define OUTBOARD_SHIM_SIMULATE_HOST_PROCESS_H_

#include <sys/types.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace outboard::simulate {

// Starts `outboard-host` on a socket in a folder of its own and ends it, with the folder, when
// destroyed. The child also ends when this process dies, however that happens.
//
// Threading: one thread. Errors: NOT_FOUND without the binary, INTERNAL if it cannot be started.
class HostProcess {
 public:
  // `binary` empty: `outboard-host` beside this program, else on PATH. `verbosity` goes to its log,
  // which is this process's stderr.
  static absl::StatusOr<std::unique_ptr<HostProcess>> Start(std::string binary, int verbosity);
  ~HostProcess();
  HostProcess(const HostProcess&) = delete;
  HostProcess& operator=(const HostProcess&) = delete;

  // `unix:PATH`
  const std::string& address() const { return address_; }
  // Of the process that was started.
  pid_t pid() const { return pid_; }
  // OK while it runs; otherwise how it ended.
  absl::Status CheckAlive();

 private:
  HostProcess(pid_t pid, std::string folder, std::string address)
      : pid_(pid), folder_(std::move(folder)), address_(std::move(address)) {}

  pid_t pid_;  // -1: has ended and was waited for
  const std::string folder_;
  const std::string address_;
};

}  // namespace outboard::simulate

#endif  // OUTBOARD_SHIM_SIMULATE_HOST_PROCESS_H_
