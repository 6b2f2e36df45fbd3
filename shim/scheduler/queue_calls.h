// What the queue needs from hosts: PreEnqueue and sort keys.
#ifndef OUTBOARD_SHIM_SCHEDULER_QUEUE_CALLS_H_
#define OUTBOARD_SHIM_SCHEDULER_QUEUE_CALLS_H_

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "shim/framework/profile_plan.h"
#include "shim/kube/objects.h"
#include "shim/queue/queue_seams.h"
#include "shim/queue/queued_pod.h"

namespace outboard::scheduler {

class HostCalls;
class ParkedPods;
class PreemptionTracker;
struct HostRecord;
struct SchedulerState;

// Without an answer at PreEnqueue a pod is parked; without a sort key it keeps its old place. Both
// are retried. A key that depends on the pod's attempts is outdated after each, and asked for again
// within a second: pods that failed together need one call, and few come back before.
//
// Threading: the scheduling thread; a call blocks it for at most the queue deadline.
class QueueCalls final : public queue::PreEnqueueGate {
 public:
  QueueCalls(SchedulerState* state, HostCalls* host_calls, PreemptionTracker* preemption,
             ParkedPods* parked_pods)
      : state_(*state),
        host_calls_(*host_calls),
        preemption_(*preemption),
        parked_pods_(*parked_pods) {}

  // Asks hosts for the pods' sort keys, where their profiles have QueueSort.
  void UpdateSortKeys(absl::Span<const kube::PodPtr> pods, absl::Time now);
  // Another instance took the host's place: its sort keys may differ.
  void OnHostReplaced(const std::string& name, HostRecord* host);
  // Retries missing and outdated sort keys, at most once a second.
  void RetryMissingSortKeys(HostRecord* host, absl::Time now);
  // When that is due for the host; in the past: now.
  absl::Time NextWakeup(const HostRecord& host) const;

  // queue::PreEnqueueGate:
  std::vector<queue::PreEnqueueResult> PreEnqueue(absl::Span<const queue::QueuedPod* const> pods,
                                                  absl::Time now) override;
  // During its preemption no event helps a pod, and there may be many victims.
  bool IgnoresEvents(const queue::QueuedPod& pod) const override;

 private:
  // PreEnqueue of one host for the pods at `indices`. `positions`: of the plugin behind each
  // result.
  void AskPreEnqueue(const framework::ProfilePlan& plan, const framework::HostExtensionPoint& point,
                     absl::Span<const queue::QueuedPod* const> pods,
                     const std::vector<size_t>& indices, absl::Time now,
                     std::vector<size_t>* positions, std::vector<queue::PreEnqueueResult>* results);
  void UpdateSortKeysOf(const framework::ProfilePlan& plan,
                        absl::Span<const kube::PodObject* const> pods, absl::Time now);

  SchedulerState& state_;
  HostCalls& host_calls_;
  PreemptionTracker& preemption_;
  ParkedPods& parked_pods_;
};

}  // namespace outboard::scheduler

#endif  // OUTBOARD_SHIM_SCHEDULER_QUEUE_CALLS_H_
