// The processes of one host: they come, take over from one another, and are killed.
#ifndef OUTBOARD_SHIM_SIMULATE_STORMS_HOST_POOL_H_
#define OUTBOARD_SHIM_SIMULATE_STORMS_HOST_POOL_H_

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "shim/cycle/scheduler.h"
#include "shim/hosts/host_loop.h"
#include "shim/hosts/host_set.h"
#include "shim/simulate/host_process.h"

namespace outboard::simulate::storms {

// Threading: one thread. Lifetime: loop and scheduler outlive it.
class HostPool {
 public:
  static constexpr char kHost[] = "main";
  // How long a process may take to answer, on the machine's clock.
  static constexpr absl::Duration kAnswerTimeout = absl::Seconds(10);

  HostPool(std::shared_ptr<const config::Config> config, std::string binary, hosts::HostLoop* loop,
           cycle::Scheduler* scheduler);
  ~HostPool();

  // Another process, which serves when this returns. Errors: it cannot be started, or does not
  // answer.
  absl::Status Start(absl::Time now);
  // Kills the one that serves; false if none does. Another takes over if one is there still.
  bool Kill();
  // The one before takes over again; false if there is none.
  bool SwapBack(absl::Time now);
  // Hosts are told the time, and heard out. Errors: one does not answer.
  absl::Status Hear(absl::Time now);
  bool Serves() const { return !ServingAddress().empty(); }
  hosts::HostSet& hosts() { return hosts_; }

 private:
  std::string ServingAddress() const;
  std::string Describe() const;

  const std::string binary_;
  hosts::HostLoop* const loop_;
  cycle::Scheduler* const scheduler_;
  std::map<std::string, std::unique_ptr<HostProcess>> processes_;  // by address
  hosts::HostSet hosts_;
  std::vector<std::string> retired_;
};

}  // namespace outboard::simulate::storms

#endif  // OUTBOARD_SHIM_SIMULATE_STORMS_HOST_POOL_H_
