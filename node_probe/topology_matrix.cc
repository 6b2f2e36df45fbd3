#include "node_probe/topology_matrix.h"

#include <bit>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "plugin_host/sdk/label_values.h"
#include "plugin_host/sdk/node_facts/gpu_islands.h"

namespace outboard::node_probe {
namespace {

using sdk::GpuIslands;
using sdk::GpuTopology;

// NVLinks of one GPU, of all generations (18: Hopper, Blackwell).
constexpr int64_t kMaxLinks = 18;

// Number of links by pair of GPUs; 0 without NVLink.
using Matrix = std::map<int64_t, std::map<int64_t, int64_t>>;

// nvidia-smi underlines the header: ESC [ 4 m … ESC [ 0 m.
std::string WithoutColours(absl::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\x1b') {
      plain.push_back(text[i]);
      continue;
    }
    while (i < text.size() && !absl::ascii_isalpha(static_cast<unsigned char>(text[i]))) ++i;
  }
  return plain;
}

std::optional<int64_t> GpuOf(absl::string_view word) {
  if (!absl::ConsumePrefix(&word, "GPU")) return std::nullopt;
  return sdk::ParseCount(word, sdk::kMaxGpuId);
}

// Number of links in a cell; nullopt if the cell is not a link.
std::optional<int64_t> LinksOf(absl::string_view cell) {
  for (const char* pcie : {"PIX", "PXB", "PHB", "NODE", "SYS", "SOC"}) {
    if (cell == pcie) return 0;
  }
  if (!absl::ConsumePrefix(&cell, "NV")) return std::nullopt;
  const std::optional<int64_t> links = sdk::ParseCount(cell, 1000);
  if (links == 0) return std::nullopt;
  return links;
}

absl::Status Invalid(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("nvidia-smi topo -m: ", what));
}

absl::Status ReadRow(const std::vector<absl::string_view>& words,
                     const std::vector<std::optional<int64_t>>& columns, int64_t gpu,
                     Matrix* matrix) {
  if (words.size() < columns.size() + 1)
    return Invalid(absl::StrCat("row of GPU", gpu, " is too short"));
  for (size_t i = 0; i < columns.size(); ++i) {
    if (!columns[i]) continue;
    const absl::string_view cell = words[i + 1];
    if (*columns[i] == gpu) {
      if (cell != "X") return Invalid(absl::StrCat("GPU", gpu, " has no X in its own column"));
      continue;
    }
    const std::optional<int64_t> links = LinksOf(cell);
    if (!links) {
      return Invalid(absl::StrCat("GPU", gpu, " and GPU", *columns[i], ": unknown link ",
                                  absl::string_view(cell).substr(0, 20)));
    }
    (*matrix)[gpu][*columns[i]] = *links;
  }
  return absl::OkStatus();
}

absl::StatusOr<Matrix> ReadMatrix(absl::string_view text) {
  const std::string plain = WithoutColours(text);
  std::vector<std::optional<int64_t>> columns;  // GPU ids; nullopt for network cards.
  Matrix matrix;
  for (const absl::string_view line : absl::StrSplit(plain, '\n')) {
    const std::vector<absl::string_view> words =
        absl::StrSplit(line, absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
    const std::optional<int64_t> gpu = words.empty() ? std::nullopt : GpuOf(words[0]);
    if (!gpu) continue;
    if (columns.empty()) {  // The header. `CPU Affinity` ends the matrix.
      for (const absl::string_view word : words) {
        if (word == "CPU") break;
        columns.push_back(GpuOf(word));
      }
      continue;
    }
    if (!matrix.try_emplace(*gpu).second) return Invalid(absl::StrCat("two rows of GPU", *gpu));
    if (absl::Status status = ReadRow(words, columns, *gpu, &matrix); !status.ok()) return status;
  }
  size_t gpus = 0;
  for (const std::optional<int64_t>& column : columns) {
    if (!column) continue;
    ++gpus;
    if (!matrix.contains(*column)) return Invalid(absl::StrCat("no row of GPU", *column));
  }
  if (gpus == 0) return Invalid("no GPUs");
  if (matrix.size() != gpus) return Invalid("rows and columns have different GPUs");
  return matrix;
}

}  // namespace

absl::StatusOr<GpuIslands> ParseTopologyMatrix(absl::string_view text, sdk::GpuSet isolated) {
  absl::StatusOr<Matrix> read = ReadMatrix(text);
  if (!read.ok()) return read.status();
  Matrix& matrix = *read;
  for (const auto& [gpu, row] : matrix) {
    for (const auto& [other, links] : row) {
      if (!matrix[other].contains(gpu) || matrix[other][gpu] != links)
        return Invalid(absl::StrCat("GPU", gpu, " and GPU", other, " have different links"));
    }
  }
  for (auto& [gpu, row] : matrix) {
    for (auto& [other, links] : row) {
      if (((isolated >> gpu | isolated >> other) & 1) != 0) links = 0;
    }
  }
  GpuIslands result;
  sdk::GpuSet placed = 0;
  int64_t largest = 0, links_in_largest = 0;
  for (auto& [gpu, row] : matrix) {
    if ((placed >> gpu & 1) != 0) continue;
    sdk::GpuSet island = sdk::GpuSet{1} << gpu;
    int64_t links = 0;
    for (auto& [candidate, with_first] : row) {
      if ((placed >> candidate & 1) != 0 || with_first == 0) continue;
      bool with_all = true;
      for (auto& [member, with_candidate] : matrix[candidate]) {
        if ((island >> member & 1) != 0 && with_candidate == 0) with_all = false;
      }
      if (!with_all) continue;
      island |= sdk::GpuSet{1} << candidate;
      links = with_first;
    }
    placed |= island;
    result.islands.push_back(island);
    if (std::popcount(island) > largest) {
      largest = std::popcount(island);
      links_in_largest = links;
    }
  }
  result.topology = largest <= 1                                   ? GpuTopology::kPcie
                    : links_in_largest * (largest - 1) > kMaxLinks ? GpuTopology::kNvswitch
                                                                   : GpuTopology::kNvlink;
  return result;
}

}  // namespace outboard::node_probe
