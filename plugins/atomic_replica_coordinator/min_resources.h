// What a group wants to be free before anybody looks for places.
#ifndef OUTBOARD_PLUGINS_ATOMIC_REPLICA_COORDINATOR_MIN_RESOURCES_H_
#define OUTBOARD_PLUGINS_ATOMIC_REPLICA_COORDINATOR_MIN_RESOURCES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "plugin_host/sdk/node_table.h"
#include "proto/outboard/v1alpha1/types.pb.h"

namespace outboard::atomic_replica_coordinator {

// What of the resources, and of places for `size` pods, all nodes together do not have free:
// `24 of 32 nvidia.com/gpu are free (minResources)`; empty: nothing is missing. What members of the
// group have counts as free. As scheduler-plugins counts, so in whatever pieces it is. Pure.
std::string ShortOf(const v1alpha1::ResourceList& wanted, int64_t size, const sdk::NodeTable& nodes,
                    const std::vector<const sdk::PodRecord*>& members);

}  // namespace outboard::atomic_replica_coordinator

#endif  // OUTBOARD_PLUGINS_ATOMIC_REPLICA_COORDINATOR_MIN_RESOURCES_H_
