#include "plugins/gpu_aware/gpu_facts.h"

#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace outboard::gpu_aware {
namespace {

using Labels = google::protobuf::Map<std::string, std::string>;

// More than any GPU will have for long; keeps scores far from the ends of int64.
constexpr double kMaxMemoryGb = 1e6;

const std::string* Find(const Labels& labels, const char* key) {
  auto it = labels.find(key);
  return it == labels.end() ? nullptr : &it->second;
}

std::optional<double> ParseAmount(const std::string& text) {
  double value = 0;
  // SimpleAtod also takes signs, `inf` and `nan`.
  if (text.empty() || !absl::ascii_isdigit(static_cast<unsigned char>(text[0])) ||
      !absl::SimpleAtod(text, &value) || !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
}

std::optional<double> ReadMemory(const Labels& labels, std::vector<MalformedLabel>* malformed) {
  if (const std::string* text = Find(labels, kMemoryLabel)) {
    std::optional<double> gb = ParseAmount(*text);
    if (gb && *gb <= kMaxMemoryGb) return gb;
    malformed->push_back({kMemoryLabel, *text, "a number of GB"});
  }
  if (const std::string* text = Find(labels, kDiscoveredMemoryLabel)) {
    std::optional<double> mib = ParseAmount(*text);
    // Drivers report a little less than the nominal size: 81559 MiB are sold, and meant, as 80 GB.
    if (mib && *mib <= kMaxMemoryGb * 1024) return std::round(*mib / 1024);
    malformed->push_back({kDiscoveredMemoryLabel, *text, "a number of MiB"});
  }
  return std::nullopt;
}

std::optional<int64_t> Lookup(const Generations& generations, const std::string& name) {
  auto it = generations.find(name);
  if (it == generations.end()) return std::nullopt;
  return it->second;
}

std::optional<int64_t> ReadGeneration(const Labels& labels, const Generations& generations,
                                      std::vector<MalformedLabel>* malformed) {
  if (const std::string* text = Find(labels, kGenerationLabel)) {
    std::optional<int64_t> generation = Lookup(generations, absl::AsciiStrToLower(*text));
    if (generation) return generation;
    malformed->push_back({kGenerationLabel, *text, "a generation that args name"});
  }
  if (const std::string* product = Find(labels, kDiscoveredProductLabel)) {
    // `NVIDIA-A100-SXM4-80GB`, `Tesla-V100-PCIE-16GB`, also with -SHARED or -MIG-1g.5gb behind.
    for (absl::string_view part : absl::StrSplit(*product, '-')) {
      std::optional<int64_t> generation = Lookup(generations, absl::AsciiStrToLower(part));
      if (generation) return generation;
    }
  }
  if (const std::string* family = Find(labels, kDiscoveredFamilyLabel)) {
    const std::string name = absl::AsciiStrToLower(*family);
    if (name == "volta") return Lookup(generations, "v100");
    if (name == "ampere") return Lookup(generations, "a100");
    if (name == "hopper") return Lookup(generations, "h100");
  }
  return std::nullopt;
}

}  // namespace

GpuFacts ReadGpuFacts(const Labels& labels, const Generations& generations,
                      std::vector<MalformedLabel>* malformed) {
  GpuFacts facts;
  facts.memory_gb = ReadMemory(labels, malformed);
  facts.generation = ReadGeneration(labels, generations, malformed);
  if (const std::string* interconnect = Find(labels, kInterconnectLabel)) {
    facts.nvlink = absl::AsciiStrToLower(*interconnect) == "nvlink";
  }
  return facts;
}

}  // namespace outboard::gpu_aware
