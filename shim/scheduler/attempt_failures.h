// The ways in which an attempt fails: the node is given back, the pod returns to the queue.
#ifndef OUTBOARD_SHIM_SCHEDULER_ATTEMPT_FAILURES_H_
#define OUTBOARD_SHIM_SCHEDULER_ATTEMPT_FAILURES_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "shim/framework/algorithm.h"
#include "shim/framework/fit_error.h"
#include "shim/scheduler/attempt.h"
#include "shim/scheduler/host_calls.h"
#include "shim/scheduler/parked_pods.h"
#include "shim/scheduler/queueing_hints.h"
#include "shim/scheduler/scheduler_state.h"

namespace outboard::scheduler {

class PermitWaits;

// Each Fail… ends the attempt at the hosts and for the observer, and writes an event and a
// condition of the pod (for a parked pod, ParkedPods writes them later); the end of an external
// attempt is only reported to the scheduler that asked for it. The caller must have released the
// attempt's node before.
//
// Threading: the scheduling thread.
class AttemptFailures {
 public:
  // `algorithm`: its last answer also covers the pods in Attempt::rejected_with.
  AttemptFailures(SchedulerState* state, HostCalls* host_calls, QueueingHints* hints,
                  PermitWaits* waits, ParkedPods* parked_pods,
                  const framework::Algorithm* algorithm)
      : state_(*state),
        host_calls_(*host_calls),
        hints_(*hints),
        waits_(*waits),
        parked_pods_(*parked_pods),
        algorithm_(*algorithm) {}

  void FailUnschedulable(std::unique_ptr<Attempt> attempt, const framework::Diagnosis& diagnosis,
                         absl::Time now);
  void FailNoNodes(std::unique_ptr<Attempt> attempt, absl::Time now);
  void FailError(std::unique_ptr<Attempt> attempt, const std::string& message, absl::Time now);
  // The host did not answer, or cannot be called: the pod is parked.
  void FailHostUnavailable(std::unique_ptr<Attempt> attempt, const std::string& host_name,
                           const absl::Status& status, absl::Time now);

  // Calls Unreserve, and removes the pod from its node.
  void UnreserveAndForget(Attempt* attempt, const std::string& reason, absl::Time now);
  // Removes the pod's usage from its node.
  void Forget(Attempt* attempt);
  // Hosts forget the attempt, and early decisions on it are dropped.
  void EndAttempt(const Attempt& attempt);
  // The same for an external attempt, whose scheduler gets the outcome.
  void EndExternal(const Attempt& attempt, const absl::Status& outcome);
  // The same for an attempt whose pod is gone: it does not return to the queue.
  void EndGone(const Attempt& attempt);

 private:
  // `text`: why, for people; cut if it is very long.
  void Requeue(std::unique_ptr<Attempt> attempt, AttemptResult result, const std::string& text,
               absl::Time now);
  // Rejects another pod of the group, as long as it is in the queue.
  std::unique_ptr<Attempt> TakeForBatch(const std::string& uid, const framework::ProfilePlan& plan,
                                        absl::Time now);
  // Updates the nomination after a failure. Returns the new status.nominatedNodeName, if it
  // changes.
  std::optional<std::string> RenewNomination(const Attempt& attempt, const kube::PodObject& current,
                                             AttemptResult result);

  SchedulerState& state_;
  HostCalls& host_calls_;
  QueueingHints& hints_;
  PermitWaits& waits_;
  ParkedPods& parked_pods_;
  const framework::Algorithm& algorithm_;
};

}  // namespace outboard::scheduler

#endif  // OUTBOARD_SHIM_SCHEDULER_ATTEMPT_FAILURES_H_
