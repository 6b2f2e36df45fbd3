// GPUs of a node that reach each other over NVLink, and how people and probes write them down.
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

// `nvlink`, `nvswitch`, `pcie`, in any case; kUnknown for anything else.
Topology ParseTopology(absl::string_view text);
// As above, in lower case; `unknown`.
const char* TopologyName(Topology topology);

// The GPUs of a node by island: a set in which each reaches each other over NVLink. No GPU is in
// two.
struct GpuIslands {
  Topology topology = Topology::kUnknown;
  std::vector<sdk::GpuSet> islands;
  friend bool operator==(const GpuIslands&, const GpuIslands&) = default;
};

// The annotation's value: the topology, a space, islands with `;` between them, each a list of GPU
// ids. `nvlink 0-3;4-7`, `nvswitch 0-7`, `pcie 0;1;2;3`. None for anything else.
std::optional<GpuIslands> ParseIslands(absl::string_view text);
std::string FormatIslands(const GpuIslands& islands);

// How many GPUs an island has, and how many of them are known to be in use.
struct IslandUse {
  int64_t gpus = 0;
  int64_t used = 0;
};
// The most GPUs of an island that nobody is known to use: as many may be free together, if as many
// are free on the node.
int64_t Roomiest(const std::vector<IslandUse>& islands);
// Whether some island has them wherever the `hidden` GPUs are that are in use at unknown places.
bool MustFit(const std::vector<IslandUse>& islands, int64_t wanted, int64_t free, int64_t hidden);

}  // namespace outboard::topology_aware_gpu_gate

#endif  // OUTBOARD_PLUGINS_TOPOLOGY_AWARE_GPU_GATE_GPU_ISLANDS_H_
