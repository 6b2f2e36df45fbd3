// Events of the cluster: from informers, and from the scheduler's own writes.
#ifndef OUTBOARD_SHIM_SCHEDULER_CLUSTER_EVENT_HANDLER_H_
#define OUTBOARD_SHIM_SCHEDULER_CLUSTER_EVENT_HANDLER_H_

#include <string>

#include "absl/time/time.h"
#include "shim/cache/update_outcomes.h"
#include "shim/kube/objects.h"
#include "shim/scheduler/attempt_failures.h"
#include "shim/scheduler/binding_cycle.h"
#include "shim/scheduler/permit_waits.h"
#include "shim/scheduler/preemption_tracker.h"
#include "shim/scheduler/queue_calls.h"
#include "shim/scheduler/queueing_hints.h"
#include "shim/scheduler/scheduler_state.h"

namespace outboard::scheduler {

// For each event in this order: the cluster state changes, hosts receive the event, the queue moves
// pods that it may help.
//
// Threading: the scheduling thread; events in the order of their informer. A pod that has finished
// is reported as deleted.
class ClusterEventHandler {
 public:
  ClusterEventHandler(SchedulerState* state, QueueingHints* hints, QueueCalls* queue_calls,
                      AttemptFailures* failures, PermitWaits* waits, BindingCycle* binding,
                      PreemptionTracker* preemption)
      : state_(*state),
        hints_(*hints),
        queue_calls_(*queue_calls),
        failures_(*failures),
        waits_(*waits),
        binding_(*binding),
        preemption_(*preemption) {}

  void OnNodeUpsert(const kube::NodePtr& node, absl::Time now);
  void OnNodeDelete(const std::string& name, absl::Time now);
  void OnPodUpsert(const kube::PodPtr& pod, absl::Time now);
  void OnPodDelete(const std::string& uid, absl::Time now);
  void OnNamespaceUpsert(const kube::NamespacePtr& ns, absl::Time now);
  void OnNamespaceDelete(const std::string& name, absl::Time now);
  void OnObjectUpsert(const kube::ClusterObjectPtr& object, absl::Time now);
  void OnObjectDelete(const kube::ClusterObjectPtr& object, absl::Time now);
  // An effect wrote the object; counts ahead of the informer.
  void OnObjectWritten(const EffectEnd& end, absl::Time now);

 private:
  void PublishPodUpsert(const cache::PodOutcome& outcome, const kube::PodObject& pod);
  void PublishPodDelete(const cache::PodOutcome& outcome);
  // Records the node that status.nominatedNodeName names.
  void UpdateNomination(const kube::PodObject& pod, const cache::PodOutcome& outcome);
  void OnPendingPodAdded(const cache::PodOutcome& outcome, const kube::PodPtr& pod, absl::Time now);
  void OnPendingPodUpdated(const cache::PodOutcome& outcome, const kube::PodPtr& pod,
                           absl::Time now);
  void OnPodAssigned(const kube::PodPtr& pod, absl::Time now);
  void OnPodRemoved(const cache::PodOutcome& outcome, const std::string& uid, absl::Time now);
  // The pod of an attempt in flight is being deleted, or is gone.
  void OnAssumedPodGone(Attempt* attempt, absl::Time now);
  // The node that the pod was nominated to is free for pods that had to count it.
  void MoveAfterNomination(const kube::PodObject& pod, absl::Time now);
  void HandleObjectEvent(const cache::ObjectOutcome& outcome, const kube::ClusterObject& object,
                         absl::Time now);

  SchedulerState& state_;
  QueueingHints& hints_;
  QueueCalls& queue_calls_;
  AttemptFailures& failures_;
  PermitWaits& waits_;
  BindingCycle& binding_;
  PreemptionTracker& preemption_;
};

}  // namespace outboard::scheduler

#endif  // OUTBOARD_SHIM_SCHEDULER_CLUSTER_EVENT_HANDLER_H_
