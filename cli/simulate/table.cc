#include "cli/simulate/table.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "cli/simulate/why.h"

namespace outboard::simulate {
namespace {

// With less room than this, WHY gets lines of its own.
constexpr size_t kLeastWhyWidth = 40;
constexpr size_t kOwnLineIndent = 4;
// More reasons would hide the table.
constexpr size_t kReasonsShown = 10;

std::string Padded(const std::string& text, size_t width) {
  return absl::StrCat(text, std::string(width > text.size() ? width - text.size() : 0, ' '), "  ");
}

void AppendCounts(const std::vector<PodRow>& rows, const Style& style, std::string* table) {
  std::map<std::string, size_t> counts;
  size_t victims = 0;
  for (const PodRow& row : rows) {
    ++counts[row.report.result];
    if (row.report.result == kPreempting) victims += row.report.victims.size();
  }
  std::vector<std::string> parts;
  for (const char* result :
       {kScheduled, kPreempting, kUnschedulable, kError, kPreempted, kSkipped}) {
    if (counts[result] == 0) continue;
    std::string part = absl::StrCat(counts[result], " ", result);
    if (result == kPreempting)
      absl::StrAppend(&part, " (they evict ", CountOf(victims, "pod"), ")");
    parts.push_back(Colored(style, ColorOf(result), part));
  }
  absl::StrAppend(table, CountOf(rows.size(), "pod"), parts.empty() ? "" : ": ",
                  absl::StrJoin(parts, ", "), "\n");
}

void AppendReasons(const std::vector<PodRow>& rows, const Style& style, std::string* table) {
  std::vector<const AttemptReport*> pods;
  for (const PodRow& row : rows) {
    if (row.report.result == kUnschedulable || row.report.result == kError)
      pods.push_back(&row.report);
  }
  if (pods.size() < 2) return;
  absl::StrAppend(table, "\nPods without a node, by reason (a pod can have several):\n");
  const CountedTexts reasons = PodsByReason(pods);
  for (size_t i = 0; i < reasons.size() && i < kReasonsShown; ++i) {
    const std::string count = absl::StrCat(reasons[i].first);
    const size_t column = 8;
    absl::StrAppend(table, std::string(column - 2 - std::min(column - 2, count.size()), ' '), count,
                    "  ", Wrapped(reasons[i].second, column, column, style), "\n");
  }
  if (reasons.size() > kReasonsShown)
    absl::StrAppend(table, "        and ", CountOf(reasons.size() - kReasonsShown, "more reason"),
                    "\n");
}

const std::string& NodeOf(const PodRow& row) {
  static const std::string& none = *new std::string("-");
  return row.node().empty() ? none : row.node();
}

// Words between which a line may end: a number stays with the words around it. Keeps wider gaps.
std::vector<std::string> UnbrokenParts(const std::string& text) {
  std::vector<std::string> parts;
  bool after_number = false;
  for (const absl::string_view word : absl::StrSplit(text, ' ')) {
    if (word.empty()) {
      if (!parts.empty()) parts.back().push_back(' ');
      continue;
    }
    const bool is_number = absl::ascii_isdigit(static_cast<unsigned char>(word.front()));
    if ((is_number || after_number) && !parts.empty() &&
        !absl::StrContains(" ,;:", parts.back().back())) {
      absl::StrAppend(&parts.back(), " ", word);
    } else {
      parts.emplace_back(word);
    }
    after_number = is_number;
  }
  return parts;
}

}  // namespace

std::string CountOf(size_t count, const std::string& one) {
  return absl::StrCat(count, " ", one, count == 1 ? "" : "s");
}

std::string PodRow::why() const {
  return evicted.empty()
             ? report.why
             : absl::StrCat("preempted ", absl::StrJoin(evicted, ", "), "; ", report.why);
}

std::vector<PodRow> RowsOf(const std::vector<AttemptReport>& reports) {
  std::vector<PodRow> rows;
  absl::flat_hash_map<std::string, size_t> row_of;
  for (const AttemptReport& report : reports) {
    const auto [found, is_new] = row_of.try_emplace(report.pod, rows.size());
    if (is_new) rows.emplace_back();
    PodRow& row = rows[found->second];
    const std::vector<std::string>& victims = row.report.victims;
    row.evicted.insert(row.evicted.end(), victims.begin(), victims.end());
    row.report = report;
  }
  return rows;
}

Color ColorOf(const std::string& result) {
  if (result == kScheduled) return Color::kGreen;
  if (result == kPreempting) return Color::kYellow;
  return result == kSkipped ? Color::kFaint : Color::kRed;
}

std::string Wrapped(const std::string& text, size_t column, size_t indent, const Style& style) {
  std::string result;
  size_t at = column;
  for (const std::string& part : UnbrokenParts(text)) {
    const bool is_first = result.empty();
    if (!is_first && at + 1 + part.size() > style.width) {
      absl::StripTrailingAsciiWhitespace(&result);
      absl::StrAppend(&result, "\n", std::string(indent, ' '));
      at = indent;
    } else if (!is_first) {
      result.push_back(' ');
      ++at;
    }
    absl::StrAppend(&result, part);
    at += part.size();
  }
  return result;
}

std::string ToTable(const std::vector<PodRow>& rows, const Style& style) {
  size_t pod_width = 3, result_width = 6, node_width = 4;
  bool has_retries = false;
  for (const PodRow& row : rows) {
    pod_width = std::max(pod_width, row.report.pod.size());
    result_width = std::max(result_width, row.report.result.size());
    node_width = std::max(node_width, NodeOf(row).size());
    has_retries = has_retries || row.report.attempt > 1;
  }
  const std::string tries = "TRIES";
  const size_t column =
      pod_width + result_width + node_width + 6 + (has_retries ? tries.size() + 2 : 0);
  const bool own_line = column + kLeastWhyWidth > style.width;
  std::string table =
      Colored(style, Color::kBold,
              absl::StrCat(Padded("POD", pod_width), Padded("RESULT", result_width),
                           Padded("NODE", node_width), has_retries ? tries + "  " : "", "WHY"));
  table.push_back('\n');
  std::string last_why;
  std::string last_pod;
  for (const PodRow& row : rows) {
    const AttemptReport& report = row.report;
    const std::string gap = Padded("", result_width - report.result.size());
    absl::StrAppend(&table, Padded(report.pod, pod_width),
                    Colored(style, ColorOf(report.result), report.result), gap,
                    Padded(NodeOf(row), node_width));
    if (has_retries) {
      absl::StrAppend(
          &table, Padded(report.attempt > 0 ? absl::StrCat(report.attempt) : "-", tries.size()));
    }
    const size_t indent = own_line ? kOwnLineIndent : column;
    std::string why = row.why();
    // Members of a group often have the same long reason.
    if (why == last_why && indent + why.size() > style.width) {
      why = absl::StrCat("as ", last_pod);
    } else {
      last_why = why;
      last_pod = report.pod;
    }
    if (own_line || why.empty()) table.erase(table.find_last_not_of(' ') + 1);
    if (own_line && !why.empty()) absl::StrAppend(&table, "\n", std::string(indent, ' '));
    absl::StrAppend(&table, Wrapped(why, indent, indent, style), "\n");
  }
  table.push_back('\n');
  AppendCounts(rows, style, &table);
  AppendReasons(rows, style, &table);
  return table;
}

}  // namespace outboard::simulate
