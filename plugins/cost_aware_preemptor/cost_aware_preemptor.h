// CostAwarePreemptor: makes room for a pod by evicting the pods that lose the least work.
#ifndef OUTBOARD_PLUGINS_COST_AWARE_PREEMPTOR_COST_AWARE_PREEMPTOR_H_
#define OUTBOARD_PLUGINS_COST_AWARE_PREEMPTOR_COST_AWARE_PREEMPTOR_H_

#include "plugin_host/sdk/plugin.h"

namespace outboard::cost_aware_preemptor {

sdk::PluginDescriptor Descriptor();

}  // namespace outboard::cost_aware_preemptor

#endif  // OUTBOARD_PLUGINS_COST_AWARE_PREEMPTOR_COST_AWARE_PREEMPTOR_H_
