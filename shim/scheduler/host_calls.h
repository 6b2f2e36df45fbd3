// Calls to plugin hosts: changes ahead of each call, deadlines, breakers and failure policies.
#ifndef OUTBOARD_SHIM_SCHEDULER_HOST_CALLS_H_
#define OUTBOARD_SHIM_SCHEDULER_HOST_CALLS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "shim/framework/algorithm.h"
#include "shim/scheduler/attempt.h"
#include "shim/scheduler/scheduler_state.h"

namespace outboard::scheduler {

// The decisions on waits in an answer of a host.
struct HostDecisions {
  std::string host_name;
  google::protobuf::RepeatedPtrField<v1beta1::WaitDecision> decisions;
};

// Every call sends the host the changes of the cluster first, has a deadline, checks the answer,
// and feeds the host's breaker.
//
// Threading: the scheduling thread; a call blocks it for at most the deadline.
// Errors: UNAVAILABLE if the host cannot be called; else the error of the call, or of the check of
// its answer.
class HostCalls {
 public:
  explicit HostCalls(SchedulerState* state) : state_(*state) {}

  // Null: the host cannot be called.
  HostRecord* UsableHost(const std::string& name) const;
  // Whether any of the plan's pods can be tried.
  bool IsUsable(const framework::ProfilePlan& plan) const;
  // Whether a host's connection needs a new handshake.
  bool WantsNewSession(const std::string& name) const;
  // Whether the host is not called, because several of its answers were not usable.
  bool IsHeldBack(const std::string& name) const;
  // The host has not answered probes for this long: it is not called until it answers one.
  void OnProbesUnanswered(const std::string& name, absl::Duration silence, absl::Time now);
  // The host answered a probe: it may be called again.
  void OnProbeAnswered(const std::string& name, absl::Time now);

  // Sends what changed since the last message, with queueing hints if the host evaluates them, and
  // the results of its pushes.
  void SendChanges(HostRecord* host, absl::Time now);
  // Sends hosts what changed while no call was made, four times a second: the first call after a
  // quiet time must not wait for the host to read what happened in it. Results of pushes are sent
  // at once.
  void SendDueChanges(absl::Time now);
  // When SendDueChanges has something to do.
  absl::Time NextWakeup() const;
  // Reports to the plan's hosts that the attempt is over.
  void EndAttempt(const framework::ProfilePlan& plan, uint64_t attempt_id);

  absl::StatusOr<v1beta1::ReserveResponse> Reserve(Attempt* attempt,
                                                   const framework::HostExtensionPoint& point,
                                                   absl::Time now);
  // Calls each host that has plugins at Reserve or Permit for the pod, in reverse order, also if
  // the attempt did not call it there. Returns the decisions on waits in the answers.
  std::vector<HostDecisions> Unreserve(const Attempt& attempt, const std::string& reason,
                                       absl::Time now);
  // `resumed`: the pod waits already, because another instance answered so.
  absl::StatusOr<v1beta1::PermitResponse> Permit(Attempt* attempt,
                                                 const framework::HostExtensionPoint& point,
                                                 bool resumed, absl::Time now);
  // `is_invalid`: the error is what is wrong with an answer.
  absl::StatusOr<v1beta1::PreBindResponse> PreBind(const Attempt& attempt,
                                                   const std::string& host_name, absl::Time now,
                                                   bool* is_invalid);
  // Asks the plugin of `point` to bind. After an error that is not UNAVAILABLE because the host
  // cannot be called, only the API server knows whether it did.
  absl::StatusOr<v1beta1::BindResponse> Bind(const Attempt& attempt,
                                             const framework::HostExtensionPoint& point,
                                             absl::Time now);
  // Does not wait. A notice that cannot be sent is dropped.
  void SendPostBind(const Attempt& attempt, const std::string& host_name, absl::Time now);
  absl::StatusOr<v1beta1::PreEnqueueResponse> PreEnqueue(const framework::ProfilePlan& plan,
                                                         const framework::HostExtensionPoint& point,
                                                         const std::vector<std::string>& uids,
                                                         absl::Time now);
  absl::StatusOr<v1beta1::SortKeysResponse> SortKeys(const framework::ProfilePlan& plan,
                                                     HostRecord* host,
                                                     absl::Span<const kube::PodObject* const> pods,
                                                     absl::Time now);

  // For the log: the instance is called for the attempt.
  static void NoteCall(Attempt* attempt, const framework::HostClient& client);
  // Whether the attempt continues without the host's answer; reports it.
  bool IsFailureIgnored(const framework::HostExtensionPoint& point, v1beta1::ExtensionPoint which);
  // The algorithm ran: updates breakers, and reports the failures that the policies ignored.
  // `hosts`: those of the request, null where one could not be called.
  void OnAlgorithmEnded(const Attempt& attempt, const framework::AlgorithmRequest& request,
                        const framework::AlgorithmResult& result,
                        absl::Span<HostRecord* const> hosts, absl::Time now);
  // A call of the host ended. `status`: of the call, or of the check of its answer. For callers
  // that do not use the methods above.
  void OnHostCallEnded(const std::string& name, framework::HostCall call,
                       const absl::Status& status, absl::Time now);
  // The host placed a pod where it does not fit, or says falsely that it bound a pod.
  void OnBadPlacement(const std::string& name, const absl::Status& status);

  // For virtual time: sends all hosts the time.
  void AdvanceHostClocks(absl::Time now);
  // Whether all hosts have acknowledged it.
  bool HostClocksAdvanced() const;

 private:
  // A delta at the host's version that changes nothing.
  v1beta1::SyncRequest NoChanges(const HostRecord& host) const;
  // When the host is to get what changed; InfiniteFuture: not now.
  absl::Time ChangesDue(const HostRecord& host) const;
  void FillHeader(const Attempt& attempt, const HostRecord& host,
                  v1beta1::CallHeader* header) const;
  // Checks the effects of an answer of PreBind, together with the earlier ones of the attempt.
  absl::Status CheckMoreEffects(const Attempt& attempt, const v1beta1::PreBindResponse& answer,
                                const HostRecord& host) const;
  // Checks effects of an answer against the cluster, and what the administrator allows.
  absl::Status CheckAllowed(const google::protobuf::RepeatedPtrField<v1beta1::Effect>& effects,
                            const Attempt& attempt, uint32_t slot, const HostRecord& host) const;

  SchedulerState& state_;
};

}  // namespace outboard::scheduler

#endif  // OUTBOARD_SHIM_SCHEDULER_HOST_CALLS_H_
