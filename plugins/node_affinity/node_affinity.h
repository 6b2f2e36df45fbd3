// NodeAffinity: nodeSelector, required and preferred node affinity, and the profile's affinity.
#ifndef OUTBOARD_PLUGINS_NODE_AFFINITY_NODE_AFFINITY_H_
#define OUTBOARD_PLUGINS_NODE_AFFINITY_NODE_AFFINITY_H_

#include "plugin_host/sdk/plugin.h"

namespace outboard::node_affinity {

sdk::PluginDescriptor Descriptor();

}  // namespace outboard::node_affinity

#endif  // OUTBOARD_PLUGINS_NODE_AFFINITY_NODE_AFFINITY_H_
