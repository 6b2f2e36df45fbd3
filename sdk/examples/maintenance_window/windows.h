// When a node is in maintenance.
#ifndef MAINTENANCE_WINDOW_WINDOWS_H_
#define MAINTENANCE_WINDOW_WINDOWS_H_

#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace maintenance_window {

struct Window {
  // Once, if `every` is zero: from `begin` to `end`. Else again and again, with that period.
  absl::Time begin, end;
  absl::Duration every;

  // Whether it has begun at `now`, or will within `lead`, and has not ended; `now` is finite. Pure.
  bool Covers(absl::Time now, absl::Duration lead) const;
};

// Windows of an annotation, see README.md; nothing if one of them cannot be read. Pure.
std::optional<std::vector<Window>> ParseWindows(absl::string_view text);

}  // namespace maintenance_window

#endif  // MAINTENANCE_WINDOW_WINDOWS_H_
