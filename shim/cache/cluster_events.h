// What changed in an object, as events of the scheduling queue.
#ifndef OUTBOARD_SHIM_CACHE_CLUSTER_EVENTS_H_
#define OUTBOARD_SHIM_CACHE_CLUSTER_EVENTS_H_

#include <optional>
#include <vector>

#include "shim/kube/objects.h"
#include "shim/queue/cluster_event.h"

namespace outboard::cache {

// One event for each kind of change that can make a node better for some pod. Empty if no such
// change happened (a heartbeat, a cordon).
std::vector<queue::ClusterEvent> NodeUpdateEvents(const kube::NodeObject& before,
                                                  const kube::NodeObject& after);

// One event for each kind of change to a pod, unscheduled or with a node. Any other change of the
// spec or metadata is one general update. A change of the status alone is not an event, so that the
// shim's own writes do not wake a pod.
std::vector<queue::ClusterEvent> PodUpdateEvents(const kube::PodObject& before,
                                                 const kube::PodObject& after);

// kube-scheduler's event for an object of another kind that was added, updated or deleted. Empty
// for kinds whose changes wake no pod (services, workloads, budgets).
std::optional<queue::ClusterEvent> ObjectEvent(const kube::ClusterObject& object,
                                               queue::Action action);

}  // namespace outboard::cache

#endif  // OUTBOARD_SHIM_CACHE_CLUSTER_EVENTS_H_
