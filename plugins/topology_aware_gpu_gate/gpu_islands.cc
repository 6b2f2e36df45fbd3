#include "plugins/topology_aware_gpu_gate/gpu_islands.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace outboard::topology_aware_gpu_gate {

Topology ParseTopology(absl::string_view text) {
  for (const Topology topology : {Topology::kNvlink, Topology::kNvswitch, Topology::kPcie}) {
    if (absl::EqualsIgnoreCase(text, TopologyName(topology))) return topology;
  }
  return Topology::kUnknown;
}

const char* TopologyName(Topology topology) {
  switch (topology) {
    case Topology::kNvlink:
      return "nvlink";
    case Topology::kNvswitch:
      return "nvswitch";
    case Topology::kPcie:
      return "pcie";
    case Topology::kUnknown:
      break;
  }
  return "unknown";
}

std::optional<GpuIslands> ParseIslands(absl::string_view text) {
  const size_t space = text.find(' ');
  if (space == absl::string_view::npos) return std::nullopt;
  GpuIslands result;
  result.topology = ParseTopology(text.substr(0, space));
  if (result.topology == Topology::kUnknown) return std::nullopt;
  sdk::GpuSet seen = 0;
  for (const absl::string_view part : absl::StrSplit(text.substr(space + 1), ';')) {
    const std::optional<sdk::GpuSet> gpus = sdk::ParseGpuIds(part);
    if (!gpus || (*gpus & seen) != 0) return std::nullopt;
    seen |= *gpus;
    result.islands.push_back(*gpus);
  }
  return result;
}

std::string FormatIslands(const GpuIslands& islands) {
  std::string text = TopologyName(islands.topology);
  const char* separator = " ";
  for (const sdk::GpuSet gpus : islands.islands) {
    absl::StrAppend(&text, separator, sdk::FormatGpuIds(gpus));
    separator = ";";
  }
  return text;
}

int64_t Roomiest(const std::vector<IslandUse>& islands) {
  int64_t most = 0;
  for (const IslandUse& island : islands) most = std::max(most, island.gpus - island.used);
  return most;
}

bool MustFit(const std::vector<IslandUse>& islands, int64_t wanted, int64_t free, int64_t hidden) {
  if (wanted > free || wanted <= 0) return wanted <= 0;
  // An island no longer fits when all but wanted - 1 of its GPUs are in use.
  int64_t needed_to_break_all = 0;
  for (const IslandUse& island : islands)
    needed_to_break_all += std::max<int64_t>(0, island.gpus - island.used - wanted + 1);
  return hidden < needed_to_break_all;
}

}  // namespace outboard::topology_aware_gpu_gate
