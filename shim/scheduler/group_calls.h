// Calls to the plugins at placementGenerate and placementScore, for one attempt at a group.
#ifndef OUTBOARD_SHIM_SCHEDULER_GROUP_CALLS_H_
#define OUTBOARD_SHIM_SCHEDULER_GROUP_CALLS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "shim/framework/group_steps.h"
#include "shim/scheduler/attempt.h"
#include "shim/scheduler/host_calls.h"
#include "shim/scheduler/scheduler_state.h"

namespace outboard::scheduler {

// Each call has the attempt's version of the cluster, and as HostCalls' a deadline, a check of the
// answer, the host's breaker and the failure policy.
//
// Threading: the scheduling thread; a call blocks it for at most the deadline.
// Lifetime: one attempt's algorithm; the attempt outlives it.
// Errors: as framework::GroupPoints.
class GroupCalls final : public framework::GroupPoints {
 public:
  GroupCalls(SchedulerState* state, HostCalls* host_calls, Attempt* attempt, absl::Time now)
      : state_(*state), host_calls_(*host_calls), attempt_(*attempt), now_(now) {}

  absl::StatusOr<std::optional<v1beta1::GeneratePlacementsResponse>> Generate(
      const v1beta1::PendingGroup& group, absl::Time deadline) override;
  const std::vector<framework::WeightedPlugin>& score_plugins() const override {
    return attempt_.plan->placement_score_plugins;
  }
  absl::StatusOr<std::vector<v1beta1::ScorePlacementsResponse>> Score(
      const v1beta1::ScorePlacementsRequest& request, absl::Time deadline) override;
  const std::string& failed_host() const override { return failed_host_; }

 private:
  // What a call needs beside its request.
  template <typename Response>
  struct Point;
  // nullopt: no usable answer, which the policy allows.
  template <typename Request, typename Response>
  absl::StatusOr<std::optional<Response>> Call(const framework::HostExtensionPoint& point,
                                               const Point<Response>& what, Request request,
                                               absl::Time deadline);

  SchedulerState& state_;
  HostCalls& host_calls_;
  Attempt& attempt_;
  const absl::Time now_;
  std::string failed_host_;
};

}  // namespace outboard::scheduler

#endif  // OUTBOARD_SHIM_SCHEDULER_GROUP_CALLS_H_
