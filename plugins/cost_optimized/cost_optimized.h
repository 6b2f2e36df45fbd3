// CostOptimized: prefers cheap, spot and well used nodes; pods may wait for cheap hours.
#ifndef OUTBOARD_PLUGINS_COST_OPTIMIZED_COST_OPTIMIZED_H_
#define OUTBOARD_PLUGINS_COST_OPTIMIZED_COST_OPTIMIZED_H_

#include "plugin_host/sdk/plugin.h"

namespace outboard::cost_optimized {

sdk::PluginDescriptor Descriptor();

}  // namespace outboard::cost_optimized

#endif  // OUTBOARD_PLUGINS_COST_OPTIMIZED_COST_OPTIMIZED_H_
