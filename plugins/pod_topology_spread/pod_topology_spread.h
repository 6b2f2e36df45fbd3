// PodTopologySpread: spreads pods over zones, nodes and other domains, by their constraints or the
// profile's defaults.
#ifndef OUTBOARD_PLUGINS_POD_TOPOLOGY_SPREAD_POD_TOPOLOGY_SPREAD_H_
#define OUTBOARD_PLUGINS_POD_TOPOLOGY_SPREAD_POD_TOPOLOGY_SPREAD_H_

#include "plugin_host/sdk/plugin.h"

namespace outboard::pod_topology_spread {

sdk::PluginDescriptor Descriptor();

}  // namespace outboard::pod_topology_spread

#endif  // OUTBOARD_PLUGINS_POD_TOPOLOGY_SPREAD_POD_TOPOLOGY_SPREAD_H_
