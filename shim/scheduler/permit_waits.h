// Waits at Permit: how they begin, survive the replacement of their host, and end.
#ifndef OUTBOARD_SHIM_SCHEDULER_PERMIT_WAITS_H_
#define OUTBOARD_SHIM_SCHEDULER_PERMIT_WAITS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "outboard/v1beta1/cluster_state.pb.h"
#include "outboard/v1beta1/permit.pb.h"
#include "shim/cache/cluster_state.h"
#include "shim/framework/profile_plan.h"
#include "shim/scheduler/attempt.h"
#include "shim/scheduler/push_results.h"

namespace outboard::scheduler {

class AttemptFailures;
class BindingCycle;
class HostCalls;
struct HostDecisions;
struct SchedulerState;

// How a wait ended.
struct WaitEnd {
  uint64_t attempt_id = 0;
  bool allowed = false;
  // A more important pod takes the node: the pod is retried, no plugin rejected it.
  bool preempted = false;
  // Unless allowed: the plugin that ended it, and why.
  std::string plugin;
  std::string message;
  absl::Duration waited;
};

// Waits and their limits. A wait belongs to the shim, so that it survives its host. Decisions that
// arrive before their wait is registered are kept until then.
//
// Threading: thread-compatible.
// Errors: none; decisions on unknown attempts are dropped once the attempt has ended.
class WaitingPods {
 public:
  // Registers the waits in a Permit answer. They may end at once, by early decisions.
  std::optional<WaitEnd> Add(uint64_t attempt_id, const std::string& pod_uid,
                             const v1beta1::PermitResponse& answer, absl::Time now);
  // A plugin's decision.
  std::optional<WaitEnd> Decide(const v1beta1::WaitDecision& decision, absl::Time now);
  // A host confirms what its `plugins` wait for:
  // - a plugin that no longer waits allows the pod;
  // - a plugin that still waits keeps its limit;
  // - a plugin that begins to wait gets the limit that it requests.
  std::optional<WaitEnd> Renew(uint64_t attempt_id, const std::vector<std::string>& plugins,
                               const v1beta1::PermitResponse& answer, absl::Time now);
  // Forgets a wait without an outcome: the attempt has failed.
  void Drop(uint64_t attempt_id) { waits_.erase(attempt_id); }
  // Ends an attempt's wait for another reason, for example because the pod was deleted.
  std::optional<WaitEnd> Reject(uint64_t attempt_id, const std::string& plugin,
                                const std::string& message, absl::Time now);
  // As Reject, for a more important pod.
  std::optional<WaitEnd> Preempt(uint64_t attempt_id, const std::string& plugin, absl::Time now);
  // The expired wait with the earliest limit, if any. Call until empty.
  std::optional<WaitEnd> TakeExpired(absl::Time now);
  // The next limit; InfiniteFuture without a wait.
  absl::Time NextDeadline() const;
  // Forgets early decisions on an attempt that will never wait.
  void EndAttempt(uint64_t attempt_id);

  bool Waits(uint64_t attempt_id) const { return waits_.contains(attempt_id); }
  size_t size() const { return waits_.size(); }
  // The plugins that the attempt waits for.
  std::vector<cache::PluginWait> Describe(uint64_t attempt_id) const;

 private:
  struct Limit {
    absl::Time deadline;
    absl::Duration timeout;
  };
  struct Wait {
    std::string pod_uid;
    absl::Time began;
    std::map<std::string, Limit> plugins;  // by name
  };
  static Limit LimitOf(const v1beta1::PermitWait& asked, absl::Time now);
  WaitEnd End(uint64_t attempt_id, bool allowed, std::string plugin, std::string message,
              absl::Time now);

  absl::flat_hash_map<uint64_t, Wait> waits_;
  absl::flat_hash_map<uint64_t, std::vector<v1beta1::WaitDecision>> early_;
};

// A duration as Go prints it: `30s`, `1m0s`, `1.5s`, `250ms`.
std::string GoDuration(absl::Duration duration);

// The attempts that wait. An allowed pod goes on to the binding cycle, a rejected one back to the
// queue. An instance that takes a host's place is asked about each wait within a second.
//
// Threading: the scheduling thread.
class PermitWaits {
 public:
  PermitWaits(SchedulerState* state, HostCalls* host_calls, AttemptFailures* failures,
              BindingCycle* binding)
      : state_(*state), host_calls_(*host_calls), failures_(*failures), binding_(*binding) {}

  // The attempt waits as the answer says; the wait may end at once.
  void Begin(Attempt* attempt, const v1beta1::PermitResponse& answer, absl::Time now);
  void ApplyDecisions(const HostDecisions& its, absl::Time now);
  // The same for a decision that the host pushed.
  PushEnd TakeDecision(const std::string& host_name, const v1beta1::WaitDecision& decision,
                       absl::Time now);
  // Ends a wait for a reason outside of plugins; false: the attempt does not wait.
  bool Reject(uint64_t attempt_id, const std::string& message, absl::Time now);
  // `plugin` wants the node for another pod.
  bool Preempt(uint64_t attempt_id, const std::string& plugin, absl::Time now);
  void OnNodeDelete(const std::string& node_name, absl::Time now);

  // The instance behind the name changed: its open questions are void.
  void ForgetConfirmations(const std::string& host_name);
  // The new instance is asked about each of its waits.
  void ReconfirmPermitWaits(const std::string& host_name, absl::Time now);
  // Ends expired waits, and asks for confirmations.
  void Tick(absl::Time now);
  absl::Time NextWakeup() const;

  bool Waits(uint64_t attempt_id) const { return waiting_.Waits(attempt_id); }
  size_t size() const { return waiting_.size(); }
  // No decision on the attempt is expected any more.
  void EndAttempt(uint64_t attempt_id) { waiting_.EndAttempt(attempt_id); }

 private:
  struct Confirmation {
    uint64_t attempt_id = 0;
    std::string host_name;
    const framework::HostExtensionPoint* point = nullptr;  // of the attempt's plan
    absl::Time due;
    absl::Time give_up;
  };

  // False: the attempt does not wait, or not for this plugin of this host.
  bool ApplyDecision(const std::string& host_name, const v1beta1::WaitDecision& decision,
                     absl::Time now);
  void EndWait(const WaitEnd& end, absl::Time now);
  void AskForConfirmations(absl::Time now);
  void Confirm(Attempt* attempt, const framework::HostExtensionPoint& point,
               const v1beta1::PermitResponse& answer, absl::Time now);

  SchedulerState& state_;
  HostCalls& host_calls_;
  AttemptFailures& failures_;
  BindingCycle& binding_;
  WaitingPods waiting_;
  std::deque<Confirmation> confirmations_;
};

}  // namespace outboard::scheduler

#endif  // OUTBOARD_SHIM_SCHEDULER_PERMIT_WAITS_H_
