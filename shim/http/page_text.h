// Text output of commands that show a shim's pages.
#ifndef OUTBOARD_SHIM_HTTP_PAGE_TEXT_H_
#define OUTBOARD_SHIM_HTTP_PAGE_TEXT_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace outboard::http {

// Like ages in kubectl: 5s, 12m, 3h, 2d; 0s for a negative age. Pure.
std::string Age(absl::Duration age);

// A page's time (RFC 3339); InfinitePast if invalid. Pure.
absl::Time TimeOf(absl::string_view text);

// A page's notice as the first line of a command's output; "" for an empty one. Pure.
std::string Notice(absl::string_view notice);

// What a replica that does not lead says about the leader. `identity` is the lease's holder, a
// pod's name, an underscore and an id; "" if none holds it. Pure.
std::string FollowerNote(absl::string_view identity);

// Aligned columns, two blanks apart, one line per row. All rows must have as many cells as the
// first row, which must exist. Pure.
std::string AlignedRows(const std::vector<std::vector<std::string>>& rows);

}  // namespace outboard::http

#endif  // OUTBOARD_SHIM_HTTP_PAGE_TEXT_H_
