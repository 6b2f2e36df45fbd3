// Which events may let a pod keep its spread constraints.
#ifndef OUTBOARD_PLUGINS_POD_TOPOLOGY_SPREAD_HINTS_H_
#define OUTBOARD_PLUGINS_POD_TOPOLOGY_SPREAD_HINTS_H_

#include <vector>

#include "plugin_host/sdk/queueing_hint.h"
#include "plugins/pod_topology_spread/constraints.h"

namespace outboard::pod_topology_spread {

// kube-scheduler's hints (v1.36). Pure.

// False if no constraint can make the event help the pod: it is about another pod without a place,
// or of another namespace.
bool MayConcern(const v1alpha1::Pod& pod, const sdk::ObjectChange& change);

// What an event that may concern the pod means to it. `constraints`: its hard ones, or the
// profile's.
sdk::Hint HintOf(const v1alpha1::Pod& pod, const std::vector<Constraint>& constraints,
                 const sdk::ObjectChange& change);

}  // namespace outboard::pod_topology_spread

#endif  // OUTBOARD_PLUGINS_POD_TOPOLOGY_SPREAD_HINTS_H_
