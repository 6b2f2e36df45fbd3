// The table that `outboard simulate` prints.
#ifndef OUTBOARD_CLI_SIMULATE_TABLE_H_
#define OUTBOARD_CLI_SIMULATE_TABLE_H_

#include <cstddef>
#include <string>
#include <vector>

#include "cli/simulate/report.h"
#include "cli/simulate/terminal.h"

namespace outboard::simulate {

// A pod's last attempt, and the pods that it evicted before.
struct PodRow {
  AttemptReport report;
  std::vector<std::string> evicted;

  // Empty: none.
  const std::string& node() const {
    return report.node.empty() ? report.nominated_node : report.node;
  }
  std::string why() const;
};

// The rows of pods, in the order of their first reports.
std::vector<PodRow> RowsOf(const std::vector<AttemptReport>& reports);

// One row per pod: its node and why, or why it has none; then a summary. Ends with a newline.
std::string ToTable(const std::vector<PodRow>& rows, const Style& style);

// `text` in lines of the style's width, each but the first one indented. The first one begins at
// `column`. A word that is too long stays whole.
std::string Wrapped(const std::string& text, size_t column, size_t indent, const Style& style);

// The color of a result.
Color ColorOf(const std::string& result);

// `1 pod`, `2 pods`
std::string CountOf(size_t count, const std::string& one);

}  // namespace outboard::simulate

#endif  // OUTBOARD_CLI_SIMULATE_TABLE_H_
