// NodeName: rejects every node except the node in the pod's spec.nodeName.
#ifndef OUTBOARD_PLUGINS_NODE_NAME_NODE_NAME_H_
#define OUTBOARD_PLUGINS_NODE_NAME_NODE_NAME_H_

#include "plugin_host/sdk/plugin.h"

namespace outboard::node_name {

sdk::PluginDescriptor Descriptor();

}  // namespace outboard::node_name

#endif  // OUTBOARD_PLUGINS_NODE_NAME_NODE_NAME_H_
