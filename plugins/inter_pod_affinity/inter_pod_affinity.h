// InterPodAffinity: pods that want to share a zone, a host or any other domain with certain pods,
// or to keep away from them.
#ifndef OUTBOARD_PLUGINS_INTER_POD_AFFINITY_INTER_POD_AFFINITY_H_
#define OUTBOARD_PLUGINS_INTER_POD_AFFINITY_INTER_POD_AFFINITY_H_

#include "plugin_host/sdk/plugin.h"

namespace outboard::inter_pod_affinity {

sdk::PluginDescriptor Descriptor();

}  // namespace outboard::inter_pod_affinity

#endif  // OUTBOARD_PLUGINS_INTER_POD_AFFINITY_INTER_POD_AFFINITY_H_
