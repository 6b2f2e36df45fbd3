// The resources that must be free before a search for a group's places starts.
#ifndef OUTBOARD_PLUGINS_ATOMIC_REPLICA_COORDINATOR_MIN_RESOURCES_H_
#define OUTBOARD_PLUGINS_ATOMIC_REPLICA_COORDINATOR_MIN_RESOURCES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "outboard/v1beta1/types.pb.h"
#include "plugin_host/sdk/node_table.h"

namespace outboard::atomic_replica_coordinator {

// Returns which resources, and places for `size` pods, are not free on all nodes together:
// `24 of 32 nvidia.com/gpu are free (minResources)`; empty: nothing is missing. Resources of the
// group's own members count as free. Like scheduler-plugins, it ignores fragmentation. Pure.
std::string ShortOf(const v1beta1::ResourceList& wanted, int64_t size, const sdk::NodeTable& nodes,
                    const std::vector<const sdk::PodRecord*>& members);

}  // namespace outboard::atomic_replica_coordinator

#endif  // OUTBOARD_PLUGINS_ATOMIC_REPLICA_COORDINATOR_MIN_RESOURCES_H_
