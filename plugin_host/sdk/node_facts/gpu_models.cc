#include "plugin_host/sdk/node_facts/gpu_models.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "plugin_host/sdk/label_values.h"

namespace outboard::sdk {
namespace {

constexpr double kMaxNominalGb = 4096;

// Models by a word of their product's name, and their families as GPU Feature Discovery names them
// (getArchFamily in internal/lm/resource.go of NVIDIA/k8s-device-plugin). AMD's and Intel's
// generations are not compared with these.
struct ModelFamily {
  absl::string_view word;
  absl::string_view family;
  bool only_cards = false;  // No board of the model has NVLink beyond bridges between pairs.
};
constexpr ModelFamily kModels[] = {
    {"k80", "kepler", true},
    {"m60", "maxwell", true},
    {"p4", "pascal", true},
    {"p40", "pascal", true},
    {"p100", "pascal"},
    {"v100", "volta"},
    {"v100s", "volta", true},  // Only as a PCIe card.
    {"t4", "turing", true},
    {"a2", "ampere", true},
    {"a10", "ampere", true},
    {"a10g", "ampere", true},
    {"a16", "ampere", true},
    {"a30", "ampere", true},
    {"a40", "ampere", true},
    {"a100", "ampere"},
    {"a800", "ampere"},
    {"a4000", "ampere", true},
    {"a5000", "ampere", true},
    {"a6000", "ampere", true},
    {"ada", "ada-lovelace", true},  // RTX-6000-Ada-Generation
    {"l4", "ada-lovelace", true},
    {"l20", "ada-lovelace", true},
    {"l40", "ada-lovelace", true},
    {"l40g", "ada-lovelace", true},
    {"l40s", "ada-lovelace", true},
    {"h20", "hopper"},
    {"h100", "hopper"},
    {"h200", "hopper"},
    {"h800", "hopper"},
    {"gh200", "hopper"},
    {"b100", "blackwell"},
    {"b200", "blackwell"},
    {"b300", "blackwell"},
    {"gb200", "blackwell"},
    {"gb300", "blackwell"},
    {"blackwell", "blackwell", true},  // RTX-PRO-6000-Blackwell-Server-Edition
    {"rubin", "rubin"},
    {"vr200", "rubin"},
};

const ModelFamily* FindModel(const GpuProduct& product) {
  for (const std::string& word : product.words) {
    for (const ModelFamily& model : kModels) {
      if (word == model.word) return &model;
    }
  }
  return nullptr;
}

// `sxm4`, or `sxm` alone, as in NVIDIA-A100-SXM-64GB.
bool HasSxm(const GpuProduct& product) {
  return std::any_of(product.words.begin(), product.words.end(), [](absl::string_view word) {
    return absl::ConsumePrefix(&word, "sxm") &&
           std::all_of(word.begin(), word.end(), [](char c) { return absl::ascii_isdigit(c); });
  });
}

// SXM baseboards whose GPUs' names do not contain SXM, as NVML reports them: `NVIDIA H100 80GB
// HBM3`, `NVIDIA H200`, `NVIDIA B200`. The cards of the same models are `NVIDIA H100 PCIe`,
// `NVIDIA H100 NVL`, `NVIDIA H200 NVL`.
bool IsUnnamedSxm(const GpuProduct& product) {
  return (product.Has("h100") && product.Has("hbm3")) || product.Has("h200") ||
         product.Has("b200") || product.Has("b300");
}

// GPUs of DGX-1 and machines like it (AWS p3.16xlarge, p3dn.24xlarge): two fully linked groups of
// four; a GPU has a link to only one of the other group.
// Source: `nvidia-smi topo -m` of 8 Tesla V100-SXM2.
constexpr int64_t kHybridMeshGpus = 8;
// HGX boards of four link each pair directly; with eight, there are switches.
constexpr int64_t kMaxDirectlyLinked = 4;

GpuBoard SxmBoard(const GpuProduct& product, std::optional<int64_t> gpus) {
  GpuBoard board;
  if (gpus && *gpus == 1) return {GpuTopology::kPcie, {}};  // No other GPU to link with.
  const bool before_switches = product.Has("p100") || product.Has("v100");
  if (!before_switches) {
    board.topology =
        gpus && *gpus <= kMaxDirectlyLinked ? GpuTopology::kNvlink : GpuTopology::kNvswitch;
    if (gpus) board.islands = {{*gpus, 0}};
    return board;
  }
  // DGX-2 has 16 V100-SXM3 on switches.
  const bool switched = product.Has("sxm3") || (gpus && *gpus > kHybridMeshGpus);
  board.topology = switched ? GpuTopology::kNvswitch : GpuTopology::kNvlink;
  if (!gpus) return board;
  if (switched || *gpus <= kMaxDirectlyLinked) {
    board.islands = {{*gpus, 0}};
  } else {
    board.islands = {{kMaxDirectlyLinked, 0}, {*gpus - kMaxDirectlyLinked, 0}};
  }
  return board;
}

}  // namespace

const Generations& DefaultGenerations() {
  static const auto& generations = *new Generations{{"v100", 7}, {"a100", 8}, {"h100", 9}};
  return generations;
}

bool GpuProduct::Has(absl::string_view word) const {
  return std::find(words.begin(), words.end(), word) != words.end();
}

GpuProduct ParseGpuProduct(absl::string_view name) {
  GpuProduct product;
  const std::string lower = absl::AsciiStrToLower(name);
  absl::string_view rest = lower;
  product.shared = absl::ConsumeSuffix(&rest, "-shared");
  if (const size_t mig = rest.find("-mig-"); mig != absl::string_view::npos) {
    product.mig_profile = std::string(rest.substr(mig + 5));
    rest = rest.substr(0, mig);
  }
  // AMD's and Intel's labels separate with `_`: AMD_Instinct_MI300X_OAM.
  product.words = absl::StrSplit(rest, absl::ByAnyChar("-_ "), absl::SkipEmpty());
  return product;
}

bool NamesModel(absl::string_view name) {
  const std::string lower = absl::AsciiStrToLower(name);
  absl::string_view rest = lower;
  absl::ConsumePrefix(&rest, "nvidia-");
  rest = rest.substr(0, rest.find("-mig-"));
  absl::ConsumeSuffix(&rest, "-shared");
  return !rest.empty();
}

absl::string_view FamilyOfProduct(const GpuProduct& product) {
  const ModelFamily* const model = FindModel(product);
  return model == nullptr ? absl::string_view() : model->family;
}

absl::string_view FamilyOfCapability(int64_t major, int64_t minor) {
  switch (major) {
    case 3:
      return "kepler";
    case 5:
      return "maxwell";
    case 6:
      return "pascal";
    case 7:
      return minor < 5 ? "volta" : "turing";
    case 8:
      // The label of older releases of GPU Feature Discovery says ampere for 8.9, too.
      return minor < 9 ? "ampere" : "ada-lovelace";
    case 9:
      return "hopper";
    case 10:  // B200, GB200, B300
    case 12:  // RTX PRO
      return "blackwell";
    case 13:
      return "rubin";
    default:
      return "";
  }
}

std::optional<int64_t> GenerationOfFamily(absl::string_view family,
                                          const Generations& generations) {
  struct Row {
    absl::string_view family;
    int64_t number;
    const char* model;  // Whose value in `generations` counts for the family.
  };
  static constexpr Row kRows[] = {{"volta", 7, "v100"},  {"turing", 7, nullptr},
                                  {"ampere", 8, "a100"}, {"ada-lovelace", 8, nullptr},
                                  {"hopper", 9, "h100"}, {"blackwell", 10, nullptr},
                                  {"rubin", 11, nullptr}};
  for (const Row& row : kRows) {
    if (family != row.family) continue;
    const auto it = row.model == nullptr ? generations.end() : generations.find(row.model);
    return it == generations.end() ? row.number : it->second;
  }
  return std::nullopt;
}

std::optional<int64_t> GenerationOfProduct(const GpuProduct& product,
                                           const Generations& generations) {
  for (const std::string& word : product.words) {
    if (const auto it = generations.find(word); it != generations.end()) return it->second;
  }
  return std::nullopt;
}

std::optional<double> MemoryOfProduct(const GpuProduct& product) {
  for (absl::string_view word : product.words) {
    if (!absl::ConsumeSuffix(&word, "gb")) continue;
    const std::optional<double> gb = ParseAmount(word, kMaxNominalGb);
    if (gb && *gb > 0) return gb;
  }
  return std::nullopt;
}

GpuBoard BoardOfProduct(const GpuProduct& product, std::optional<int64_t> gpus) {
  if (product.Has("gb200") || product.Has("gb300")) {
    // All GPUs of the rack are behind the same switches.
    GpuBoard board{GpuTopology::kNvswitch, {}};
    if (gpus) board.islands = {{*gpus, 0}};
    return board;
  }
  // NVL cards have bridges between two (H100) or four (H200) of them, if anyone mounted these.
  if (product.Has("pcie") || product.Has("nvl")) return {GpuTopology::kPcie, {}};
  if (HasSxm(product) || IsUnnamedSxm(product)) return SxmBoard(product, gpus);
  const ModelFamily* const model = FindModel(product);
  return {model != nullptr && model->only_cards ? GpuTopology::kPcie : GpuTopology::kUnknown, {}};
}

}  // namespace outboard::sdk
