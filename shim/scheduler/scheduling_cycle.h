// The scheduling cycle: one attempt from PreFilter to Permit, and the pods placed with it.
#ifndef OUTBOARD_SHIM_SCHEDULER_SCHEDULING_CYCLE_H_
#define OUTBOARD_SHIM_SCHEDULER_SCHEDULING_CYCLE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "shim/framework/algorithm.h"
#include "shim/framework/fit_error.h"
#include "shim/scheduler/attempt.h"
#include "shim/scheduler/attempt_failures.h"
#include "shim/scheduler/binding_cycle.h"
#include "shim/scheduler/host_calls.h"
#include "shim/scheduler/permit_waits.h"
#include "shim/scheduler/post_filter.h"
#include "shim/scheduler/preemption_tracker.h"
#include "shim/scheduler/scheduler_state.h"

namespace outboard::scheduler {

// Several pods in one answer: the next pods of the queue, or the rest of the pod's group.
//
// Threading: the scheduling thread. Lifetime: a value.
class BatchPlacement {
 public:
  BatchPlacement() = default;
  // The other pods in a result that placed a pod. `elapsed`: each pod's share.
  BatchPlacement(const framework::AlgorithmResult& result, absl::Duration elapsed)
      : placements_(result.others),
        is_group_(result.is_group),
        snapshot_version_(result.snapshot_version),
        elapsed_(elapsed) {}

  // The pods that a host may place together with the attempt's pod; empty: none.
  static std::vector<std::string> NextPods(const SchedulerState& state, const Attempt& attempt);

  size_t size() const { return placements_.size(); }
  const v1beta1::PlannedPlacement& placement(size_t i) const { return placements_[i]; }
  absl::Duration elapsed() const { return elapsed_; }
  // Takes the i-th pod from the queue; null: its answer no longer counts. A group's pod is taken
  // from anywhere in the queue; other pods only while it is their turn, and `in_turn`.
  std::unique_ptr<Attempt> TakeForBatch(SchedulerState* state, const framework::ProfilePlan& plan,
                                        uint64_t attempt_id, size_t i, bool in_turn,
                                        absl::Time now) const;
  // As if the algorithm had run for the i-th pod alone.
  framework::AlgorithmResult ResultOf(size_t i) const;

 private:
  std::vector<v1beta1::PlannedPlacement> placements_;
  bool is_group_ = false;
  int64_t snapshot_version_ = 0;  // of the first pod's attempt
  absl::Duration elapsed_;
};

// One attempt. Each step owns the attempt: it passes the attempt on, or AttemptFailures ends it.
//
// Threading: the scheduling thread; blocks it for at most the deadlines of the calls.
class SchedulingCycle {
 public:
  SchedulingCycle(SchedulerState* state, HostCalls* host_calls, framework::Algorithm* algorithm,
                  AttemptFailures* failures, PermitWaits* waits, BindingCycle* binding,
                  PreemptionTracker* preemption)
      : state_(*state),
        host_calls_(*host_calls),
        algorithm_(*algorithm),
        failures_(*failures),
        waits_(*waits),
        binding_(*binding),
        preemption_(*preemption),
        post_filter_(state, host_calls, algorithm) {}

  void Run(std::unique_ptr<Attempt> attempt, absl::Time now);
  // The part of Run after the choice of a node, on which the guard has found room: assumes the pod
  // there, then Reserve and Permit; the binding cycle follows. False: the pod does not get the
  // node.
  bool AssumeAndReserve(std::unique_ptr<Attempt> attempt, uint32_t slot, absl::Time now);

 private:
  using Hosts = absl::Span<HostRecord* const>;

  framework::AlgorithmRequest RequestFor(Attempt* attempt, Hosts hosts, absl::Time now);
  // Shows the answers of hosts to the shadow observer.
  void ReportToShadow(const Attempt& attempt, const framework::AlgorithmResult& result,
                      const framework::CallRecorder& recorder, absl::Time now);
  void RunPostFilter(std::unique_ptr<Attempt> attempt, framework::Diagnosis diagnosis,
                     absl::Time now);
  // Checks the node that hosts selected, then AssumeAndReserve.
  bool PlaceOnNode(std::unique_ptr<Attempt> attempt, uint32_t slot, absl::Time now);
  // False if Reserve ended the attempt, which is then null.
  bool Reserve(std::unique_ptr<Attempt>* attempt, absl::Time now);
  void Permit(std::unique_ptr<Attempt> attempt, absl::Time now);
  // The pod has passed Permit, or waits there.
  void EnterBinding(std::unique_ptr<Attempt> attempt, const v1beta1::PermitResponse& permit,
                    absl::Time now);
  // Writes to log and status where a pod of the queue is about to go. `has_to_wait`: at Permit.
  void AnnounceNode(const Attempt& attempt, bool has_to_wait, absl::Time now);
  void PlaceOthers(const framework::ProfilePlan& plan, uint64_t first_id, bool first_placed,
                   const BatchPlacement& others, absl::Time now);
  void AdvanceStart(uint32_t processed_nodes) {
    next_start_ =
        (next_start_ + processed_nodes) % static_cast<uint32_t>(state_.cluster.node_order().size());
  }

  SchedulerState& state_;
  HostCalls& host_calls_;
  framework::Algorithm& algorithm_;
  AttemptFailures& failures_;
  PermitWaits& waits_;
  BindingCycle& binding_;
  PreemptionTracker& preemption_;
  PostFilter post_filter_;
  uint32_t next_start_ = 0;  // index into the node order
};

}  // namespace outboard::scheduler

#endif  // OUTBOARD_SHIM_SCHEDULER_SCHEDULING_CYCLE_H_
