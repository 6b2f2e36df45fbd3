// What changed about an object, in the queue's terms.
#ifndef OUTBOARD_SHIM_CYCLE_CLUSTER_EVENTS_H_
#define OUTBOARD_SHIM_CYCLE_CLUSTER_EVENTS_H_

#include <optional>
#include <vector>

#include "shim/kube/objects.h"
#include "shim/queue/cluster_event.h"

namespace outboard::cycle {

// One event for each kind of change that can make a node better for some pod; none if nothing of
// that kind changed (a heartbeat, a cordon).
std::vector<queue::ClusterEvent> NodeUpdateEvents(const kube::NodeObject& before,
                                                  const kube::NodeObject& after);

// One event for each kind of change to a pod: of an unscheduled pod, or of one that has a node. A
// change of anything else in the spec or metadata is one general update; a change of the status
// alone is no event, so that our own writes do not wake a pod.
std::vector<queue::ClusterEvent> PodUpdateEvents(const kube::PodObject& before,
                                                 const kube::PodObject& after);

// What kube-scheduler makes of an object of another kind that came, changed or went; nothing for
// kinds whose changes wake no pod (services, workloads, budgets).
std::optional<queue::ClusterEvent> ObjectEvent(const kube::ClusterObject& object,
                                               queue::Action action);

}  // namespace outboard::cycle

#endif  // OUTBOARD_SHIM_CYCLE_CLUSTER_EVENTS_H_
