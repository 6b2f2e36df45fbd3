// A scheduler with its plugin hosts and the cluster around it, on virtual time.
#ifndef OUTBOARD_SHIM_SIMULATE_STAGE_H_
#define OUTBOARD_SHIM_SIMULATE_STAGE_H_

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "shim/config/config.h"
#include "shim/cycle/scheduler.h"
#include "shim/hosts/host_loop.h"
#include "shim/hosts/host_set.h"
#include "shim/simulate/simulation.h"
#include "shim/simulate/world.h"

namespace outboard::simulate {

// Options of a scheduler in a simulation: no pod fails because this machine is busy.
cycle::SchedulerOptions SimulatedOptions(const config::Config& config);

// Lets the simulation turn the wheels; it does nothing of its own accord.
//
// Threading: one thread. Lifetime: `observer` outlives it.
class Stage {
 public:
  // `effects`: who carries out what the scheduler orders, in place of `world()`; it outlives this.
  Stage(const config::Config& config, const cycle::SchedulerOptions& options,
        const std::vector<kube::ClusterObjectPtr>& objects, cycle::Observer* observer,
        absl::Time now, cycle::Effects* effects = nullptr);
  ~Stage();
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  // Shows the scheduler the scene but for pending pods, and brings the hosts at `addresses` into
  // use. Errors: UNAVAILABLE if a host cannot be reached; INVALID_ARGUMENT if the configuration
  // does not suit it.
  absl::Status Open(const Scene& scene, const std::vector<std::string>& addresses, absl::Time now);

  // Tells the hosts the time, and waits until all that they make of what has happened before has
  // come; the scheduler's Tick takes it in. Errors: UNAVAILABLE.
  absl::Status HearHosts(absl::Time now);

  cycle::Scheduler& scheduler() { return scheduler_; }
  World& world() { return world_; }
  hosts::HostLoop& loop() { return loop_; }
  hosts::HostSet& hosts() { return *hosts_; }
  // A host was lost on the way; nothing after that counts.
  bool host_lost() const { return host_lost_; }
  bool HandlesScheduler(const std::string& name) const { return scheduler_names_.contains(name); }

 private:
  absl::Status Connect(const std::vector<config::HostSpec>& specs, absl::Time now);

  const config::Config config_;
  hosts::HostLoop loop_;
  World world_;
  cycle::Scheduler scheduler_;
  std::set<std::string> scheduler_names_;
  std::unique_ptr<hosts::HostSet> hosts_;
  bool host_lost_ = false;
};

}  // namespace outboard::simulate

#endif  // OUTBOARD_SHIM_SIMULATE_STAGE_H_
