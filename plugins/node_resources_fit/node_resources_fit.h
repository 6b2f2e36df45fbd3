// NodeResourcesFit: the node must have the requested resources; scores nodes by their use.
#ifndef OUTBOARD_PLUGINS_NODE_RESOURCES_FIT_NODE_RESOURCES_FIT_H_
#define OUTBOARD_PLUGINS_NODE_RESOURCES_FIT_NODE_RESOURCES_FIT_H_

#include "plugin_host/sdk/plugin.h"

namespace outboard::node_resources_fit {

sdk::PluginDescriptor Descriptor();

}  // namespace outboard::node_resources_fit

#endif  // OUTBOARD_PLUGINS_NODE_RESOURCES_FIT_NODE_RESOURCES_FIT_H_
