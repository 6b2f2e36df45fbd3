// Sets of GPUs of a node that are connected by NVLink: which of them have room. Their text format
// is the SDK's.
#ifndef OUTBOARD_PLUGINS_TOPOLOGY_AWARE_GPU_GATE_GPU_ISLANDS_H_
#define OUTBOARD_PLUGINS_TOPOLOGY_AWARE_GPU_GATE_GPU_ISLANDS_H_

#include <cstdint>
#include <vector>

#include "plugin_host/sdk/node_facts/gpu_islands.h"

namespace outboard::topology_aware_gpu_gate {

using Topology = sdk::GpuTopology;
using sdk::FormatIslands;
using sdk::GpuIslands;
using sdk::ParseIslands;
using sdk::ParseTopology;
using sdk::TopologyName;

// The GPUs of an island, and the number of them known to be in use.
struct IslandUse {
  int64_t gpus = 0;
  int64_t used = 0;
};
// The maximum over the islands of GPUs not known to be in use. As many may be free in one island,
// if the node has as many free GPUs.
int64_t Roomiest(const std::vector<IslandUse>& islands);
// Whether an island has `wanted` free GPUs for every placement of the `hidden` GPUs, which are in
// use at unknown places.
bool MustFit(const std::vector<IslandUse>& islands, int64_t wanted, int64_t free, int64_t hidden);

}  // namespace outboard::topology_aware_gpu_gate

#endif  // OUTBOARD_PLUGINS_TOPOLOGY_AWARE_GPU_GATE_GPU_ISLANDS_H_
