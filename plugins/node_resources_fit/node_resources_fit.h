// NodeResourcesFit: the node must have what the pod asks for, and is scored by what it has left.
#ifndef OUTBOARD_PLUGINS_NODE_RESOURCES_FIT_NODE_RESOURCES_FIT_H_
#define OUTBOARD_PLUGINS_NODE_RESOURCES_FIT_NODE_RESOURCES_FIT_H_

#include "plugin_host/sdk/plugin.h"

namespace outboard::node_resources_fit {

sdk::PluginDescriptor Descriptor();

}  // namespace outboard::node_resources_fit

#endif  // OUTBOARD_PLUGINS_NODE_RESOURCES_FIT_NODE_RESOURCES_FIT_H_
