// GPU properties from a node's labels.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_GPU_FACTS_H_
#define OUTBOARD_PLUGIN_HOST_SDK_GPU_FACTS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "plugin_host/sdk/label_values.h"

namespace outboard::sdk {

// Generations by name in lower case: {"a100", 8}.
using Generations = std::map<std::string, int64_t>;

struct GpuFacts {
  std::optional<double> memory_gb;    // Of one GPU. Absent: unknown.
  std::optional<int64_t> generation;  // Absent: unknown.
  bool nvlink = false;
};

// A malformed label, which counts as absent.
struct MalformedLabel {
  std::string key;
  std::string value;
  std::string wanted;
};

// Labels that GpuFacts are read from.
inline constexpr char kMemoryLabel[] = "gpu-memory-gb";
inline constexpr char kInterconnectLabel[] = "gpu-interconnect";
inline constexpr char kGenerationLabel[] = "gpu-generation";
// GPU Feature Discovery's labels, read if the labels above are absent.
inline constexpr char kDiscoveredMemoryLabel[] = "nvidia.com/gpu.memory";  // MiB.
inline constexpr char kDiscoveredProductLabel[] = "nvidia.com/gpu.product";
inline constexpr char kDiscoveredFamilyLabel[] = "nvidia.com/gpu.family";

// Reads a node's labels; adds unreadable ones to `malformed`.
GpuFacts ReadGpuFacts(const StringMap& labels, const Generations& generations,
                      std::vector<MalformedLabel>* malformed);

}  // namespace outboard::sdk

#endif  // OUTBOARD_PLUGIN_HOST_SDK_GPU_FACTS_H_
