// Order of resource versions, if they are comparable.
#ifndef OUTBOARD_SHIM_INFORMER_RESOURCE_VERSION_H_
#define OUTBOARD_SHIM_INFORMER_RESOURCE_VERSION_H_

#include <algorithm>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/string_view.h"

namespace outboard::informer {

// Whether `text` is a decimal number without leading zeros. Other versions are opaque.
inline bool IsComparableVersion(absl::string_view text) {
  return !text.empty() && text[0] != '0' && std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isdigit(static_cast<unsigned char>(c));
  });
}

// Less than, equal to or greater than zero if a is older than, equal to or newer than b; nullopt if
// either is opaque.
inline std::optional<int> CompareVersions(absl::string_view a, absl::string_view b) {
  if (!IsComparableVersion(a) || !IsComparableVersion(b)) return std::nullopt;
  if (a.size() != b.size()) return a.size() < b.size() ? -1 : 1;
  return a.compare(b);
}

// Whether a is known to be older than b.
inline bool IsOlderVersion(absl::string_view a, absl::string_view b) {
  return CompareVersions(a, b).value_or(0) < 0;
}

}  // namespace outboard::informer

#endif  // OUTBOARD_SHIM_INFORMER_RESOURCE_VERSION_H_
