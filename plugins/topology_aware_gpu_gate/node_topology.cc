#include "plugins/topology_aware_gpu_gate/node_topology.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "absl/strings/match.h"
#include "plugin_host/sdk/label_values.h"

namespace outboard::topology_aware_gpu_gate {
namespace {

// More GPUs than any machine has, including time-sliced ones.
constexpr int64_t kMaxGpus = 4096;

}  // namespace

int64_t NodeTopology::LargestIsland(int64_t allocatable) const {
  if (one_island) return allocatable;
  int64_t largest = 0;
  for (const Island& island : islands) largest = std::max(largest, island.gpus);
  return std::min(largest, allocatable);
}

NodeTopology ReadNodeTopology(const v1beta1::Node& node, const OnMalformed& malformed) {
  NodeTopology result;
  std::optional<GpuIslands> probed;
  if (const std::string* text = sdk::FindValue(node.annotations(), kIslandsAnnotation)) {
    probed = ParseIslands(*text);
    if (!probed) malformed(kIslandsAnnotation, *text, "a topology and lists of GPU ids");
  }
  if (const std::string* text = sdk::FindValue(node.labels(), kTopologyLabel)) {
    result.topology = ParseTopology(*text);
    if (result.topology == Topology::kUnknown)
      malformed(kTopologyLabel, *text, "nvlink, nvswitch or pcie");
  }
  if (result.topology == Topology::kUnknown && probed) result.topology = probed->topology;

  bool any_label = false;
  for (const auto& [key, value] : node.labels()) {
    if (!absl::StartsWith(key, kIslandLabelPrefix)) continue;
    const std::optional<int64_t> gpus = sdk::ParseCount(value, kMaxGpus);
    if (!gpus) {
      malformed(key, value, "a number of GPUs");
      continue;
    }
    any_label = true;
    if (!probed && *gpus > 0) result.islands.push_back({*gpus, 0});
  }
  if (probed) {
    for (const sdk::GpuSet ids : probed->islands)
      result.islands.push_back({std::popcount(ids), ids});
  }
  // The order of labels is undefined; sort, so that equal labels give equal islands.
  std::sort(result.islands.begin(), result.islands.end(),
            [](const NodeTopology::Island& a, const NodeTopology::Island& b) {
              return a.gpus != b.gpus ? a.gpus > b.gpus : a.ids < b.ids;
            });
  result.one_island =
      !probed && !any_label &&
      (result.topology == Topology::kNvlink || result.topology == Topology::kNvswitch);
  return result;
}

}  // namespace outboard::topology_aware_gpu_gate
