// Suggestions for names with a typo.
#ifndef OUTBOARD_SHIM_CONFIG_NEAREST_H_
#define OUTBOARD_SHIM_CONFIG_NEAREST_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace outboard::config {

// The candidate nearest to `name` if it is close enough to be a typo, or if it is the only
// candidate that begins with `name`. Otherwise empty.
std::string Nearest(absl::string_view name, const std::vector<std::string>& candidates);

// "; did you mean NEAREST?", or empty.
std::string DidYouMean(absl::string_view name, const std::vector<std::string>& candidates);

}  // namespace outboard::config

#endif  // OUTBOARD_SHIM_CONFIG_NEAREST_H_
