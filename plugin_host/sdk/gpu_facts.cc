#include "plugin_host/sdk/gpu_facts.h"

#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace outboard::sdk {
namespace {

// Far above any real GPU; keeps scores far from the limits of int64.
constexpr double kMaxMemoryGb = 1e6;

std::optional<double> ReadMemory(const StringMap& labels, std::vector<MalformedLabel>* malformed) {
  if (const std::string* text = FindValue(labels, kMemoryLabel)) {
    if (auto gb = ParseAmount(*text, kMaxMemoryGb)) return gb;
    malformed->push_back({kMemoryLabel, *text, "a number of GB"});
  }
  if (const std::string* text = FindValue(labels, kDiscoveredMemoryLabel)) {
    // Drivers report slightly less than the nominal size: 81559 MiB is an 80 GB GPU.
    if (auto mib = ParseAmount(*text, kMaxMemoryGb * 1024)) return std::round(*mib / 1024);
    malformed->push_back({kDiscoveredMemoryLabel, *text, "a number of MiB"});
  }
  return std::nullopt;
}

std::optional<int64_t> Lookup(const Generations& generations, const std::string& name) {
  auto it = generations.find(name);
  if (it == generations.end()) return std::nullopt;
  return it->second;
}

std::optional<int64_t> ReadGeneration(const StringMap& labels, const Generations& generations,
                                      std::vector<MalformedLabel>* malformed) {
  if (const std::string* text = FindValue(labels, kGenerationLabel)) {
    std::optional<int64_t> generation = Lookup(generations, absl::AsciiStrToLower(*text));
    if (generation) return generation;
    malformed->push_back({kGenerationLabel, *text, "a generation that args name"});
  }
  if (const std::string* product = FindValue(labels, kDiscoveredProductLabel)) {
    // `NVIDIA-A100-SXM4-80GB`, `Tesla-V100-PCIE-16GB`, also with the suffix -SHARED or -MIG-1g.5gb.
    for (absl::string_view part : absl::StrSplit(*product, '-')) {
      std::optional<int64_t> generation = Lookup(generations, absl::AsciiStrToLower(part));
      if (generation) return generation;
    }
  }
  if (const std::string* family = FindValue(labels, kDiscoveredFamilyLabel)) {
    const std::string name = absl::AsciiStrToLower(*family);
    if (name == "volta") return Lookup(generations, "v100");
    if (name == "ampere") return Lookup(generations, "a100");
    if (name == "hopper") return Lookup(generations, "h100");
  }
  return std::nullopt;
}

}  // namespace

GpuFacts ReadGpuFacts(const StringMap& labels, const Generations& generations,
                      std::vector<MalformedLabel>* malformed) {
  GpuFacts facts;
  facts.memory_gb = ReadMemory(labels, malformed);
  facts.generation = ReadGeneration(labels, generations, malformed);
  if (const std::string* interconnect = FindValue(labels, kInterconnectLabel)) {
    facts.nvlink = absl::AsciiStrToLower(*interconnect) == "nvlink";
  }
  return facts;
}

}  // namespace outboard::sdk
