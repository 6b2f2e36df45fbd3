// Which pods are on which of a node's GPUs, as far as anybody says. Pure.
#ifndef OUTBOARD_PLUGINS_GPU_PACKING_GPU_LAYOUT_H_
#define OUTBOARD_PLUGINS_GPU_PACKING_GPU_LAYOUT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "plugins/gpu_packing/fragmentation.h"

namespace outboard::gpu_packing {

// Nodes with more GPUs are not laid out.
inline constexpr int32_t kMaxGpus = 128;

// What a pod says of the GPUs that it wants, whatever the node.
struct PodGpus {
  int32_t gpus = 0;         // 0: it wants none. At most kMaxGpus + 1, which fits nowhere.
  int32_t milli = 0;        // Of each, 1..1000; 0: `memory_mib` alone tells.
  int64_t memory_mib = 0;   // Of each GPU; 0: `milli` alone tells.
  bool annotated = false;   // An annotation asks, so no resource of the node counts it.
  bool holds_only = false;  // Uses nothing, but keeps its GPU for pods that share it.

  // What it takes of each GPU of a node whose GPUs have so much memory (0: unknown; then a pod that
  // asks for memory takes all). More than 1000: the GPUs are too small.
  int32_t MilliOn(int64_t gpu_memory_mib) const;
  friend bool operator==(const PodGpus&, const PodGpus&) = default;
};

// A pod on a node.
struct Tenant {
  int64_t created = 0;  // Seconds; with `uid` the order in which pods are laid out.
  absl::string_view uid;
  int32_t gpus = 0;
  int32_t milli = 0;
  bool holds_only = false;
  std::vector<std::string> devices;  // Names of GPUs that it is known to be on; may be fewer.
};

// What is idle on each of `gpus` GPUs, 0..1000. Pods whose devices are known are on those (names
// are numbered as they appear; GPUs of a node are all alike). The others are laid out in the order
// of creation, each on the GPUs with the least room that is enough, or if none has it, with the
// most. `tenants` is sorted.
void LayOut(std::vector<Tenant>* tenants, int32_t gpus, std::vector<int32_t>* idle);

}  // namespace outboard::gpu_packing

#endif  // OUTBOARD_PLUGINS_GPU_PACKING_GPU_LAYOUT_H_
