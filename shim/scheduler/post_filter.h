// PostFilter: asks the hosts which pods a pod that fits nowhere may preempt.
#ifndef OUTBOARD_SHIM_SCHEDULER_POST_FILTER_H_
#define OUTBOARD_SHIM_SCHEDULER_POST_FILTER_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "outboard/v1beta1/cycle.pb.h"
#include "shim/framework/algorithm.h"
#include "shim/framework/fit_error.h"
#include "shim/framework/multi_host/extension_point_runner.h"
#include "shim/scheduler/attempt.h"
#include "shim/scheduler/host_calls.h"
#include "shim/scheduler/scheduler_state.h"

namespace outboard::scheduler {

// The answer of all the profile's PostFilter plugins together.
struct PostFilterOutcome {
  absl::Status status;
  size_t failed_host = 0;  // the host that `status` is about, as an index of the plan
  v1beta1::Code code = v1beta1::CODE_UNSCHEDULABLE;
  std::vector<std::string> reasons;
  bool keeps_nomination = false;
  std::optional<v1beta1::PreemptionCandidate> candidate;  // the preemption to begin
};

// Asks hosts in the order of their first plugins, until a host has candidates or reports that no
// preemption can help.
// - A host may ask for the other hosts' verdicts on nodes without certain pods.
// - The other hosts check all candidates of a host at once. The first candidate that all accept is
//   used.
//
// Threading: the scheduling thread; blocks it for at most the cycle's deadline.
// Errors: in the outcome.
class PostFilter {
 public:
  // `algorithm`: its last run found no node for the pod.
  PostFilter(SchedulerState* state, HostCalls* host_calls, const framework::Algorithm* algorithm)
      : state_(*state), host_calls_(*host_calls), algorithm_(*algorithm) {}

  // Without a plugin that can be asked, returns the text for the diagnosis.
  std::optional<std::string> MessageWithoutCalls(const framework::ProfilePlan& plan) const;
  PostFilterOutcome Ask(const Attempt& attempt, absl::Time now);
  // The plugins that Ask asks.
  std::vector<std::string> PluginsAsked(const framework::ProfilePlan& plan) const;
  // The text for the diagnosis, after Ask.
  std::string Message(const framework::ProfilePlan& plan, const PostFilterOutcome& outcome) const;

 private:
  absl::Status AskHost(const Attempt& attempt, size_t asked, const framework::AttemptHosts& hosts,
                       framework::ExtensionPointRunner* runner, PostFilterOutcome* outcome);
  // Whether the plugins at podGroupPostFilter are asked, about the pod's rejected group.
  bool IsAboutGroup(const framework::ProfilePlan& plan) const;
  // The group of the last run's rejection.
  v1beta1::PendingGroup RejectedGroup(const kube::PodObject& pod) const;
  PostFilterOutcome AskAboutGroup(const Attempt& attempt, absl::Time now);
  absl::Status AskHostAboutGroup(const Attempt& attempt, const framework::HostExtensionPoint& point,
                                 absl::Time deadline, absl::Time now, PostFilterOutcome* outcome);
  // Chooses the first of the host's candidates that all hosts agree on.
  absl::Status ChooseCandidate(const Attempt& attempt, size_t asked,
                               const v1beta1::JudgedNodes& judged,
                               const v1beta1::PreemptionCandidates& answer,
                               framework::ExtensionPointRunner* runner, PostFilterOutcome* outcome);
  // Whether the victims exist, are in the right place, and are less important.
  absl::Status CheckVictims(const kube::PodObject& preemptor,
                            const v1beta1::PreemptionCandidate& candidate) const;

  SchedulerState& state_;
  HostCalls& host_calls_;
  const framework::Algorithm& algorithm_;
};

}  // namespace outboard::scheduler

#endif  // OUTBOARD_SHIM_SCHEDULER_POST_FILTER_H_
