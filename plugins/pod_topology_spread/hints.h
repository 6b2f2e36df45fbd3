// Queueing hints: which events may let a pod satisfy its spread constraints.
#ifndef OUTBOARD_PLUGINS_POD_TOPOLOGY_SPREAD_HINTS_H_
#define OUTBOARD_PLUGINS_POD_TOPOLOGY_SPREAD_HINTS_H_

#include <vector>

#include "plugin_host/sdk/queueing_hint.h"
#include "plugins/pod_topology_spread/constraints.h"

namespace outboard::pod_topology_spread {

// kube-scheduler's hints (v1.36). Pure.

// False if the event cannot help the pod under any constraint: it concerns another pod without a
// node, or in another namespace.
bool MayConcern(const v1beta1::Pod& pod, const sdk::ObjectChange& change);

// The hint for an event for which MayConcern is true. `constraints`: the pod's hard constraints, or
// the profile's.
sdk::Hint HintOf(const v1beta1::Pod& pod, const std::vector<Constraint>& constraints,
                 const sdk::ObjectChange& change);

}  // namespace outboard::pod_topology_spread

#endif  // OUTBOARD_PLUGINS_POD_TOPOLOGY_SPREAD_HINTS_H_
