// Objectives: scores nodes by weighted cost, network distance, GPU and CPU use, within hard bounds.
#ifndef OUTBOARD_PLUGINS_OBJECTIVES_OBJECTIVES_H_
#define OUTBOARD_PLUGINS_OBJECTIVES_OBJECTIVES_H_

#include "plugin_host/sdk/plugin.h"

namespace outboard::objectives {

sdk::PluginDescriptor Descriptor();

}  // namespace outboard::objectives

#endif  // OUTBOARD_PLUGINS_OBJECTIVES_OBJECTIVES_H_
