// GPULoad's arguments.
#ifndef OUTBOARD_PLUGINS_GPU_LOAD_ARGS_H_
#define OUTBOARD_PLUGINS_GPU_LOAD_ARGS_H_

#include <string>

#include "absl/time/time.h"
#include "plugin_host/sdk/args_reader.h"
#include "plugin_host/sdk/gpu_resources.h"
#include "plugins/gpu_load/load_reader.h"

namespace outboard::gpu_load {

std::string ArgsSchema();

struct Args {
  ReaderOptions reader;
  // How long after its start a pod's use is missing from the samples.
  absl::Duration settling_time = absl::Minutes(1);
  double estimated_use = 1;  // 0..1, of each GPU of such a pod.
  double memory_weight = 0.3;
  sdk::GpuResources gpus;
};

// Reports problems with the path of their field.
Args ReadArgs(const sdk::ArgsObject& root);

}  // namespace outboard::gpu_load

#endif  // OUTBOARD_PLUGINS_GPU_LOAD_ARGS_H_
