#include "cli/config/line_diff.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace outboard::config_command {
namespace {

constexpr size_t kContext = 3;
// Of the table that finds the longest common part: 64 MiB.
constexpr size_t kMaxCells = 16 << 20;

using Lines = std::vector<absl::string_view>;

struct Line {
  char mark;  // ' ', '-' or '+'
  absl::string_view text;
};

Lines Split(absl::string_view text) {
  if (text.empty()) return {};
  return absl::StrSplit(absl::StripSuffix(text, "\n"), '\n');
}

// All lines of both, in order.
class Comparison {
 public:
  Comparison(const Lines& a, const Lines& b) : a_(a), b_(b) {
    size_t begin = 0;
    while (begin < std::min(a.size(), b.size()) && a[begin] == b[begin]) ++begin;
    size_t end = 0;
    while (end < std::min(a.size(), b.size()) - begin &&
           a[a.size() - 1 - end] == b[b.size() - 1 - end])
      ++end;
    for (size_t i = 0; i < begin; ++i) lines_.push_back({' ', a[i]});
    Compare(begin, a.size() - end, begin, b.size() - end);
    for (size_t i = a.size() - end; i < a.size(); ++i) lines_.push_back({' ', a[i]});
  }
  const std::vector<Line>& lines() const { return lines_; }

 private:
  void Compare(size_t a_begin, size_t a_end, size_t b_begin, size_t b_end) {
    const size_t rows = a_end - a_begin, columns = b_end - b_begin;
    size_t i = 0, j = 0;
    if (rows != 0 && columns != 0 && (rows + 1) * (columns + 1) <= kMaxCells) {
      // common[i][j]: the length of the longest common part of the lines from i and from j on.
      std::vector<uint32_t> common((rows + 1) * (columns + 1));
      const auto at = [&](size_t row, size_t column) -> uint32_t& {
        return common[row * (columns + 1) + column];
      };
      for (size_t row = rows; row-- > 0;) {
        for (size_t column = columns; column-- > 0;) {
          at(row, column) = a_[a_begin + row] == b_[b_begin + column]
                                ? at(row + 1, column + 1) + 1
                                : std::max(at(row + 1, column), at(row, column + 1));
        }
      }
      while (i < rows && j < columns) {
        if (a_[a_begin + i] == b_[b_begin + j]) {
          lines_.push_back({' ', a_[a_begin + i]});
          ++i, ++j;
        } else if (at(i + 1, j) >= at(i, j + 1)) {
          lines_.push_back({'-', a_[a_begin + i++]});
        } else {
          lines_.push_back({'+', b_[b_begin + j++]});
        }
      }
    }
    while (i < rows) lines_.push_back({'-', a_[a_begin + i++]});
    while (j < columns) lines_.push_back({'+', b_[b_begin + j++]});
  }

  const Lines& a_;
  const Lines& b_;
  std::vector<Line> lines_;
};

// The end of the hunk that begins with the change at `change`: changes with less than twice the
// context between them are in one hunk.
size_t EndOfHunk(const std::vector<Line>& lines, size_t change) {
  size_t last = change;
  for (size_t i = change; i < lines.size() && i <= last + 2 * kContext; ++i) {
    if (lines[i].mark != ' ') last = i;
  }
  return std::min(lines.size(), last + 1 + kContext);
}

// `BEGIN,COUNT` of a hunk; an empty range names the line before it.
std::string Range(size_t before, size_t count) {
  return absl::StrCat(count == 0 ? before : before + 1, count == 1 ? "" : absl::StrCat(",", count));
}

}  // namespace

std::string UnifiedDiff(absl::string_view old_name, absl::string_view old_text,
                        absl::string_view new_name, absl::string_view new_text) {
  if (old_text == new_text) return "";
  const Lines a = Split(old_text), b = Split(new_text);
  const Comparison comparison(a, b);
  const std::vector<Line>& lines = comparison.lines();
  std::string diff = absl::StrCat("--- ", old_name, "\n+++ ", new_name, "\n");
  size_t old_lines = 0, new_lines = 0;  // before `done`
  size_t done = 0;
  const auto count = [&](size_t begin, size_t end, char other) {
    return static_cast<size_t>(
        std::count_if(lines.begin() + static_cast<std::ptrdiff_t>(begin),
                      lines.begin() + static_cast<std::ptrdiff_t>(end),
                      [other](const Line& line) { return line.mark != other; }));
  };
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].mark == ' ') continue;
    const size_t begin = std::max(done, i < kContext ? 0 : i - kContext);
    const size_t end = EndOfHunk(lines, i);
    old_lines += count(done, begin, '+');
    new_lines += count(done, begin, '-');
    const size_t its_old = count(begin, end, '+'), its_new = count(begin, end, '-');
    absl::StrAppend(&diff, "@@ -", Range(old_lines, its_old), " +", Range(new_lines, its_new),
                    " @@\n");
    for (size_t line = begin; line < end; ++line)
      absl::StrAppend(&diff, absl::string_view(&lines[line].mark, 1), lines[line].text, "\n");
    old_lines += its_old;
    new_lines += its_new;
    done = end;
    i = end - 1;
  }
  return diff;
}

}  // namespace outboard::config_command
