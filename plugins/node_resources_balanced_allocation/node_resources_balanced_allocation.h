// NodeResourcesBalancedAllocation: prefers nodes whose resource use the pod balances.
#ifndef OUTBOARD_PLUGINS_NODE_RESOURCES_BALANCED_ALLOCATION_NODE_RESOURCES_BALANCED_ALLOCATION_H_
#define OUTBOARD_PLUGINS_NODE_RESOURCES_BALANCED_ALLOCATION_NODE_RESOURCES_BALANCED_ALLOCATION_H_

#include "plugin_host/sdk/plugin.h"

namespace outboard::node_resources_balanced_allocation {

sdk::PluginDescriptor Descriptor();

}  // namespace outboard::node_resources_balanced_allocation

#endif  // OUTBOARD_PLUGINS_NODE_RESOURCES_BALANCED_ALLOCATION_NODE_RESOURCES_BALANCED_ALLOCATION_H_
