// Sets of GPUs of a node that are connected by NVLink, and their text format.
#ifndef OUTBOARD_PLUGINS_TOPOLOGY_AWARE_GPU_GATE_GPU_ISLANDS_H_
#define OUTBOARD_PLUGINS_TOPOLOGY_AWARE_GPU_GATE_GPU_ISLANDS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "plugin_host/sdk/gpu_devices.h"

namespace outboard::topology_aware_gpu_gate {

// How the GPUs of a node are connected.
enum class Topology { kUnknown, kNvlink, kNvswitch, kPcie };

// `nvlink`, `nvswitch`, `pcie`, case-insensitive; kUnknown for any other text.
Topology ParseTopology(absl::string_view text);
// The same names in lower case, or `unknown`.
const char* TopologyName(Topology topology);

// The GPUs of a node by island. In an island every pair of GPUs has NVLink. No GPU is in two
// islands.
struct GpuIslands {
  Topology topology = Topology::kUnknown;
  std::vector<sdk::GpuSet> islands;
  friend bool operator==(const GpuIslands&, const GpuIslands&) = default;
};

// Parses the annotation's value: the topology, a space, and islands separated by `;`, each a list
// of GPU ids. `nvlink 0-3;4-7`, `nvswitch 0-7`, `pcie 0;1;2;3`. nullopt for any other text.
std::optional<GpuIslands> ParseIslands(absl::string_view text);
std::string FormatIslands(const GpuIslands& islands);

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
