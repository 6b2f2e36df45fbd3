#include "shim/conformance/rules.h"

#include "absl/strings/str_cat.h"

namespace outboard::conformance {

absl::Status Wrong(const Rule& rule, absl::string_view what) {
  return absl::FailedPreconditionError(
      absl::StrCat(rule.field, ": ", what, " (", rule.file, ": \"", rule.text, "\")"));
}

absl::Status Skipped(absl::string_view why) { return absl::CancelledError(why); }

}  // namespace outboard::conformance
