// How a node's GPUs are connected, in the form in which the plugin compares it with pods.
#ifndef OUTBOARD_PLUGINS_TOPOLOGY_AWARE_GPU_GATE_NODE_TOPOLOGY_H_
#define OUTBOARD_PLUGINS_TOPOLOGY_AWARE_GPU_GATE_NODE_TOPOLOGY_H_

#include <cstdint>
#include <vector>

#include "plugin_host/sdk/node_facts/facts.h"
#include "plugin_host/sdk/node_facts/node_labels.h"
#include "plugins/topology_aware_gpu_gate/gpu_islands.h"

namespace outboard::topology_aware_gpu_gate {

using sdk::node_labels::kIslandsAnnotation;

struct NodeTopology {
  Topology topology = Topology::kUnknown;
  // As far as known, NVLink connects all GPUs of the node; `islands` is empty then.
  bool one_island = false;
  // Neither topology nor islands are known.
  bool unknown = true;
  std::vector<sdk::GpuIsland> islands;
  friend bool operator==(const NodeTopology&, const NodeTopology&) = default;

  // GPUs in the largest island of the empty node, which has `allocatable` GPUs.
  int64_t LargestIsland(int64_t allocatable) const;
};

// `pass_unknown`: a node of which nothing is known may be one island. Pure.
NodeTopology TopologyOf(const sdk::NodeFacts& facts, bool pass_unknown);

}  // namespace outboard::topology_aware_gpu_gate

#endif  // OUTBOARD_PLUGINS_TOPOLOGY_AWARE_GPU_GATE_NODE_TOPOLOGY_H_
