// NodeVolumeLimits: rejects nodes where a CSI driver cannot attach the pod's volumes.
#ifndef OUTBOARD_PLUGINS_NODE_VOLUME_LIMITS_NODE_VOLUME_LIMITS_H_
#define OUTBOARD_PLUGINS_NODE_VOLUME_LIMITS_NODE_VOLUME_LIMITS_H_

#include "plugin_host/sdk/plugin.h"

namespace outboard::node_volume_limits {

sdk::PluginDescriptor Descriptor();

}  // namespace outboard::node_volume_limits

#endif  // OUTBOARD_PLUGINS_NODE_VOLUME_LIMITS_NODE_VOLUME_LIMITS_H_
