// Names of GPU models, as drivers, GPU Feature Discovery and people write them.
#ifndef OUTBOARD_PLUGINS_GPU_MODEL_MATCH_GPU_MODEL_H_
#define OUTBOARD_PLUGINS_GPU_MODEL_MATCH_GPU_MODEL_H_

#include <string>

#include "absl/strings/string_view.h"

namespace outboard::gpu_model_match {

// The name of a model, normalized for comparison.
struct GpuModel {
  // Lower case, without the vendor prefix `NVIDIA-`: newer drivers report `NVIDIA-A100-SXM4-80GB`,
  // older ones `A100-SXM4-80GB` for the same GPU.
  std::string name;
  // `name` without GPU Feature Discovery's suffix for shared and partitioned GPUs: `-SHARED`,
  // `-MIG-1g.5gb`. Equal to `name` without such a suffix.
  std::string base;
};

// Pure. Empty for an empty text, or the vendor alone.
GpuModel ParseGpuModel(absl::string_view text);

}  // namespace outboard::gpu_model_match

#endif  // OUTBOARD_PLUGINS_GPU_MODEL_MATCH_GPU_MODEL_H_
