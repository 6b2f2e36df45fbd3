// Pods that another scheduler places: evaluated and bound on its request, never queued.
#ifndef OUTBOARD_SHIM_SCHEDULER_EXTERNALLY_SCHEDULED_PODS_H_
#define OUTBOARD_SHIM_SCHEDULER_EXTERNALLY_SCHEDULED_PODS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "shim/framework/multi_host/node_evaluator.h"
#include "shim/kube/objects.h"
#include "shim/scheduler/admitted_binds.h"
#include "shim/scheduler/cluster_actions.h"
#include "shim/scheduler/scheduler.h"

namespace outboard::scheduler {

// Shares the scheduler's state, hosts and sessions: a request is one more attempt between two of
// the scheduler's own. A bind that another scheduler asks for goes through the same Reserve,
// Permit, PreBind and PostBind as a bind of the scheduler's own; only its end goes to the caller.
//
// Threading: the scheduling thread; a call blocks it for at most the deadlines of the hosts' calls.
// Lifetime:  the scheduler and the actions outlive it.
class ExternallyScheduledPods final {
 public:
  struct Evictions {
    uint32_t slot = 0;
    std::vector<std::string> victim_uids;  // on the node
  };
  using Bound = std::function<void(const absl::Status&)>;

  // At most `max_binds` binds are in progress at a time.
  ExternallyScheduledPods(const SharedParts& shared, ClusterActions* actions,
                          size_t max_binds = 128)
      : state_(*shared.state),
        host_calls_(*shared.host_calls),
        waits_(*shared.waits),
        binding_(*shared.binding),
        cycle_(*shared.cycle),
        admitted_(shared, actions),
        max_binds_(max_binds) {}

  const cache::ClusterState& cluster() const { return state_.cluster; }

  // The verdict of the profile's hosts on the pod and each of `slots`, each of which holds a node,
  // once.
  // Errors: NOT_FOUND: the profile does not exist, or its hosts have not connected yet;
  // UNAVAILABLE: a host did not answer; UNKNOWN: a plugin failed, with its message.
  absl::Status Evaluate(const std::string& profile, const kube::PodObject& pod,
                        absl::Span<const uint32_t> slots, absl::Time now,
                        framework::NodeEvaluation* out);
  // Which nodes the pod fits once the victims have left. Errors as above.
  absl::Status EvaluateWithoutVictims(const std::string& profile, const kube::PodObject& pod,
                                      absl::Span<const Evictions> evictions, absl::Time now,
                                      std::vector<bool>* fits);

  // Takes the pod from Reserve to PostBind on the node that the other scheduler chose, and counts
  // it there at once. `bound` receives the outcome, perhaps before Bind returns. Before its bind is
  // sent, an attempt that is not over at `give_up` fails: it gives its place back.
  //
  // If plugins at Reserve or Permit are interested in the pod, the hosts evaluate it for this node
  // first, in the same attempt: their plugins use at Reserve what they computed at PreFilter, and
  // Filter may have been asked long ago, on another replica, or never.
  // Errors: RESOURCE_EXHAUSTED: by the shim's own sums the node has no room, or too many binds are
  // in progress; FAILED_PRECONDITION: a plugin rejects the pod; ABORTED: a plugin or the bind
  // failed; UNAVAILABLE: a host did not answer; NOT_FOUND: no such profile, node or pod.
  void Bind(const std::string& profile, const kube::PodPtr& pod, const std::string& node_name,
            absl::Time give_up, absl::Time now, Bound bound);
  // Another scheduler's bind, before the API server executes it: see AdmittedBinds.
  absl::Status Admit(const std::string& profile, const kube::PodPtr& pod,
                     const std::string& node_name, bool dry_run, absl::Time now) {
    return admitted_.Admit(profile, pod, node_name, dry_run, now);
  }
  // Ends attempts that are late, and asks for the outcome of admitted binds that were not reported.
  void Tick(absl::Time now);
  absl::Time NextTick() const;

 private:
  // Begins an attempt on the profile's hosts as they are now.
  absl::Status Begin(const std::string& profile, const kube::PodObject& pod, absl::Time now,
                     const framework::ProfilePlan** plan, framework::EvaluateRequest* request);
  // Updates the hosts' breakers after the attempt's calls, which ended with `status`.
  absl::Status EndCalls(const framework::ProfilePlan& plan,
                        const framework::EvaluateRequest& request,
                        const framework::NodeEvaluator& evaluator, absl::Status status,
                        absl::Time now);
  // The same, and ends the attempt.
  absl::Status End(const framework::ProfilePlan& plan, const framework::EvaluateRequest& request,
                   const framework::NodeEvaluator& evaluator, absl::Status status, absl::Time now);
  // Why no attempt to bind the pod can begin.
  absl::Status CheckBind(const framework::ProfilePlan& plan, const kube::PodObject& pod,
                         const std::string& node_name) const;
  // Begins the attempt, whose hosts accept the pod on the node. An error ends it.
  absl::Status BeginBind(const framework::ProfilePlan& plan, const kube::PodObject& pod,
                         uint32_t slot, absl::Time now, uint64_t* attempt_id);
  void EndLateBinds(absl::Time now);

  SchedulerState& state_;
  HostCalls& host_calls_;
  PermitWaits& waits_;
  BindingCycle& binding_;
  SchedulingCycle& cycle_;
  AdmittedBinds admitted_;
  const size_t max_binds_;
  std::set<std::pair<absl::Time, uint64_t>> binds_;  // when to give up, and the attempt
};

}  // namespace outboard::scheduler

#endif  // OUTBOARD_SHIM_SCHEDULER_EXTERNALLY_SCHEDULED_PODS_H_
