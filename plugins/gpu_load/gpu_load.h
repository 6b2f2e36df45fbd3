// GPULoad: prefers nodes with idle GPUs, by DCGM's metrics in Prometheus.
#ifndef OUTBOARD_PLUGINS_GPU_LOAD_GPU_LOAD_H_
#define OUTBOARD_PLUGINS_GPU_LOAD_GPU_LOAD_H_

#include <functional>
#include <memory>

#include "plugin_host/sdk/plugin.h"
#include "plugins/gpu_load/load_reader.h"

namespace outboard::gpu_load {

sdk::PluginDescriptor Descriptor();

// With another source of snapshots; for tests.
using MakeSource =
    std::function<std::shared_ptr<LoadSource>(const ReaderOptions& options, sdk::Metrics* metrics)>;
sdk::PluginDescriptor DescriptorWith(MakeSource make_source);

}  // namespace outboard::gpu_load

#endif  // OUTBOARD_PLUGINS_GPU_LOAD_GPU_LOAD_H_
