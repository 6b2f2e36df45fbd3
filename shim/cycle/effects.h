// The seam between decisions and the world: what the scheduler wants done.
#ifndef OUTBOARD_SHIM_CYCLE_EFFECTS_H_
#define OUTBOARD_SHIM_CYCLE_EFFECTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "proto/outboard/v1alpha1/cycle.pb.h"
#include "proto/outboard/v1alpha1/effect.pb.h"
#include "shim/cycle/algorithm.h"
#include "shim/kube/objects.h"

namespace outboard::cycle {

// A pod to be bound.
struct BindOrder {
  uint64_t attempt_id = 0;
  kube::PodPtr pod;
  std::string node_name;
  std::string profile;
  // Another scheduler has it bound; what became of that is to be read from the API server.
  bool is_anothers = false;
};

// An effect that a plugin wants, checked.
struct EffectOrder {
  uint64_t attempt_id = 0;  // 0: of its own accord, for no pod
  kube::PodPtr pod;         // null: for none
  v1alpha1::Effect effect;  // a patch names the uid, also of an object made by an effect before it
};

// How it ended; comes back through Scheduler::OnEffectEnded or OnOwnEffectEnded.
struct EffectEnd {
  absl::Status status;
  std::string resource_version;  // of the object afterwards
  std::string uid{};             // of the object
  // The object as it is now, ahead of the informer, so that hosts see what was written before they
  // hear that the attempt is over; null: of a kind that they do not watch, or it is about to go.
  kube::ClusterObjectPtr object{};
};

// How a bind ended; comes back through Scheduler::OnBindEnded.
enum class BindEnd {
  kBound,
  kNotBound,  // certainly not, and will not be
  kGone,      // the pod is gone or another one
  kUnknown,   // never settled, for this process is no longer the leader: nothing may be decided on
              // it
};

// A pod that has to leave for a more important one.
struct EvictOrder {
  uint64_t preemption_id = 0;
  kube::PodPtr victim;
  std::string profile;  // the preemptor's
};

// How an eviction ended; comes back through Scheduler::OnEvictionEnded.
enum class EvictEnd {
  kEvicted,  // the API server has begun to delete it
  kGone,     // it was no longer there
  kFailed,
};

// The PodScheduled condition to write.
struct PodScheduledFalse {
  std::string reason;  // "Unschedulable" or "SchedulerError"
  std::string message;
};

// Carries out what the scheduler decides. On the real cluster it writes to the API server; in the
// simulator it answers at once.
//
// Threading: called on the scheduling thread, never blocks, never calls back into the scheduler
// before it returns.
class Effects {
 public:
  virtual ~Effects() = default;
  virtual void Bind(const BindOrder& order, absl::Time now) = 0;
  virtual void Evict(const EvictOrder& order, absl::Time now) = 0;
  // `Preempted by pod …`; `in_memory`: the victim only lost the place that it was about to get.
  virtual void RecordPreempted(const kube::PodObject& victim, const std::string& profile,
                               const std::string& preemptor_uid, const std::string& node_name,
                               bool in_memory, absl::Time now) = 0;
  virtual void Write(const EffectOrder& order, absl::Time now) = 0;
  // `Successfully assigned …`
  virtual void RecordScheduled(const kube::PodObject& pod, const std::string& profile,
                               const std::string& node_name, absl::Time now) = 0;
  // A FailedScheduling warning; a long message is cut to what an event holds.
  virtual void RecordFailed(const kube::PodObject& pod, const std::string& profile,
                            const std::string& message, absl::Time now) = 0;
  // Absent parts stay as they are; an empty nominated node clears it.
  virtual void PatchStatus(const kube::PodObject& pod,
                           const std::optional<PodScheduledFalse>& condition,
                           const std::optional<std::string>& nominated_node_name,
                           absl::Time now) = 0;
};

// How an attempt ended.
enum class AttemptResult { kScheduled, kUnschedulable, kError, kHostAway };

// Watches the scheduler work: metrics and the simulator's output. Same threading as Effects.
class Observer {
 public:
  virtual ~Observer() = default;
  // The algorithm ran. `response` is what the host answered.
  virtual void OnAlgorithm(const kube::PodObject& pod, const AlgorithmProfile& profile,
                           const AlgorithmResult& result, const v1alpha1::CycleResponse& response,
                           absl::Duration elapsed) {}
  // An attempt ended. `message` is empty if the pod was scheduled, else the words of its event.
  virtual void OnAttemptEnd(const kube::PodObject& pod, const std::string& profile,
                            AttemptResult result, const std::string& node_name,
                            const std::string& message, absl::Duration since_attempt_began) {}
  // The pod was rejected without an attempt, as one like it just before (vain_attempts.h).
  virtual void OnAttemptSpared(const kube::PodObject& pod) {}
  // The pod is about to have others leave the node, which is nominated for it; `to_evict` of them
  // are not leaving yet. Comes before the end of its attempt.
  virtual void OnPreemption(const kube::PodObject& pod, const std::string& node_name,
                            const std::vector<kube::PodPtr>& victims, size_t to_evict) {}
  // A pod was bound: how many attempts it took, and how long since the first began.
  virtual void OnBound(const kube::PodObject& pod, const std::string& profile, int attempts,
                       absl::Duration since_first_attempt, bool was_flushed) {}
  // A wait at Permit ended.
  virtual void OnPermitWaitEnd(const kube::PodObject& pod, absl::Duration waited,
                               v1alpha1::Code code) {}
  // A host gave no answer, or one that is of no use; comes with OnProtocolError where that is why.
  virtual void OnNoAnswer(const std::string& host_instance, const absl::Status& status) {}
  // An attempt went on without a host's answer; `policy` is FailOpen or UseLast.
  virtual void OnFailurePolicy(const std::string& host, v1alpha1::ExtensionPoint point,
                               absl::string_view policy) {}
  // A host's answer could not be used.
  virtual void OnProtocolError(const std::string& host_instance, const absl::Status& status) {}
  // What happened in the cluster was taken in; `event` is its label, as `NodeAdd`.
  virtual void OnEventHandled(absl::string_view event, absl::Duration elapsed) {}
  // A call of PostFilter, Reserve, Permit or PreBind was answered, or a bind ended.
  virtual void OnCall(v1alpha1::ExtensionPoint point, const std::string& profile,
                      v1alpha1::Code code, absl::Duration elapsed) {}
};

}  // namespace outboard::cycle

#endif  // OUTBOARD_SHIM_CYCLE_EFFECTS_H_
