// NodePorts: rejects nodes where a requested host port is in use.
#ifndef OUTBOARD_PLUGINS_NODE_PORTS_NODE_PORTS_H_
#define OUTBOARD_PLUGINS_NODE_PORTS_NODE_PORTS_H_

#include "plugin_host/sdk/plugin.h"

namespace outboard::node_ports {

sdk::PluginDescriptor Descriptor();

}  // namespace outboard::node_ports

#endif  // OUTBOARD_PLUGINS_NODE_PORTS_NODE_PORTS_H_
