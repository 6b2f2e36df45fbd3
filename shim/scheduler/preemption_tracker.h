// Preemptions: victims, nominations, and the gates that keep preemptors out of the queue.
#ifndef OUTBOARD_SHIM_SCHEDULER_PREEMPTION_TRACKER_H_
#define OUTBOARD_SHIM_SCHEDULER_PREEMPTION_TRACKER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "outboard/v1beta1/cycle.pb.h"
#include "shim/framework/eviction_limits.h"
#include "shim/framework/fit_error.h"
#include "shim/kube/objects.h"
#include "shim/scheduler/attempt.h"
#include "shim/scheduler/cluster_actions.h"
#include "shim/scheduler/scheduler_state.h"

namespace outboard::scheduler {

class AttemptFailures;
class BindingCycle;
class PermitWaits;

// Why a preemptor stays out of the queue, in kube-scheduler's words.
inline constexpr char kPreemptionUnderWay[] =
    "waiting for the preemption for this pod to be finished";

// One pod preempts others on a node.
struct Preemption {
  kube::PodPtr preemptor;
  // Uids of other pods of its group that get room as well.
  std::vector<std::string> members;
  std::string profile;
  std::string node_name;
  // The plugin that keeps them all out of the queue meanwhile; empty: none does.
  std::string gate;
  // The pods to evict through the API server; at least one.
  std::vector<kube::PodPtr> victims;
};

// The evictions in progress. First all victims of a preemption but one are evicted at the same
// time, then the last one. So the event of the last deletion, which retries the preemptor, comes
// after all requests, when there is room. The API server's answer and the update with the deletion
// timestamp come a moment earlier: an attempt at that moment would fail and write an event.
//
// Threading: thread-compatible. Lifetime: a value.
// Errors: ids that are unknown or over do nothing.
class Preemptions {
 public:
  // What to do next.
  struct Step {
    std::vector<kube::PodPtr> evict;
    // No evictions follow; the preemption is forgotten.
    std::optional<Preemption> over;
    // With `over`: an eviction failed, and the remaining ones were not requested.
    bool failed = false;
  };
  // `preemption` has a victim.
  Step Begin(uint64_t id, Preemption preemption);
  // `report_follows`: the deletion has started, and the informer has not reported it yet.
  Step EvictionEnded(uint64_t id, bool failed, bool report_follows);
  // The informer reported that the pod leaves or is gone. Returns the preemptors, with their
  // members, whose last victim it is. Preemptions that wait for nothing else are over.
  std::vector<std::string> VictimLeft(absl::string_view uid);

  const Preemption* Find(uint64_t id) const;
  // The plugin that keeps the pod out of the queue; null: none. `is_leaving`: whether the pod with
  // this uid is being deleted, or gone.
  const std::string* GateOf(absl::string_view uid,
                            absl::FunctionRef<bool(const std::string& victim)> is_leaving) const;

 private:
  struct Running {
    Preemption preemption;
    size_t under_way = 0;
    bool last_begun = false;
    bool failed = false;
  };
  Preemption Forget(uint64_t id);

  absl::flat_hash_map<uint64_t, Running> running_;
  absl::flat_hash_map<std::string, uint64_t> latest_;  // by the preemptor's uid
  absl::flat_hash_map<std::string, std::vector<uint64_t>> by_last_victim_;
};

// Executes the preemptions that PostFilter chose.
//
// Threading: the scheduling thread.
class PreemptionTracker final : public EvictionOutcomeHandler {
 public:
  PreemptionTracker(SchedulerState* state, AttemptFailures* failures, PermitWaits* waits,
                    BindingCycle* binding)
      : state_(*state), failures_(*failures), waits_(*waits), binding_(*binding) {}

  // Why the candidate's evictions would be too many now, for people; nullopt: they are not.
  std::optional<std::string> FindLimit(const kube::PodObject& preemptor,
                                       const v1beta1::PreemptionCandidate& candidate,
                                       absl::Time now);
  // Requeues the attempt's pod with a nominated node, and lets the victims leave: those at Permit
  // or PreBind lose their places, the others are evicted.
  void Preempt(std::unique_ptr<Attempt> attempt, const framework::Diagnosis& diagnosis,
               const v1beta1::PreemptionCandidate& candidate, absl::Time now);
  void OnEvictionEnded(uint64_t preemption_id, const kube::PodPtr& victim, EvictEnd end,
                       const std::string& message, absl::Time now) override;

  // The plugin that keeps the pod out of the queue, because its victims are leaving; null: none.
  const std::string* GateOf(const std::string& uid) const;
  // A pod changed. If it leaves: events help the preemptors that wait for no other victim. Must
  // precede the publication of the event.
  void ReleasePreemptorsOf(const std::string& victim_uid);

 private:
  // The victims of a candidate by what has to happen to them.
  struct Victims {
    std::vector<kube::PodPtr> all;
    std::vector<kube::PodPtr> waiting;  // at Permit or PreBind
    size_t leaving = 0;                 // already being deleted
  };
  Victims SortVictims(const v1beta1::PreemptionCandidate& candidate, Preemption* preemption) const;
  void NominateMembers(const v1beta1::PreemptionCandidate& candidate,
                       const kube::PodObject& preemptor, absl::Time now);
  void RejectWaiting(const std::vector<kube::PodPtr>& waiting, const Preemption& preemption,
                     const std::string& plugin, absl::Time now);
  void ClearLowerNominations(const kube::PodObject& preemptor, const std::string& node_name,
                             absl::Time now);
  // Whether a pod is being deleted or gone; false in the moment before it vanishes.
  bool IsLeaving(const std::string& uid) const;
  void ReleaseUnlessGated(const std::string& preemptor_uid);

  SchedulerState& state_;
  AttemptFailures& failures_;
  PermitWaits& waits_;
  BindingCycle& binding_;
  Preemptions preemptions_;
  framework::RecentEvictions recent_;
};

}  // namespace outboard::scheduler

#endif  // OUTBOARD_SHIM_SCHEDULER_PREEMPTION_TRACKER_H_
