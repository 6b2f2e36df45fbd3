// InterPodAffinity: places pods in the same zone, host or other domain as certain pods, or away
// from them.
#ifndef OUTBOARD_PLUGINS_INTER_POD_AFFINITY_INTER_POD_AFFINITY_H_
#define OUTBOARD_PLUGINS_INTER_POD_AFFINITY_INTER_POD_AFFINITY_H_

#include "plugin_host/sdk/plugin.h"

namespace outboard::inter_pod_affinity {

sdk::PluginDescriptor Descriptor();

}  // namespace outboard::inter_pod_affinity

#endif  // OUTBOARD_PLUGINS_INTER_POD_AFFINITY_INTER_POD_AFFINITY_H_
