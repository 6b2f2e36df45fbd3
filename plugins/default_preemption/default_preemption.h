// DefaultPreemption: makes room for a pod by evicting pods of lower priority.
#ifndef OUTBOARD_PLUGINS_DEFAULT_PREEMPTION_DEFAULT_PREEMPTION_H_
#define OUTBOARD_PLUGINS_DEFAULT_PREEMPTION_DEFAULT_PREEMPTION_H_

#include "plugin_host/sdk/plugin.h"

namespace outboard::default_preemption {

sdk::PluginDescriptor Descriptor();

}  // namespace outboard::default_preemption

#endif  // OUTBOARD_PLUGINS_DEFAULT_PREEMPTION_DEFAULT_PREEMPTION_H_
