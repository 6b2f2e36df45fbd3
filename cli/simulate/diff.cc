#include "cli/simulate/diff.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"

namespace outboard::simulate {
namespace {

std::vector<std::string> Sorted(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  return names;
}

bool Differ(const PodRow& a, const PodRow& b) {
  return a.report.result != b.report.result || a.node() != b.node() ||
         Sorted(a.report.victims) != Sorted(b.report.victims) ||
         Sorted(a.evicted) != Sorted(b.evicted);
}

// `  - scheduled on cpu-1: 463, next cpu-2 425: …`
std::string Side(const char* sign, Color color, const PodRow& row, const Style& style) {
  constexpr size_t kIndent = 4;
  const std::string node = row.node().empty() ? "" : absl::StrCat(" on ", row.node());
  const std::string why = row.why();
  return Colored(style, color,
                 absl::StrCat(
                     "  ", sign, " ",
                     Wrapped(absl::StrCat(row.report.result, node, why.empty() ? "" : ": ", why),
                             kIndent, kIndent, style))) +
         "\n";
}

}  // namespace

std::vector<PodDifference> DifferencesOf(const std::vector<PodRow>& before,
                                         const std::vector<PodRow>& after) {
  absl::flat_hash_map<std::string, const PodRow*> others;
  for (const PodRow& row : after) others[row.report.pod] = &row;
  std::vector<PodDifference> differences;
  for (const PodRow& row : before) {
    const auto other = others.find(row.report.pod);
    if (other != others.end() && Differ(row, *other->second))
      differences.push_back({row, *other->second});
  }
  return differences;
}

std::string ToDiff(const std::vector<PodDifference>& differences, size_t pods,
                   const DiffNames& names, const Style& style) {
  std::string text;
  if (!differences.empty()) {
    absl::StrAppend(&text, Colored(style, Color::kBold, absl::StrCat("--- ", names.before)), "\n",
                    Colored(style, Color::kBold, absl::StrCat("+++ ", names.after)), "\n");
  }
  for (const PodDifference& difference : differences) {
    absl::StrAppend(&text, difference.before.report.pod, "\n",
                    Side("-", Color::kRed, difference.before, style),
                    Side("+", Color::kGreen, difference.after, style));
  }
  absl::StrAppend(&text, differences.empty() ? "" : "\n", differences.size(), " of ",
                  CountOf(pods, "pod"), differences.size() == 1 ? " differs" : " differ", "\n");
  return text;
}

std::string ToJsonLine(const PodDifference& difference) {
  return diagnostics::Dump({{"pod", difference.before.report.pod},
                            {"before", ToJson(difference.before.report)},
                            {"after", ToJson(difference.after.report)}});
}

}  // namespace outboard::simulate
