// NodeUnschedulable: rejects cordoned nodes, unless the pod tolerates the cordon.
#ifndef OUTBOARD_PLUGINS_NODE_UNSCHEDULABLE_NODE_UNSCHEDULABLE_H_
#define OUTBOARD_PLUGINS_NODE_UNSCHEDULABLE_NODE_UNSCHEDULABLE_H_

#include "plugin_host/sdk/plugin.h"

namespace outboard::node_unschedulable {

sdk::PluginDescriptor Descriptor();

}  // namespace outboard::node_unschedulable

#endif  // OUTBOARD_PLUGINS_NODE_UNSCHEDULABLE_NODE_UNSCHEDULABLE_H_
