// NodeName: a pod that names a node goes to no other.
#ifndef OUTBOARD_PLUGINS_NODE_NAME_NODE_NAME_H_
#define OUTBOARD_PLUGINS_NODE_NAME_NODE_NAME_H_

#include "plugin_host/sdk/plugin.h"

namespace outboard::node_name {

sdk::PluginDescriptor Descriptor();

}  // namespace outboard::node_name

#endif  // OUTBOARD_PLUGINS_NODE_NAME_NODE_NAME_H_
