// CostAwarePreemptor: makes room for a pod by having those leave whose leaving loses the least
// work.
#ifndef OUTBOARD_PLUGINS_COST_AWARE_PREEMPTOR_COST_AWARE_PREEMPTOR_H_
#define OUTBOARD_PLUGINS_COST_AWARE_PREEMPTOR_COST_AWARE_PREEMPTOR_H_

#include "plugin_host/sdk/plugin.h"

namespace outboard::cost_aware_preemptor {

sdk::PluginDescriptor Descriptor();

}  // namespace outboard::cost_aware_preemptor

#endif  // OUTBOARD_PLUGINS_COST_AWARE_PREEMPTOR_COST_AWARE_PREEMPTOR_H_
