#include "plugin_host/sdk/node_facts/gpu_islands.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace outboard::sdk {

GpuTopology ParseTopology(absl::string_view text) {
  for (const GpuTopology topology :
       {GpuTopology::kNvlink, GpuTopology::kNvswitch, GpuTopology::kPcie}) {
    if (absl::EqualsIgnoreCase(text, TopologyName(topology))) return topology;
  }
  return GpuTopology::kUnknown;
}

const char* TopologyName(GpuTopology topology) {
  switch (topology) {
    case GpuTopology::kNvlink:
      return "nvlink";
    case GpuTopology::kNvswitch:
      return "nvswitch";
    case GpuTopology::kPcie:
      return "pcie";
    case GpuTopology::kUnknown:
      break;
  }
  return "unknown";
}

std::optional<GpuIslands> ParseIslands(absl::string_view text) {
  const size_t space = text.find(' ');
  if (space == absl::string_view::npos) return std::nullopt;
  GpuIslands result;
  result.topology = ParseTopology(text.substr(0, space));
  if (result.topology == GpuTopology::kUnknown) return std::nullopt;
  GpuSet seen = 0;
  for (const absl::string_view part : absl::StrSplit(text.substr(space + 1), ';')) {
    const std::optional<GpuSet> gpus = ParseGpuIds(part);
    if (!gpus || (*gpus & seen) != 0) return std::nullopt;
    seen |= *gpus;
    result.islands.push_back(*gpus);
  }
  return result;
}

std::string FormatIslands(const GpuIslands& islands) {
  std::string text = TopologyName(islands.topology);
  const char* separator = " ";
  for (const GpuSet gpus : islands.islands) {
    absl::StrAppend(&text, separator, FormatGpuIds(gpus));
    separator = ";";
  }
  return text;
}

}  // namespace outboard::sdk
