// The state that the parts of the scheduler share.
#ifndef OUTBOARD_SHIM_SCHEDULER_SCHEDULER_STATE_H_
#define OUTBOARD_SHIM_SCHEDULER_SCHEDULER_STATE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/time/time.h"
#include "shim/cache/cluster_state.h"
#include "shim/framework/breaker.h"
#include "shim/framework/host_client.h"
#include "shim/framework/profile_plan.h"
#include "shim/framework/shadow_observer.h"
#include "shim/kube/objects.h"
#include "shim/queue/scheduling_queue.h"
#include "shim/scheduler/attempt.h"
#include "shim/scheduler/cluster_actions.h"
#include "shim/scheduler/push_results.h"
#include "shim/scheduler/queueing_hints.h"
#include "shim/scheduler/scheduler_options.h"

namespace outboard::scheduler {

// What the scheduler knows of one plugin host. The comments name the writer of each group;
// Scheduler::SetHost resets them when another instance takes the name's place.
// Lifetime: the client outlives its place here.
struct HostRecord {
  // Scheduler::SetHost.
  framework::HostClient* client = nullptr;
  cache::ClusterState::Cursor cursor = 0;
  uint64_t instances = 0;  // how many have had this place

  // HostCalls. `unavailable_since`: since then the host cannot be called.
  absl::Time unavailable_since = absl::InfinitePast();
  bool wants_new_session = false;  // the connection needs a new handshake
  framework::Breaker breaker;
  absl::Time clock_advanced_to = absl::InfinitePast();
  absl::Time changes_sent = absl::InfinitePast();  // last

  // QueueingHints. The host evaluates queueing hints: for the events from this number on.
  bool evaluates_hints = false;
  uint64_t knows_events_from = 0;
  QueueingHintBuffer hints;
  bool hints_lost = false;  // it missed an event, or forgot which pods wait

  // Scheduler and ObjectWrites add to it, HostCalls sends it.
  PushResultBuffer push_results;

  // ObjectWrites. The version that the host's cache had before the next pushes, and the first
  // version that contains everything listed at the start.
  int64_t pushes_from = 0;
  std::optional<int64_t> caches_synced;
  bool writes_objects = false;

  // QueueCalls. Uids of pods whose sort key from this host is missing or outdated, and the time of
  // the last retry.
  absl::flat_hash_set<std::string> missing_sort_keys;
  absl::Time sort_keys_asked = absl::InfinitePast();

  // Scheduler::Tick: the last retry of pods that are parked although the host is here.
  absl::Time parked_pods_checked = absl::InfinitePast();
  bool sent_unknown_push = false;  // it is in the log

  // The host is not called until it answers a probe.
  bool held_back() const { return breaker.open(); }
  bool is_here() const { return client != nullptr && client->usable() && !held_back(); }
};

// Owned by Scheduler; every part has a pointer to it. Writers:
// - options, profile_names, plans, shadow_observer, leader_epoch: Scheduler
// - hosts: see HostRecord
// - cluster: ClusterEventHandler what informers report; SchedulingCycle, AttemptFailures,
//   PermitWaits and PreemptionTracker assumed pods, waits and nominations; HostCalls cursors
// - queue: all parts
// - attempts: SchedulingCycle adds; PermitWaits and BindingCycle take
//
// Threading: the scheduling thread.
// Lifetime: actions, observers, gate and delegate outlive it.
struct SchedulerState {
  SchedulerState(const SchedulerOptions& its_options, const queue::QueueOptions& queue_options,
                 ClusterActions* its_actions, Observer* its_observer, queue::PreEnqueueGate* gate,
                 queue::QueueingHintDelegate* delegate, queue::QueueObserver* queue_observer,
                 absl::Time now)
      : options(its_options),
        actions(its_actions),
        observer(its_observer),
        queue(queue_options, now, gate, delegate, queue_observer) {}
  SchedulerState(const SchedulerState&) = delete;
  SchedulerState& operator=(const SchedulerState&) = delete;

  // Whether the shim places the pod. The extender's pods name a profile too, but another scheduler
  // places them: the queue never takes them.
  bool Places(const kube::PodObject& object) const {
    return !object.externally_scheduled && profile_names.contains(object.pod.scheduler_name());
  }
  // Null: the pod's profile has no plan.
  const framework::ProfilePlan* PlanOf(const kube::PodObject& object) const {
    return plans.For(object.pod.scheduler_name(), object.pod, cluster.device_class_resources());
  }
  // Whether the host serves the plugin in the profile of the pod.
  bool Serves(const std::string& host, const std::string& plugin,
              const kube::PodObject& object) const {
    const framework::ProfilePlan* const plan = plans.Find(object.pod.scheduler_name());
    return plan != nullptr && plan->Serves(host, plugin);
  }
  // The same in any profile.
  bool Serves(const std::string& host, const std::string& plugin) const {
    return absl::c_any_of(plans.all(),
                          [&](const auto& profile) { return profile.second.Serves(host, plugin); });
  }
  // Whether the pod exists, whatever its place.
  bool IsKnown(const std::string& pod_uid) const { return cluster.FindPod(pod_uid) != nullptr; }
  // `points`: plugins, or extension points of hosts.
  template <typename Points>
  bool IsInterested(const Points& points, const v1beta1::Pod& pod) const {
    return framework::AnyInterestedIn(points, pod, cluster.device_class_resources());
  }
  uint64_t NewAttemptId() { return ++last_attempt_id; }

  SchedulerOptions options;
  ClusterActions* const actions;
  Observer* const observer;
  framework::ShadowObserver* shadow_observer = nullptr;  // null: none
  cache::ClusterState cluster;
  queue::SchedulingQueue queue;
  std::unique_ptr<AttemptSkipper> skipper;  // null: every attempt is made
  std::set<std::string> profile_names;
  framework::ProfilePlanMap plans;
  std::map<std::string, HostRecord> hosts;
  AttemptTable attempts;
  uint64_t last_attempt_id = 0;
  std::function<int64_t()> leader_epoch;  // null: without leader election
};

}  // namespace outboard::scheduler

#endif  // OUTBOARD_SHIM_SCHEDULER_SCHEDULER_STATE_H_
