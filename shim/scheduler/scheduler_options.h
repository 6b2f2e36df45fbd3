// The scheduler's options.
#ifndef OUTBOARD_SHIM_SCHEDULER_SCHEDULER_OPTIONS_H_
#define OUTBOARD_SHIM_SCHEDULER_SCHEDULER_OPTIONS_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "shim/cache/cluster_state.h"
#include "shim/framework/custom_resources.h"
#include "shim/queue/scheduling_queue.h"

namespace outboard::scheduler {

// Skips attempts that cannot succeed: a pod taken from the queue is rejected again without asking
// a host. Production has none; the simulator may set one (cli/simulate/trace/equivalence_cache.h).
//
// Threading: the scheduling thread.
class AttemptSkipper {
 public:
  // Whether the plugin reads a field.
  using Reads = std::function<bool(const std::string& plugin, absl::string_view field)>;
  // Lifetime: cluster and queue outlive what it returns.
  using Factory = std::function<std::unique_ptr<AttemptSkipper>(
      const cache::ClusterState* cluster, queue::SchedulingQueue* queue, Reads reads)>;

  virtual ~AttemptSkipper() = default;
  // An event; see queue::SchedulingQueue::MoveAllToActiveOrBackoff.
  virtual void Happened(const queue::ClusterEvent& event) = 0;
  // The pod found no node, it preempts no pod, and it waits in the queue for its current rejectors.
  virtual void Failed(const std::string& uid, absl::Time now) = 0;
  // Called with a pod just taken from the queue. True: the pod was rejected without an attempt.
  virtual bool Skip(const queue::QueuedPod& info, absl::Time now) = 0;
  // Whether events do not move the pod, because another pod represents its class.
  virtual bool IgnoresEvents(const std::string& uid) const = 0;
  // The pod no longer waits. Called from within the queue.
  virtual void OnNotWaiting(const std::string& uid) = 0;
  // Retries pods whose representative no longer waits. Called before a pod is taken from the queue.
  virtual void Release(absl::Time now) = 0;
};

struct SchedulerOptions {
  absl::Duration cycle_deadline = absl::Seconds(1);
  absl::Duration reserve_deadline = absl::Seconds(1);
  absl::Duration permit_deadline = absl::Seconds(1);
  absl::Duration pre_bind_deadline = absl::Seconds(1);
  absl::Duration bind_deadline = absl::Seconds(1);  // PostBind too
  absl::Duration queue_deadline = absl::Milliseconds(100);
  // How long pods stay in the queue, untouched, while their host is unavailable. After that each
  // pod is parked with an event.
  absl::Duration host_grace = absl::Seconds(5);
  // After so many consecutive calls without a usable answer the host is not called until it answers
  // a probe, because each such call delays all pods; 0: it is called nevertheless.
  int breaker_failures = 3;
  // How many pods a host may place in one answer, if it can; 1: one at a time.
  size_t batch_size = 128;
  // Fewer pods are placed one by one, so that the verdicts on each node are known.
  size_t min_batch_size = 8;
  // The simulator's mode: a pod is tried once, and the queue forgets it when it fails.
  bool single_attempt = false;
  // For virtual time, where pods are retried at every event and not after a backoff. Null: every
  // attempt is made.
  AttemptSkipper::Factory skipper;
  // How many pods one preemption may evict, and all preemptions of a minute; 0: any number.
  size_t max_evictions_per_attempt = 0;
  size_t max_evictions_per_minute = 0;
  // The custom resources that plugins may write.
  std::vector<framework::CustomResourceRule> custom_resources;
  // Keys of Kubernetes among labels and annotations that plugins may change on the pod that is
  // being placed.
  std::vector<std::string> allowed_pod_keys;
  // Hosts return the terms of their scores; for diagnosing single pods.
  bool explain = false;
};

}  // namespace outboard::scheduler

#endif  // OUTBOARD_SHIM_SCHEDULER_SCHEDULER_OPTIONS_H_
