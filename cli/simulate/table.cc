#include "cli/simulate/table.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace outboard::simulate {
namespace {

// Why this node was selected: its total and the highest scores, or that it was the only one left.
std::string WhyHere(const PodReport& report) {
  const auto scores = report.scores.find(report.node);
  if (scores == report.scores.end()) {
    return report.filter.empty()
               ? "the only node"
               : absl::StrCat("the only node left; ", report.filter.size(), " rejected");
  }
  std::vector<std::pair<std::string, int64_t>> plugins(scores->second.plugins.begin(),
                                                       scores->second.plugins.end());
  std::stable_sort(plugins.begin(), plugins.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  if (plugins.size() > 3) plugins.resize(3);
  std::vector<std::string> parts;
  for (const auto& [plugin, score] : plugins) parts.push_back(absl::StrCat(plugin, " ", score));
  return absl::StrCat("best of ", report.scores.size(), " with ", scores->second.total, ": ",
                      absl::StrJoin(parts, ", "));
}

void AppendCell(const std::string& text, size_t width, std::string* line) {
  line->append(text);
  line->append(width > text.size() ? width - text.size() : 0, ' ');
  line->append("  ");
}

}  // namespace

std::string ToTable(const std::vector<PodReport>& reports) {
  size_t pod_width = 3, result_width = 6, node_width = 4;
  size_t scheduled = 0;
  for (const PodReport& report : reports) {
    pod_width = std::max(pod_width, report.pod.size());
    result_width = std::max(result_width, report.result.size());
    node_width = std::max(node_width, report.node.size());
    if (report.result == "scheduled") ++scheduled;
  }
  std::string table;
  AppendCell("POD", pod_width, &table);
  AppendCell("RESULT", result_width, &table);
  AppendCell("NODE", node_width, &table);
  table += "WHY\n";
  for (const PodReport& report : reports) {
    AppendCell(report.pod, pod_width, &table);
    AppendCell(report.result, result_width, &table);
    AppendCell(report.node.empty() ? "-" : report.node, node_width, &table);
    absl::StrAppend(&table, report.result == "scheduled" ? WhyHere(report) : report.message, "\n");
  }
  absl::StrAppend(&table, "\n", reports.size(), " pods: ", scheduled, " scheduled, ",
                  reports.size() - scheduled, " not\n");
  return table;
}

}  // namespace outboard::simulate
