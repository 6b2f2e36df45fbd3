// GPUModelMatch: pods that name a GPU model go to nodes with that model, close to the right CPU.
#ifndef OUTBOARD_PLUGINS_GPU_MODEL_MATCH_GPU_MODEL_MATCH_H_
#define OUTBOARD_PLUGINS_GPU_MODEL_MATCH_GPU_MODEL_MATCH_H_

#include "plugin_host/sdk/plugin.h"

namespace outboard::gpu_model_match {

sdk::PluginDescriptor Descriptor();

}  // namespace outboard::gpu_model_match

#endif  // OUTBOARD_PLUGINS_GPU_MODEL_MATCH_GPU_MODEL_MATCH_H_
