// The seam between decisions and the cluster: the orders that the scheduler gives.
#ifndef OUTBOARD_SHIM_SCHEDULER_CLUSTER_ACTIONS_H_
#define OUTBOARD_SHIM_SCHEDULER_CLUSTER_ACTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "google/protobuf/map.h"
#include "outboard/v1beta1/effect.pb.h"
#include "outboard/v1beta1/plan.pb.h"
#include "shim/framework/algorithm.h"
#include "shim/kube/objects.h"

namespace outboard::scheduler {

// How a bind ended.
enum class BindEnd {
  kBound,
  kNotBound,  // certainly not, and it will not be
  kGone,      // the pod is gone, or another pod has its name
  kUnknown,   // not settled, because this process is no longer the leader; no decision may
              // depend on it
};

// How an eviction ended.
enum class EvictEnd {
  kEvicted,  // the API server has started the deletion
  kGone,     // the pod was already gone
  kFailed,
};

// How an effect ended.
struct EffectEnd {
  absl::Status status;
  std::string resource_version;  // of the object afterwards
  std::string uid{};             // of the object
  // The object after the write, ahead of the informer: hosts see the write before they learn that
  // the attempt is over. Null: hosts do not watch this kind, or the object is being deleted.
  kube::ClusterObjectPtr object{};
};

struct EffectOrder;

// The part that gives an order receives its outcome: each order has a pointer to its handler.
// Lifetime: a handler outlives its orders.
class BindOutcomeHandler {
 public:
  virtual ~BindOutcomeHandler() = default;
  virtual void OnBindEnded(uint64_t attempt_id, BindEnd end, const std::string& message,
                           absl::Time now) = 0;
};
class EvictionOutcomeHandler {
 public:
  virtual ~EvictionOutcomeHandler() = default;
  virtual void OnEvictionEnded(uint64_t preemption_id, const kube::PodPtr& victim, EvictEnd end,
                               const std::string& message, absl::Time now) = 0;
};
class EffectOutcomeHandler {
 public:
  virtual ~EffectOutcomeHandler() = default;
  // `order` may become invalid as soon as the handler gives another order.
  virtual void OnEffectEnded(const EffectOrder& order, const EffectEnd& end, absl::Time now) = 0;
};

// Binds a pod.
struct BindOrder {
  BindOutcomeHandler* ordered_by = nullptr;
  uint64_t attempt_id = 0;
  kube::PodPtr pod;
  std::string node_name;
  std::string profile;
  // Another scheduler binds the pod; the outcome is read from the API server.
  bool bound_by_other_scheduler = false;
  // A plugin bound the pod, or may have done so; the outcome is read from the API server.
  bool bound_by_plugin = false;
  // For the Binding's metadata; the API server copies them to the pod.
  google::protobuf::Map<std::string, std::string> annotations{};
};

// Executes an effect that a plugin wants and that passed the shim's check.
struct EffectOrder {
  EffectOutcomeHandler* ordered_by = nullptr;
  uint64_t attempt_id = 0;  // 0: a background write, for no pod
  kube::PodPtr pod;         // null: for no pod
  v1beta1::Effect effect;   // a patch names the uid, also of an object created by an earlier effect
  std::string profile{};    // of a background write; else the pod has it
};

// Evicts a pod for a more important pod.
struct EvictOrder {
  EvictionOutcomeHandler* ordered_by = nullptr;
  uint64_t preemption_id = 0;
  kube::PodPtr victim;
  std::string profile;  // the preemptor's
};

// The PodScheduled condition to write, with one of these reasons.
inline constexpr char kReasonUnschedulable[] = "Unschedulable";
inline constexpr char kReasonSchedulerError[] = "SchedulerError";
struct PodScheduledFalse {
  std::string reason;
  std::string message;
};

// Executes the scheduler's orders. On the real cluster it writes to the API server; in the
// simulator it answers at once.
//
// Threading: called on the scheduling thread. It never blocks, and it never calls a handler or the
// scheduler before it returns.
class ClusterActions {
 public:
  virtual ~ClusterActions() = default;
  virtual void Bind(const BindOrder& order, absl::Time now) = 0;
  virtual void Evict(const EvictOrder& order, absl::Time now) = 0;
  // `Preempted by pod …`; `in_memory`: the victim only lost the node that it was about to get.
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
  // Absent parts stay unchanged; an empty nominated node clears it.
  virtual void PatchStatus(const kube::PodObject& pod,
                           const std::optional<PodScheduledFalse>& condition,
                           const std::optional<std::string>& nominated_node_name,
                           absl::Time now) = 0;
};

// How an attempt ended.
enum class AttemptResult { kScheduled, kUnschedulable, kError, kHostUnavailable };

// upstream's code Wait, which has no number in the contract.
inline constexpr v1beta1::Code kWait = static_cast<v1beta1::Code>(100);

// Observes the scheduler: metrics and the simulator's output. Same threading as ClusterActions.
class Observer {
 public:
  virtual ~Observer() = default;
  // The algorithm ran. `response` is what the host answered.
  virtual void OnAlgorithm(const kube::PodObject& pod, const framework::AlgorithmProfile& profile,
                           const framework::AlgorithmResult& result,
                           const v1beta1::PlanResponse& response, absl::Duration elapsed) {}
  // An attempt ended. `message` is empty if the pod was scheduled, else the text of its event.
  virtual void OnAttemptEnd(const kube::PodObject& pod, const std::string& profile,
                            AttemptResult result, const std::string& node_name,
                            const std::string& message, absl::Duration since_attempt_began) {}
  // The pod was rejected without an attempt (AttemptSkipper).
  virtual void OnAttemptSkipped(const kube::PodObject& pod) {}
  // The pod is about to preempt the victims on the node, which is nominated for it; `to_evict` of
  // them are not leaving yet. Called before the end of its attempt.
  virtual void OnPreemption(const kube::PodObject& pod, const std::string& node_name,
                            const std::vector<kube::PodPtr>& victims, size_t to_evict) {}
  // With OnPreemption: so many of its evictions break a PodDisruptionBudget.
  virtual void OnBudgetViolations(size_t evictions) {}
  // The preemption is put off; `limit` is attempt or minute (SchedulerOptions).
  virtual void OnPreemptionLimited(const kube::PodObject& pod, absl::string_view limit) {}
  // A pod was bound: the number of attempts, and the time since the first one began.
  virtual void OnBound(const kube::PodObject& pod, const std::string& profile, int attempts,
                       absl::Duration since_first_attempt, bool was_flushed) {}
  // Another scheduler, or another replica, bound a pod that waits in the queue.
  virtual void OnBoundElsewhere(const kube::PodObject& pod) {}
  // A wait at Permit ended.
  virtual void OnPermitWaitEnd(const kube::PodObject& pod, absl::Duration waited,
                               v1beta1::Code code) {}
  // A host returned no usable answer; called together with OnProtocolError if the answer was
  // invalid.
  virtual void OnHostCallFailed(const std::string& host_instance, const absl::Status& status) {}
  // An attempt continued without a host's answer; `policy` is FailOpen or UseLast.
  virtual void OnFailurePolicy(const std::string& host, v1beta1::ExtensionPoint point,
                               absl::string_view policy) {}
  // A host's answer was invalid.
  virtual void OnProtocolError(const std::string& host, const std::string& host_instance,
                               const absl::Status& status) {}
  // The node has no room for a pod that was about to be placed or bound there: cache::ShortageOf,
  // or node_gone.
  virtual void OnGuardRefusal(absl::string_view shortage) {}
  // An event from an informer was handled; `event` is its label, for example `NodeAdd`.
  virtual void OnEventHandled(absl::string_view event, absl::Duration elapsed) {}
  // A call of PostFilter, Reserve, Permit or PreBind was answered, or a bind ended. `code` is one
  // of the contract's, or kWait: a plugin at Permit or PreBind wants to wait.
  virtual void OnCall(v1beta1::ExtensionPoint point, const std::string& profile, v1beta1::Code code,
                      absl::Duration elapsed) {}
};

}  // namespace outboard::scheduler

#endif  // OUTBOARD_SHIM_SCHEDULER_CLUSTER_ACTIONS_H_
