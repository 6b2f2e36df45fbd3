// The binding cycle: effects of Reserve, PreBind, Bind, and their outcomes.
#ifndef OUTBOARD_SHIM_SCHEDULER_BINDING_CYCLE_H_
#define OUTBOARD_SHIM_SCHEDULER_BINDING_CYCLE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "shim/scheduler/attempt.h"
#include "shim/scheduler/attempt_failures.h"
#include "shim/scheduler/bind_calls.h"
#include "shim/scheduler/cluster_actions.h"
#include "shim/scheduler/host_calls.h"
#include "shim/scheduler/permit_waits.h"
#include "shim/scheduler/scheduler_state.h"

namespace outboard::scheduler {

class ClusterEventHandler;

// After Permit, in this order: the effects that Reserve returned, one after the other; PreBind,
// once a second until all hosts agree, with the further effects that it names; the bind, by the
// shim or by a plugin; the notices of PostBind. An effect or a bind that has started is never
// withdrawn: the cycle waits for its outcome, also if the pod is deleted or preempted meanwhile.
//
// Threading: the scheduling thread.
class BindingCycle final : public BindOutcomeHandler, public EffectOutcomeHandler {
 public:
  BindingCycle(SchedulerState* state, HostCalls* host_calls, AttemptFailures* failures,
               PermitWaits* waits, ClusterEventHandler* events)
      : state_(*state),
        host_calls_(*host_calls),
        failures_(*failures),
        waits_(*waits),
        events_(*events),
        bind_calls_(state, host_calls) {}

  void Begin(Attempt* attempt, absl::Time now);
  void OnEffectEnded(const EffectOrder& order, const EffectEnd& end, absl::Time now) override;
  void OnBindEnded(uint64_t attempt_id, BindEnd end, const std::string& message,
                   absl::Time now) override;

  // Whether something comes between Permit and the pod's bind: effects, or questions of PreBind.
  bool WillRunPreBind(const Attempt& attempt) const;
  // The pod's attempt, if it has effects or waits for PreBind, and its bind has not begun; else
  // null.
  Attempt* FindInPreBind(const std::string& uid) const;
  // Like FindInPreBind, while an effect is under way.
  Attempt* FindWriting(const std::string& uid) const;
  // The attempt of FindInPreBind fails, after the effect that is under way.
  void CancelPreBind(Attempt* attempt, const std::string& why, absl::Time now);
  // Whether the node has room for the pod, by the current cluster state.
  absl::Status StillFits(const std::string& pod_uid, const std::string& node_name,
                         const std::string& profile) const;

  // Asks PreBind where it is due.
  void Tick(absl::Time now);
  absl::Time NextWakeup() const;

 private:
  void WriteNextEffect(Attempt* attempt, absl::Time now);
  // The hosts to ask: of the effects, and with a plugin that wants to be asked about the pod.
  std::vector<std::string> PreBindHosts(const Attempt& attempt) const;
  void AskPreBind(Attempt* attempt, absl::Time now);
  void AddEffects(Attempt* attempt, const std::string& host_name,
                  const v1beta1::PreBindResponse& answer, absl::Time now);
  bool IsFailureIgnored(const Attempt& attempt, const std::string& host_name) const;
  void FailPreBind(Attempt* attempt, const v1beta1::PluginStatus& rejection, absl::Time now);
  void FailCancelled(Attempt* attempt, absl::Time now);
  void Bind(Attempt* attempt, absl::Time now);
  // The bind failed, `message` is the event's text: frees the place, and retries the pod.
  void FailBind(Attempt* attempt, const std::string& message, absl::Time now);
  // What the pod's event says about a bind that ended with `message`.
  std::string WhyNotBound(const Attempt& attempt, const std::string& message) const;
  void OnBound(const Attempt& attempt, absl::Time now);

  SchedulerState& state_;
  HostCalls& host_calls_;
  AttemptFailures& failures_;
  PermitWaits& waits_;
  ClusterEventHandler& events_;
  BindCalls bind_calls_;
  std::multimap<absl::Time, uint64_t> pre_bind_questions_;  // attempts by the next question's time
};

}  // namespace outboard::scheduler

#endif  // OUTBOARD_SHIM_SCHEDULER_BINDING_CYCLE_H_
