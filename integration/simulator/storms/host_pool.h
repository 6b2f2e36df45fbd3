// The processes of one host: they start, take over from one another, and are killed.
#ifndef OUTBOARD_INTEGRATION_SIMULATOR_STORMS_HOST_POOL_H_
#define OUTBOARD_INTEGRATION_SIMULATOR_STORMS_HOST_POOL_H_

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "cli/simulate/host_process.h"
#include "shim/hosts/host_loop.h"
#include "shim/hosts/host_registry.h"
#include "shim/scheduler/scheduler.h"

namespace outboard::simulate::storms {

// Threading: one thread.
// Lifetime: loop and scheduler must outlive it.
class HostPool {
 public:
  static constexpr char kHost[] = "main";
  // Timeout for a process's answer, on the machine's clock.
  static constexpr absl::Duration kAnswerTimeout = absl::Seconds(10);

  HostPool(std::shared_ptr<const config::Config> config, std::string binary, hosts::HostLoop* loop,
           scheduler::Scheduler* scheduler);
  ~HostPool();

  // Starts another process, which serves when this returns. Errors: the process cannot be started,
  // or does not answer.
  absl::Status Start(absl::Time now);
  // Kills the serving process; false if there is none. Another one takes over if it exists.
  bool Kill();
  // Returns to the previous process; false if there is none.
  bool SwapBack(absl::Time now);
  // Sends the time to the hosts and processes their messages. Errors: a host does not answer.
  absl::Status Poll(absl::Time now);
  bool Serves() const { return !ServingAddress().empty(); }
  hosts::HostRegistry& hosts() { return hosts_; }

 private:
  std::string ServingAddress() const;
  std::string Describe() const;

  const std::string binary_;
  hosts::HostLoop* const loop_;
  scheduler::Scheduler* const scheduler_;
  std::map<std::string, std::unique_ptr<HostProcess>> processes_;  // by address
  hosts::HostRegistry hosts_;
  std::vector<std::string> retired_;
};

}  // namespace outboard::simulate::storms

#endif  // OUTBOARD_INTEGRATION_SIMULATOR_STORMS_HOST_POOL_H_
