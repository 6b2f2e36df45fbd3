// The scheduler: owns the scheduling loop's state, and hands each step to a part.
#ifndef OUTBOARD_SHIM_SCHEDULER_SCHEDULER_H_
#define OUTBOARD_SHIM_SCHEDULER_SCHEDULER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "shim/cache/cluster_state.h"
#include "shim/framework/algorithm.h"
#include "shim/framework/host_client.h"
#include "shim/framework/profile_plan.h"
#include "shim/framework/shadow_observer.h"
#include "shim/queue/scheduling_queue.h"
#include "shim/scheduler/attempt_failures.h"
#include "shim/scheduler/binding_cycle.h"
#include "shim/scheduler/cluster_actions.h"
#include "shim/scheduler/cluster_event_handler.h"
#include "shim/scheduler/host_calls.h"
#include "shim/scheduler/object_writes.h"
#include "shim/scheduler/parked_pods.h"
#include "shim/scheduler/permit_waits.h"
#include "shim/scheduler/preemption_tracker.h"
#include "shim/scheduler/push_results.h"
#include "shim/scheduler/queue_calls.h"
#include "shim/scheduler/queueing_hints.h"
#include "shim/scheduler/scheduler_options.h"
#include "shim/scheduler/scheduler_state.h"
#include "shim/scheduler/scheduling_cycle.h"

namespace outboard::scheduler {

// The parts that another source of placements shares with the scheduler.
struct SharedParts {
  SchedulerState* state = nullptr;
  HostCalls* host_calls = nullptr;
  QueueingHints* hints = nullptr;
  PermitWaits* waits = nullptr;
  BindingCycle* binding = nullptr;
  SchedulingCycle* cycle = nullptr;
};

// One scheduler for all profiles.
//
// Used as: SetProfileNames, SetPlan and SetHost; then report what happens to events(), and call
// ScheduleOne and Tick. It never sleeps and starts no thread: the process around it does, in real
// time, and the simulator in virtual time. Outcomes of orders go to the part that gave the order.
// Threading: thread-compatible; everything on the scheduling thread.
// Lifetime:  actions and observers outlive it; a host client lives until SetHost replaces it.
// Errors:    none to the caller. Every popped pod ends bound, queued again, parked for its host, or
//            gone.
class Scheduler final {
 public:
  // `queue_observer` may be null.
  Scheduler(const SchedulerOptions& options, queue::QueueOptions queue_options,
            ClusterActions* actions, Observer* observer, queue::QueueObserver* queue_observer,
            absl::Time now);
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // --- Configuration
  // The profiles whose pods are queued; known before any host is.
  void SetProfileNames(const std::vector<std::string>& names);
  // At run time: queues pods of new profiles, and forgets pods of removed ones.
  void ChangeProfileNames(const std::vector<std::string>& names, absl::Time now);
  void SetOptions(const SchedulerOptions& options) { state_.options = options; }
  // Adds or replaces the plan of a profile.
  void SetPlan(framework::ProfilePlan plan);
  // A usable host instance takes the name's place, or (null) the host is unavailable. The cursor's
  // log has the changes since the instance's snapshot.
  void SetHost(const std::string& name, framework::HostClient* client,
               cache::ClusterState::Cursor cursor, absl::Time now);
  // An instance of the host is being prepared, for the first time: pods that need it keep their
  // places for host_grace, as when a host is lost.
  void ExpectHost(const std::string& name, absl::Time now);
  // Receives the answers of cycles; null: no observer. It outlives the scheduler.
  void SetShadowObserver(framework::ShadowObserver* observer) { state_.shadow_observer = observer; }
  // The epoch of this process's leadership (LeaseElector::epoch), read before each call from
  // Reserve on; called on the scheduling thread. Unless set, calls carry none.
  void SetLeaderEpoch(std::function<int64_t()> epoch) { state_.leader_epoch = std::move(epoch); }
  // While paused, background writes are dropped, because hosts may lack objects that are not listed
  // yet.
  void PauseBackgroundWrites(bool paused) { object_writes_.Pause(paused); }

