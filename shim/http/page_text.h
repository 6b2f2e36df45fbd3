// How commands show what a shim's pages say.
#ifndef OUTBOARD_SHIM_HTTP_PAGE_TEXT_H_
#define OUTBOARD_SHIM_HTTP_PAGE_TEXT_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace outboard::http {

// As kubectl shows ages: 5s, 12m, 3h, 2d; 0s for one that lies ahead. Pure.
std::string Age(absl::Duration age);

// A page's time (RFC 3339); InfinitePast if the text is none. Pure.
absl::Time TimeOf(absl::string_view text);

// Rows with aligned columns, two blanks apart, a line each. All have as many cells as the first, of
// which there is one. Pure.
std::string AlignedRows(const std::vector<std::vector<std::string>>& rows);

}  // namespace outboard::http

#endif  // OUTBOARD_SHIM_HTTP_PAGE_TEXT_H_
