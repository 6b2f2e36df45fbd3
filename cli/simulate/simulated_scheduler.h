// A scheduler with its plugin hosts and the cluster around it, on virtual time.
#ifndef OUTBOARD_CLI_SIMULATE_SIMULATED_SCHEDULER_H_
#define OUTBOARD_CLI_SIMULATE_SIMULATED_SCHEDULER_H_

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "cli/simulate/simulated_cluster.h"
#include "cli/simulate/simulation.h"
#include "shim/config/config.h"
#include "shim/hosts/host_loop.h"
#include "shim/hosts/host_registry.h"
#include "shim/scheduler/scheduler.h"

namespace outboard::simulate {

// Scheduler options for a simulation: a busy machine must not fail a pod.
scheduler::SchedulerOptions SimulatedOptions(const config::Config& config);

// Acts only when the simulation calls it.
//
// Threading: one thread.
// Lifetime: `observer` must outlive it.
class SimulatedScheduler {
 public:
  // `effects`: executes the scheduler's orders instead of `world()`. Must outlive this object.
  SimulatedScheduler(const config::Config& config, const scheduler::SchedulerOptions& options,
                     const std::vector<kube::ClusterObjectPtr>& objects,
                     scheduler::Observer* observer, absl::Time now,
                     scheduler::ClusterActions* effects = nullptr);
  ~SimulatedScheduler();
  SimulatedScheduler(const SimulatedScheduler&) = delete;
  SimulatedScheduler& operator=(const SimulatedScheduler&) = delete;

  // Gives the scheduler the input except pending pods, and connects the hosts at `addresses`.
  // Errors: UNAVAILABLE if a host cannot be reached; INVALID_ARGUMENT if it rejects the
  // configuration.
  absl::Status Open(const SimulationInput& scene, const std::vector<std::string>& addresses,
                    absl::Time now);

  // Sends the time to the hosts, and waits for everything that they push in response to earlier
  // events. The scheduler's Tick applies it.
  // Errors: UNAVAILABLE.
  absl::Status PollHosts(absl::Time now);

  scheduler::Scheduler& scheduler() { return scheduler_; }
  SimulatedCluster& world() { return world_; }
  hosts::HostLoop& loop() { return loop_; }
  hosts::HostRegistry& hosts() { return *hosts_; }
  // A host was lost; later results are invalid.
  bool host_lost() const { return host_lost_; }
  bool HandlesScheduler(const std::string& name) const { return scheduler_names_.contains(name); }

 private:
  absl::Status Connect(const std::vector<config::HostSpec>& specs, absl::Time now);

  const config::Config config_;
  hosts::HostLoop loop_;
  SimulatedCluster world_;
  scheduler::Scheduler scheduler_;
  std::set<std::string> scheduler_names_;
  std::unique_ptr<hosts::HostRegistry> hosts_;
  bool host_lost_ = false;
};

}  // namespace outboard::simulate

#endif  // OUTBOARD_CLI_SIMULATE_SIMULATED_SCHEDULER_H_
