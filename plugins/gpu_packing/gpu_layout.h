// Which pods use which of a node's GPUs, as far as known. Pure.
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

// A pod's demand for GPUs, independent of the node.
struct PodGpus {
  int32_t gpus = 0;         // 0: none. At most kMaxGpus + 1, which fits nowhere.
  int32_t milli = 0;        // Of each, 1..1000; 0: only `memory_mib` counts.
  int64_t memory_mib = 0;   // Of each GPU; 0: only `milli` counts.
  bool annotated = false;   // Requested by an annotation, so no resource of the node counts it.
  bool holds_only = false;  // Uses nothing, but keeps its GPU for pods that share it.

  // Its part of each GPU on a node whose GPUs have this much memory (0: unknown; then a pod that
  // requests memory takes all). More than 1000: the GPUs are too small.
  int32_t MilliOn(int64_t gpu_memory_mib) const;
  friend bool operator==(const PodGpus&, const PodGpus&) = default;
};

// A pod on a node.
struct Tenant {
  int64_t created = 0;  // Seconds; with `uid`, the order of the layout.
  absl::string_view uid;
  int32_t gpus = 0;
  int32_t milli = 0;
  bool holds_only = false;
  std::vector<std::string> devices;  // Names of its known GPUs; may be fewer.
};

// Returns what is idle on each of `gpus` GPUs, 0..1000. Pods with known devices are placed on those
// (names are numbered in order of appearance; a node's GPUs are interchangeable). The others are
// placed in order of creation, each on the GPUs with the least room that is enough, or else with
// the most room. Sorts `tenants`.
void LayOut(std::vector<Tenant>* tenants, int32_t gpus, std::vector<int32_t>* idle);

}  // namespace outboard::gpu_packing

#endif  // OUTBOARD_PLUGINS_GPU_PACKING_GPU_LAYOUT_H_
