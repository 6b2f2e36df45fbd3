#include "shim/http/page_text.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace outboard::http {

std::string Age(absl::Duration age) {
  const int64_t seconds = std::max<int64_t>(absl::ToInt64Seconds(age), 0);
  if (seconds < 120) return absl::StrCat(seconds, "s");
  if (seconds < 120 * 60) return absl::StrCat(seconds / 60, "m");
  if (seconds < 48 * 3600) return absl::StrCat(seconds / 3600, "h");
  return absl::StrCat(seconds / 86400, "d");
}

absl::Time TimeOf(absl::string_view text) {
  absl::Time time;
  std::string error;
  if (!absl::ParseTime(absl::RFC3339_full, text, &time, &error)) return absl::InfinitePast();
  return time;
}

std::string Notice(absl::string_view notice) {
  return notice.empty() ? "" : absl::StrCat("warning: ", notice, "\n");
}

std::string FollowerNote(absl::string_view identity) {
  if (identity.empty()) return "this replica does not lead, and no other one does now";
  return absl::StrCat("this replica does not lead; the leader is ",
                      identity.substr(0, identity.rfind('_')));
}

std::string AlignedRows(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths(rows[0].size());
  for (const auto& row : rows)
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string out;
  for (const auto& row : rows) {
    std::string text;
    for (size_t i = 0; i < row.size(); ++i) {
      absl::StrAppend(&text, row[i]);
      if (i + 1 < row.size()) text.append(widths[i] - row[i].size() + 2, ' ');
    }
    absl::StrAppend(&out, absl::StripTrailingAsciiWhitespace(text), "\n");
  }
  return out;
}

}  // namespace outboard::http
