// Which pods count on the nodes of a call to a host without a cluster cache.
#ifndef OUTBOARD_SHIM_HOSTS_PODS_OF_CALL_H_
#define OUTBOARD_SHIM_HOSTS_PODS_OF_CALL_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "outboard/v1beta1/filter.pb.h"
#include "shim/cache/cluster_state.h"

namespace outboard::hosts {

// By slot; see ClusterState::NominatedBeside.
using NominatedPods = absl::flat_hash_map<uint32_t, std::vector<kube::PodPtr>>;

// The sum of the pods' requests, and their number. `out` is empty.
void FillRequested(const std::vector<kube::PodPtr>& pods, v1beta1::ResourceList* out);

// Visits the simulated nodes in order, each with the pods that it then has.
//
// Errors: INTERNAL at the first free slot; the nodes before it were visited.
absl::Status ForEachSimulated(
    const cache::ClusterState& cluster, const v1beta1::NodeSimulation& simulation,
    absl::FunctionRef<void(uint32_t slot, const std::vector<kube::PodPtr>& pods)> visit);

// The error for a slot without a node.
absl::Status NoNodeIn(uint32_t slot);

}  // namespace outboard::hosts

#endif  // OUTBOARD_SHIM_HOSTS_PODS_OF_CALL_H_
