// GPUPacking: keeps idle GPU capacity in pieces that the workload can use.
#ifndef OUTBOARD_PLUGINS_GPU_PACKING_GPU_PACKING_H_
#define OUTBOARD_PLUGINS_GPU_PACKING_GPU_PACKING_H_

#include "plugin_host/sdk/plugin.h"

namespace outboard::gpu_packing {

sdk::PluginDescriptor Descriptor();

}  // namespace outboard::gpu_packing

#endif  // OUTBOARD_PLUGINS_GPU_PACKING_GPU_PACKING_H_
