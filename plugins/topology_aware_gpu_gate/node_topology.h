// How a node's GPUs are connected, from its labels and its annotation.
#ifndef OUTBOARD_PLUGINS_TOPOLOGY_AWARE_GPU_GATE_NODE_TOPOLOGY_H_
#define OUTBOARD_PLUGINS_TOPOLOGY_AWARE_GPU_GATE_NODE_TOPOLOGY_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/strings/string_view.h"
#include "outboard/v1beta1/types.pb.h"
#include "plugins/topology_aware_gpu_gate/gpu_islands.h"

namespace outboard::topology_aware_gpu_gate {

inline constexpr char kTopologyLabel[] = "nvidia.com/gpu-topology";
inline constexpr char kIslandLabelPrefix[] = "nvidia.com/gpu-island.";  // And the island's name.
inline constexpr char kIslandsAnnotation[] = "accelerator.sched.io/gpu-islands";

struct NodeTopology {
  Topology topology = Topology::kUnknown;
  // As far as known, NVLink connects all GPUs of the node; `islands` is empty then.
  bool one_island = false;
  struct Island {
    int64_t gpus = 0;
    sdk::GpuSet ids = 0;  // 0: unknown.
    friend bool operator==(const Island&, const Island&) = default;
  };
  std::vector<Island> islands;
  friend bool operator==(const NodeTopology&, const NodeTopology&) = default;

  // GPUs in the largest island of the empty node, which has `allocatable` GPUs.
  int64_t LargestIsland(int64_t allocatable) const;
};

// Called for each invalid value: key, value, expected format.
using OnMalformed =
    std::function<void(absl::string_view, absl::string_view, absl::string_view wanted)>;

// The topology comes from the label, else from the annotation. Islands come from the annotation,
// which has GPU ids, else from the labels. Without either, a node with NVLink or NVSwitch is one
// island. Pure.
NodeTopology ReadNodeTopology(const v1beta1::Node& node, const OnMalformed& malformed);

}  // namespace outboard::topology_aware_gpu_gate

#endif  // OUTBOARD_PLUGINS_TOPOLOGY_AWARE_GPU_GATE_NODE_TOPOLOGY_H_
