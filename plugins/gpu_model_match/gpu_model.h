// Names of GPU models, as drivers, GPU Feature Discovery and people write them.
#ifndef OUTBOARD_PLUGINS_GPU_MODEL_MATCH_GPU_MODEL_H_
#define OUTBOARD_PLUGINS_GPU_MODEL_MATCH_GPU_MODEL_H_

#include <string>

#include "absl/strings/string_view.h"

namespace outboard::gpu_model_match {

// A model's name, ready to be compared.
struct GpuModel {
  // In lower case, without the vendor's `NVIDIA-` in front: the same GPU is `NVIDIA-A100-SXM4-80GB`
  // to newer drivers and `A100-SXM4-80GB` to older ones.
  std::string name;
  // That without what GPU Feature Discovery adds for shared and partitioned GPUs: `-SHARED`,
  // `-MIG-1g.5gb`. The same as `name` where there is nothing of this.
  std::string base;
};

// Pure. Empty for an empty text, and for a vendor alone.
GpuModel ParseGpuModel(absl::string_view text);

}  // namespace outboard::gpu_model_match

#endif  // OUTBOARD_PLUGINS_GPU_MODEL_MATCH_GPU_MODEL_H_
