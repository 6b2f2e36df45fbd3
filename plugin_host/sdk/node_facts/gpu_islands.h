// How the GPUs of a node are connected, and the text format in which a probe publishes it.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_NODE_FACTS_GPU_ISLANDS_H_
#define OUTBOARD_PLUGIN_HOST_SDK_NODE_FACTS_GPU_ISLANDS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "plugin_host/sdk/gpu_devices.h"

namespace outboard::sdk {

// kNvlink: links between GPUs; kNvswitch: all GPUs of the baseboard through switches; kPcie: at
// most bridges between pairs of cards.
enum class GpuTopology { kUnknown, kNvlink, kNvswitch, kPcie };

// `nvlink`, `nvswitch`, `pcie`, case-insensitive; kUnknown for any other text.
GpuTopology ParseTopology(absl::string_view text);
// The same names in lower case, or `unknown`.
const char* TopologyName(GpuTopology topology);

// The GPUs of a node by island. In an island every pair of GPUs has NVLink. No GPU is in two
// islands.
struct GpuIslands {
  GpuTopology topology = GpuTopology::kUnknown;
  std::vector<GpuSet> islands;
  friend bool operator==(const GpuIslands&, const GpuIslands&) = default;
};

// Parses the annotation's value: the topology, a space, and islands separated by `;`, each a list
// of GPU ids. `nvlink 0-3;4-7`, `nvswitch 0-7`, `pcie 0;1;2,3`. nullopt for any other text.
std::optional<GpuIslands> ParseIslands(absl::string_view text);
std::string FormatIslands(const GpuIslands& islands);

}  // namespace outboard::sdk

#endif  // OUTBOARD_PLUGIN_HOST_SDK_NODE_FACTS_GPU_ISLANDS_H_
