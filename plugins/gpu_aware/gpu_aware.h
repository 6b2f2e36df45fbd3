// GPUAware: selects nodes with enough free GPUs of enough memory, and prefers better GPUs.
#ifndef OUTBOARD_PLUGINS_GPU_AWARE_GPU_AWARE_H_
#define OUTBOARD_PLUGINS_GPU_AWARE_GPU_AWARE_H_

#include "plugin_host/sdk/plugin.h"

namespace outboard::gpu_aware {

sdk::PluginDescriptor Descriptor();

}  // namespace outboard::gpu_aware

#endif  // OUTBOARD_PLUGINS_GPU_AWARE_GPU_AWARE_H_
