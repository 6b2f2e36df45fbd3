// A group's way to its nodes, if plugins at placementGenerate say where it may be placed.
#ifndef OUTBOARD_SHIM_FRAMEWORK_GROUP_STEPS_H_
#define OUTBOARD_SHIM_FRAMEWORK_GROUP_STEPS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "outboard/v1beta1/group.pb.h"
#include "outboard/v1beta1/plan.pb.h"
#include "shim/cache/cluster_state.h"
#include "shim/framework/answer_check.h"
#include "shim/framework/host_client.h"
#include "shim/kube/objects.h"

namespace outboard::framework {

// The seam to the plugins at the points of groups, on any hosts: the scheduler implements it.
//
// Threading: the scheduling thread. Lifetime: one attempt.
// Errors: of the call, or INTERNAL for an answer that is wrong (group_check.h); see failed_host.
class GroupPoints {
 public:
  virtual ~GroupPoints() = default;
  // nullopt: no usable answer, and the failure policy allows to ignore that.
  virtual absl::StatusOr<std::optional<v1beta1::GeneratePlacementsResponse>> Generate(
      const v1beta1::PendingGroup& group, absl::Time deadline) = 0;
  // The plugins at placementScore of all hosts, with their weights; empty: Score is not called.
  virtual const std::vector<WeightedPlugin>& score_plugins() const = 0;
  // One answer per host that answered; others may be ignored. The header is filled in.
  virtual absl::StatusOr<std::vector<v1beta1::ScorePlacementsResponse>> Score(
      const v1beta1::ScorePlacementsRequest& request, absl::Time deadline) = 0;
  // After an error: the name of the host.
  virtual const std::string& failed_host() const = 0;
};

// How the steps ended.
struct GroupStepsOutcome {
  absl::Status status;
  // With an error: the host at fault; empty: the host that places groups.
  std::string failed_host;
  // The answer is a rejection by a plugin at a point of groups. PostFilter cannot help, because the
  // group does not lack room.
  bool rejected_at_point = false;
};

// Asks for the group of the request's pod, then for placements, and has the group placed on the
// best. `request` has everything but the step. The answer in `response` is a plan or a rejection,
// or what a request without steps gets for a pod that is scheduled individually; all parts that
// concern the steps are checked.
GroupStepsOutcome RunGroupSteps(HostClient* client, GroupPoints* points,
                                const cache::ClusterState& cluster, const kube::PodObject& pod,
                                absl::Time deadline, v1beta1::PlanRequest* request,
                                v1beta1::PlanResponse* response);

}  // namespace outboard::framework

#endif  // OUTBOARD_SHIM_FRAMEWORK_GROUP_STEPS_H_
