// Pods that another scheduler places: evaluated and bound on its request, never queued.
#ifndef OUTBOARD_SHIM_SCHEDULER_EXTERNALLY_SCHEDULED_PODS_H_
#define OUTBOARD_SHIM_SCHEDULER_EXTERNALLY_SCHEDULED_PODS_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "shim/framework/multi_host/node_evaluator.h"
#include "shim/kube/objects.h"
#include "shim/scheduler/cluster_actions.h"
#include "shim/scheduler/scheduler.h"

namespace outboard::scheduler {

// Shares the scheduler's state, hosts and sessions: a request is one more attempt between two of
// the scheduler's own. Reserve, Permit and PreBind are not called: the other scheduler decides when
// the pod is bound.
//
// Threading: the scheduling thread; Evaluate and EvaluateWithoutVictims block it for at most the
//            deadline of the cycle.
// Lifetime:  the scheduler and the actions outlive it.
class ExternallyScheduledPods final : public BindOutcomeHandler {
 public:
  struct Evictions {
    uint32_t slot = 0;
    std::vector<std::string> victim_uids;  // on the node
  };
  using Bound = std::function<void(const absl::Status&)>;

  ExternallyScheduledPods(const SharedParts& shared, ClusterActions* actions)
      : state_(*shared.state),
        host_calls_(*shared.host_calls),
        hints_(*shared.hints),
        actions_(*actions) {}

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

  // Counts the pod on the node at once, and binds it. `bound` receives the outcome; before Bind
  // returns if the bind cannot be ordered. RESOURCE_EXHAUSTED: by the shim's own sums the node has
  // no room.
  void Bind(const std::string& profile, const kube::PodPtr& pod, const std::string& node_name,
            absl::Time now, Bound bound);
  // Another scheduler's bind, before the API server executes it. If this returns OK, the pod counts
  // on the node from now on, unless it is a `dry_run`. The watch reports the outcome; after
  // kSettleAfter without a report the shim reads the pod from the API server. RESOURCE_EXHAUSTED:
  // the node has no room beside its pods and the shim's pending binds.
  absl::Status Admit(const std::string& profile, const kube::PodPtr& pod,
                     const std::string& node_name, bool dry_run, absl::Time now);
  static constexpr absl::Duration kSettleAfter = absl::Seconds(10);
  // Asks for the outcome of admitted binds that were not reported.
  void Tick(absl::Time now);
  absl::Time NextTick() const;

  void OnBindEnded(uint64_t attempt_id, BindEnd end, const std::string& message,
                   absl::Time now) override;

 private:
  struct Binding {
    kube::PodPtr pod;
    Bound bound;
  };
  // Begins an attempt on the profile's hosts as they are now.
  absl::Status Begin(const std::string& profile, const kube::PodObject& pod, absl::Time now,
                     const framework::ProfilePlan** plan, framework::EvaluateRequest* request);
  // Ends it, and updates the hosts' breakers.
  absl::Status End(const framework::ProfilePlan& plan, const framework::EvaluateRequest& request,
                   const framework::NodeEvaluator& evaluator, absl::Status status, absl::Time now);

  struct Admission {
    absl::Time settle_at;
    BindOrder order;
  };

  SchedulerState& state_;
  HostCalls& host_calls_;
  QueueingHints& hints_;
  ClusterActions& actions_;
  absl::flat_hash_map<uint64_t, Binding> bindings_;  // by attempt
  std::deque<Admission> admissions_;                 // by time
};

}  // namespace outboard::scheduler

#endif  // OUTBOARD_SHIM_SCHEDULER_EXTERNALLY_SCHEDULED_PODS_H_
