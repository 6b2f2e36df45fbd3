// What the name of a GPU product tells.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_NODE_FACTS_GPU_MODELS_H_
#define OUTBOARD_PLUGIN_HOST_SDK_NODE_FACTS_GPU_MODELS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "plugin_host/sdk/node_facts/facts.h"

namespace outboard::sdk {

// Generations by the name of a model in lower case: {"a100", 8}. v100, a100 and h100 also stand for
// the families of these models.
using Generations = std::map<std::string, int64_t>;
// v100 7, a100 8, h100 9.
const Generations& DefaultGenerations();

// The parts of a product's name in lower case, without what GPU Feature Discovery appends for
// shared and partitioned GPUs: {"nvidia", "a100", "sxm4", "40gb"} for
// `NVIDIA-A100-SXM4-40GB-MIG-1g.5gb`.
struct GpuProduct {
  std::vector<std::string> words;
  bool shared = false;      // -SHARED
  std::string mig_profile;  // `1g.5gb`, `invalid`; empty: no -MIG-… suffix.
  bool Has(absl::string_view word) const;
};
GpuProduct ParseGpuProduct(absl::string_view name);
// False if nothing is left without the vendor's prefix and these suffixes.
bool NamesModel(absl::string_view name);

// In GPU Feature Discovery's words; empty if the name does not tell.
absl::string_view FamilyOfProduct(const GpuProduct& product);
// By CUDA compute capability; empty if unknown.
absl::string_view FamilyOfCapability(int64_t major, int64_t minor);
// Of a family: volta and turing 7, ampere and ada-lovelace 8, hopper 9, blackwell 10, rubin 11,
// unless `generations` has other values for v100, a100, h100. None for other families.
std::optional<int64_t> GenerationOfFamily(absl::string_view family, const Generations& generations);
// The first word of the name that `generations` has.
std::optional<int64_t> GenerationOfProduct(const GpuProduct& product,
                                           const Generations& generations);
// The nominal size in the name, `80gb`; cards of one name with several sizes have it.
std::optional<double> MemoryOfProduct(const GpuProduct& product);

// The kind of board, from the whole name that a driver reports. Clouds' short names (`h100`) do not
// tell.
struct GpuBoard {
  GpuTopology topology = GpuTopology::kUnknown;
  std::vector<GpuIsland> islands;  // If topology is kNvlink or kNvswitch and `gpus` is known.
};
GpuBoard BoardOfProduct(const GpuProduct& product, std::optional<int64_t> gpus);

}  // namespace outboard::sdk

#endif  // OUTBOARD_PLUGIN_HOST_SDK_NODE_FACTS_GPU_MODELS_H_
