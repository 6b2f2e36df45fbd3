// Maintenance windows of a node.
#ifndef MAINTENANCE_WINDOW_WINDOWS_H_
#define MAINTENANCE_WINDOW_WINDOWS_H_

#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace maintenance_window {

struct Window {
  // If `every` is zero: once, from `begin` to `end`. Otherwise repeated with that period.
  absl::Time begin, end;
  absl::Duration every;

  // Whether the window is open at `now`, or opens within `lead`; `now` is finite. Pure.
  bool Covers(absl::Time now, absl::Duration lead) const;
};

// Parses an annotation, see README.md; nullopt if a window is invalid. Pure.
std::optional<std::vector<Window>> ParseWindows(absl::string_view text);

}  // namespace maintenance_window

#endif  // MAINTENANCE_WINDOW_WINDOWS_H_
