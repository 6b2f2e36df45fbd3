#include "plugins/topology_aware_gpu_gate/node_topology.h"

#include <algorithm>

namespace outboard::topology_aware_gpu_gate {

int64_t NodeTopology::LargestIsland(int64_t allocatable) const {
  if (one_island) return allocatable;
  int64_t largest = 0;
  for (const sdk::GpuIsland& island : islands) largest = std::max(largest, island.gpus);
  return std::min(largest, allocatable);
}

NodeTopology TopologyOf(const sdk::NodeFacts& facts, bool pass_unknown) {
  NodeTopology result;
  result.topology = facts.topology.value.value_or(Topology::kUnknown);
  result.unknown = !facts.topology.known() && !facts.islands.known();
  if (facts.islands.known()) {
    result.islands = *facts.islands.value;
  } else {
    result.one_island = result.topology == Topology::kNvlink ||
                        result.topology == Topology::kNvswitch || (result.unknown && pass_unknown);
  }
  return result;
}

}  // namespace outboard::topology_aware_gpu_gate
