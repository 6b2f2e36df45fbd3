// Schedules a replay's pods with the real queue, cycle and plugin hosts.
#ifndef OUTBOARD_CLI_SIMULATE_TRACE_SCHEDULER_CLUSTER_H_
#define OUTBOARD_CLI_SIMULATE_TRACE_SCHEDULER_CLUSTER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "cli/simulate/simulated_scheduler.h"
#include "cli/simulate/simulation.h"
#include "cli/simulate/trace/replay.h"
#include "shim/config/config.h"

namespace outboard::simulate::trace {

// Decisions take no time. After two failed attempts at one pod at one instant, the rest is left for
// a later instant. Otherwise two pods could retry each other for ever: a queue without other pods
// retries pods in backoff at once.
//
// Before decisions at an instant, and until nothing changes, it sends the time to the hosts and
// waits for what they push. Pushes are applied at fixed points, so the same trace gives the same
// results at any speed.
class SchedulerCluster final : public Cluster, private scheduler::Observer {
 public:
  // `equivalence_cache`: skips attempts that must fail; see EquivalenceCache.
  SchedulerCluster(const config::Config& config, const SimulationInput& scene, absl::Time begin,
                   bool equivalence_cache = false);

  // Errors: as SimulatedScheduler::Open.
  absl::Status Open(const SimulationInput& scene, const std::vector<std::string>& addresses,
                    absl::Time begin) {
    return stage_.Open(scene, addresses, begin);
  }
  bool HandlesScheduler(const std::string& name) const { return stage_.HandlesScheduler(name); }

  absl::Status Begin(absl::Time now) override;
  void Create(const kube::PodPtr& pod, absl::Time now) override;
  void Delete(const std::string& uid, absl::Time now) override;
  // Errors: UNAVAILABLE if a host is lost, returns an invalid answer, or does not acknowledge the
  // time: the result would depend on the machine.
  absl::Status Settle(absl::Time now, std::vector<News>* news) override;
  absl::Time NextWakeup(absl::Time now) override;

 private:
  void OnAttemptEnd(const kube::PodObject& pod, const std::string& profile,
                    scheduler::AttemptResult result, const std::string& node_name,
                    const std::string& message, absl::Duration since_attempt_began) override;
  void OnHostCallFailed(const std::string& host_instance, const absl::Status& status) override;
  void OnAttemptSkipped(const kube::PodObject& pod) override { NoteUnplaced(pod.uid()); }
  void NoteUnplaced(const std::string& uid);
  // Returns whether anything changed.
  bool ScheduleAll(absl::Time now);
  bool NoPodWaits();

  SimulatedScheduler stage_;
  std::vector<News> news_;
  absl::Time now_;
  absl::Time heard_at_ = absl::InfinitePast();  // at an instant, before a pod was created
  absl::Status failed_;                         // OK, or why the replay must end
  // By uid: the last failed attempt.
  absl::flat_hash_map<std::string, absl::Time> tried_;
  bool tried_again_ = false;
};

}  // namespace outboard::simulate::trace

#endif  // OUTBOARD_CLI_SIMULATE_TRACE_SCHEDULER_CLUSTER_H_
