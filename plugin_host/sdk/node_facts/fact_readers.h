// Parts of NodeFactsReader. For the sources of this folder only.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_NODE_FACTS_FACT_READERS_H_
#define OUTBOARD_PLUGIN_HOST_SDK_NODE_FACTS_FACT_READERS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "outboard/v1beta1/types.pb.h"
#include "plugin_host/sdk/label_values.h"
#include "plugin_host/sdk/node_facts/node_facts.h"

namespace outboard::sdk {

// More GPUs than any machine has, including time-sliced ones.
inline constexpr int64_t kMaxGpus = 4096;
// Far above any real GPU; keeps scores far from the limits of int64.
inline constexpr double kMaxMemoryGb = 1e6;
// Origin of facts from ResourceSlices.
inline constexpr char kSliceOrigin[] = "ResourceSlice of gpu.nvidia.com";
// Of CUDA's compute capabilities.
inline constexpr int64_t kMaxCapability = 1000;

template <typename T>
Fact<T> MakeFact(T value, FactSource source, std::string origin) {
  return {std::move(value), source, std::move(origin)};
}
template <typename T>
Fact<T> FromLabel(T value, FactSource source, absl::string_view key) {
  return {std::move(value), source, absl::StrCat("label ", key)};
}

// Reads values of labels; remembers malformed ones.
class LabelReader {
 public:
  LabelReader(const StringMap& labels, std::vector<MalformedLabel>* malformed)
      : labels_(labels), malformed_(malformed) {}

  const StringMap& all() const { return labels_; }
  // Null if absent or empty.
  const std::string* Text(absl::string_view key) const {
    const std::string* text = FindValue(labels_, key);
    return text == nullptr || text->empty() ? nullptr : text;
  }
  // None if absent or malformed. An empty value is malformed.
  std::optional<int64_t> Count(absl::string_view key, const char* wanted = "a number of GPUs",
                               int64_t max = kMaxGpus) {
    const std::string* text = FindValue(labels_, key);
    if (text == nullptr) return std::nullopt;
    const std::optional<int64_t> count = ParseCount(*text, max);
    if (!count) Malformed(key, *text, wanted);
    return count;
  }
  std::optional<double> Amount(absl::string_view key, double max, const char* wanted) {
    const std::string* text = FindValue(labels_, key);
    if (text == nullptr) return std::nullopt;
    const std::optional<double> amount = ParseAmount(*text, max);
    if (!amount) Malformed(key, *text, wanted);
    return amount;
  }
  std::optional<bool> Bool(absl::string_view key) {
    const std::string* text = FindValue(labels_, key);
    if (text == nullptr) return std::nullopt;
    const std::optional<bool> value = ParseBool(*text);
    if (!value) Malformed(key, *text, "true or false");
    return value;
  }
  void Malformed(absl::string_view key, const std::string& value, const char* wanted) {
    if (malformed_ != nullptr) malformed_->push_back({std::string(key), value, wanted});
  }

 private:
  const StringMap& labels_;
  std::vector<MalformedLabel>* const malformed_;
};

// An entry of the table of instance types, with the node's type. Null: none.
using KnownInstance = const InstanceTypes::value_type*;

// What describes a node's GPUs.
struct GpuSources {
  const v1beta1::Node& node;
  LabelReader& labels;
  const std::vector<SliceGpu>* slices = nullptr;  // Null: none.
  KnownInstance instance = nullptr;
  const NodeFactsOptions& options;
};

// Fills in everything about GPUs but their problems.
void ReadGpus(const GpuSources& from, NodeFacts* facts);
Fact<std::vector<GpuProblem>> ReadGpuProblems(const GpuSources& from,
                                              const std::vector<BadCondition>& conditions);
// Unknown without ResourceSlices.
Fact<int64_t> ReadTaintedGpus(const GpuSources& from);
Fact<NetworkLevel> ReadNvlinkDomain(const LabelReader& labels,
                                    const std::vector<std::string>& first);
Fact<std::vector<NetworkLevel>> ReadNetwork(const LabelReader& labels,
                                            const std::vector<std::string>& first);

}  // namespace outboard::sdk

#endif  // OUTBOARD_PLUGIN_HOST_SDK_NODE_FACTS_FACT_READERS_H_