  // --- The loop
  // Takes the next pod through its scheduling cycle; false if there is none to take now.
  bool ScheduleOne(absl::Time now);
  // The heartbeat: waits that ended, messages that hosts pushed, queue flushes, retries.
  void Tick(absl::Time now);
  // When Tick or ScheduleOne has something to do next, as far as is known now.
  absl::Time NextWakeup(absl::Time now) const;
  // Informers report here.
  ClusterEventHandler* events() { return &events_; }

  // --- Virtual time
  // Sends hosts the time. Once HostClocksAdvanced, Tick knows all consequences of what happened
  // before; the caller runs the hosts' loop meanwhile. Hosts without a cache use the machine's
  // clock. `now` never decreases.
  void AdvanceHostClocks(absl::Time now) { host_calls_.AdvanceHostClocks(now); }
  bool HostClocksAdvanced() const { return host_calls_.HostClocksAdvanced(); }

  // --- For the owner of the hosts' connections
  cache::ClusterState* cluster() { return &state_.cluster; }
  // Whether a host's connection needs a new handshake.
  bool WantsNewSession(const std::string& host_name) const {
    return host_calls_.WantsNewSession(host_name);
  }
  // Whether the host is not called, because several of its answers were not usable, or it does not
  // answer probes.
  bool IsHeldBack(const std::string& host_name) const { return host_calls_.IsHeldBack(host_name); }
  // The host has not answered probes for this long.
  void OnProbesUnanswered(const std::string& host_name, absl::Duration silence, absl::Time now) {
    host_calls_.OnProbesUnanswered(host_name, silence, now);
  }
  // The host answered a probe: it may be called again.
  void OnProbeAnswered(const std::string& host_name, absl::Time now) {
    host_calls_.OnProbeAnswered(host_name, now);
  }

  // --- For other parts of the process
  // Whether the node has room for the pod, by all that is known now; checked before a bind is sent.
  absl::Status StillFits(const std::string& pod_uid, const std::string& node_name,
                         const std::string& profile) const {
    return binding_.StillFits(pod_uid, node_name, profile);
  }
  const queue::SchedulingQueue& queue() const { return state_.queue; }
  // Pods that have a node and are not bound yet.
  size_t attempts_in_flight() const { return state_.attempts.size(); }
  size_t waiting_pods() const { return waits_.size(); }
  // Valid as long as the scheduler.
  SharedParts shared_parts() {
    return {&state_, &host_calls_, &hints_, &waits_, &binding_, &cycle_};
  }

 private:
  // Hands each message that the host pushed to its part.
  void TakePushes(const std::string& name, bool counts_faults, HostRecord* host, absl::Time now);
  PushEnd TakePush(const std::string& name, HostRecord* host, const v1beta1::SyncResponse& push,
                   absl::Time now);
  // The host's plugins decide only about pods of profiles that they serve.
  PushEnd OnGateChanged(const std::string& name, const v1beta1::GateChanged& change,
                        absl::Time now);
  PushEnd OnSortKeysChanged(const std::string& name, const v1beta1::SortKeysChanged& change,
                            absl::Time now);
  PushEnd OnActivate(const std::string& name, const v1beta1::Activate& activate, absl::Time now);
  // Whether a profile has its hosts, or no host has been unavailable for longer than the grace.
  bool MayTakePods(absl::Time now) const;
  bool IsInAPlan(const std::string& host) const;

  // These two before the state, because its queue has pointers to them.
  QueueingHints hints_;
  QueueCalls queue_calls_;
  SchedulerState state_;
  ParkedPods parked_pods_;
  framework::Algorithm algorithm_;
  HostCalls host_calls_;
  AttemptFailures failures_;
  PermitWaits waits_;
  BindingCycle binding_;
  PreemptionTracker preemption_;
  SchedulingCycle cycle_;
  ObjectWrites object_writes_;
  ClusterEventHandler events_;
};

}  // namespace outboard::scheduler

#endif  // OUTBOARD_SHIM_SCHEDULER_SCHEDULER_H_
