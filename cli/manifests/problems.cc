#include "cli/manifests/problems.h"

#include <algorithm>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "shim/kube/wire/utf8.h"

namespace outboard::manifests {
namespace {

// Enough to mend; a list of ten thousand pods with the same typo has as many problems.
constexpr size_t kMostLines = 100;

}  // namespace

size_t Problems::AddFile(absl::string_view name) {
  files_.emplace_back(name);
  return files_.size() - 1;
}

std::string Problems::Place(const Position& at) const {
  if (at.line == 0) return files_[at.file];
  return absl::StrCat(files_[at.file], ":", at.line, ":", at.column);
}

void Problems::Error(const Position& at, absl::string_view what) {
  errors_.push_back({at, kube::ToUtf8(what)});
}

void Problems::Warn(const Position& at, absl::string_view what) {
  warnings_.push_back({at, kube::ToUtf8(what)});
}

std::vector<std::string> Problems::Lines(std::vector<Problem> problems) const {
  std::stable_sort(problems.begin(), problems.end(), [](const Problem& a, const Problem& b) {
    return std::tie(a.at.file, a.at.line, a.at.column) <
           std::tie(b.at.file, b.at.line, b.at.column);
  });
  std::vector<std::string> lines;
  for (const Problem& problem : problems) {
    if (lines.size() == kMostLines) {
      lines.push_back(absl::StrCat("… and ", problems.size() - kMostLines, " more"));
      break;
    }
    lines.push_back(absl::StrCat(Place(problem.at), ": ", problem.what));
  }
  return lines;
}

}  // namespace outboard::manifests
