// Checks of the hosts' answers about groups of pods, before they are used.
#ifndef OUTBOARD_SHIM_FRAMEWORK_GROUP_CHECK_H_
#define OUTBOARD_SHIM_FRAMEWORK_GROUP_CHECK_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "outboard/v1beta1/group.pb.h"
#include "outboard/v1beta1/plan.pb.h"
#include "shim/cache/cluster_state.h"
#include "shim/framework/answer_check.h"
#include "shim/kube/objects.h"

namespace outboard::framework {

// All functions are pure. Errors: INTERNAL, with the fault.

// Whether the group is one of `pod`: the pod first, other pods of its namespace that wait for a
// node, and numbers that fit.
absl::Status CheckPendingGroup(const v1beta1::PendingGroup& group, const kube::PodObject& pod,
                               const cache::ClusterState& cluster);

// Whether placements have names and nodes of the cluster; a rejection has to come from the plugin.
absl::Status CheckGeneratedPlacements(const v1beta1::GeneratePlacementsResponse& response,
                                      const std::string& plugin,
                                      const cache::ClusterState& cluster);

// Whether the host tried these sets of nodes with this group, and at least one fits.
absl::Status CheckTriedPlacements(const v1beta1::GroupTrial& trial,
                                  const v1beta1::PendingGroup& group,
                                  const v1beta1::GroupNodeSets& node_sets);

// Whether the answer of these plugins, in the profile's order, covers all placements.
absl::Status CheckPlacementScores(const v1beta1::ScorePlacementsResponse& response,
                                  const std::vector<std::string>& plugins, size_t num_placements);

// Whether a plan places enough pods of this group, and only on nodes of the set that it names.
absl::Status CheckPlacedOn(const v1beta1::CyclePlan& plan, const v1beta1::PendingGroup& group,
                           const v1beta1::GroupNodeSets& node_sets);

}  // namespace outboard::framework

#endif  // OUTBOARD_SHIM_FRAMEWORK_GROUP_CHECK_H_
