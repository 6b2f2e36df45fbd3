// TopologyAwareGPUGate: places multi-GPU pods on nodes whose GPUs have fast connections.
#ifndef OUTBOARD_PLUGINS_TOPOLOGY_AWARE_GPU_GATE_TOPOLOGY_AWARE_GPU_GATE_H_
#define OUTBOARD_PLUGINS_TOPOLOGY_AWARE_GPU_GATE_TOPOLOGY_AWARE_GPU_GATE_H_

#include "plugin_host/sdk/plugin.h"

namespace outboard::topology_aware_gpu_gate {

sdk::PluginDescriptor Descriptor();

}  // namespace outboard::topology_aware_gpu_gate

#endif  // OUTBOARD_PLUGINS_TOPOLOGY_AWARE_GPU_GATE_TOPOLOGY_AWARE_GPU_GATE_H_
