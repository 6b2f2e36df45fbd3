#include "shim/config/nearest.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace outboard::config {
namespace {

constexpr size_t kMinPrefix = 3;

}  // namespace

std::string Nearest(absl::string_view name, const std::vector<std::string>& candidates) {
  if (name.size() > 64) return "";
  const std::string wanted = absl::AsciiStrToLower(name);
  size_t best = std::max<size_t>(2, wanted.size() / 4) + 1;
  std::string nearest, longer;
  int num_longer = 0;
  for (const std::string& candidate : candidates) {
    const std::string other = absl::AsciiStrToLower(candidate);
    if (wanted.size() >= kMinPrefix && absl::StartsWith(other, wanted)) {
      longer = candidate;
      ++num_longer;
    }
    std::vector<size_t> row(other.size() + 1);
    for (size_t j = 0; j <= other.size(); ++j) row[j] = j;
    for (size_t i = 1; i <= wanted.size(); ++i) {
      size_t diagonal = row[0];
      row[0] = i;
      for (size_t j = 1; j <= other.size(); ++j) {
        const size_t change = diagonal + (wanted[i - 1] == other[j - 1] ? 0 : 1);
        diagonal = row[j];
        row[j] = std::min({row[j] + 1, row[j - 1] + 1, change});
      }
    }
    if (row.back() < best && 2 * row.back() <= wanted.size()) {
      best = row.back();
      nearest = candidate;
    }
  }
  return nearest.empty() && num_longer == 1 ? longer : nearest;
}

std::string DidYouMean(absl::string_view name, const std::vector<std::string>& candidates) {
  const std::string nearest = Nearest(name, candidates);
  return nearest.empty() ? "" : absl::StrCat("; did you mean ", nearest, "?");
}

}  // namespace outboard::config
