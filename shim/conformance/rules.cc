#include "shim/conformance/rules.h"

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"

namespace outboard::conformance {
namespace {

constexpr char kMalformed[] = "outboard/malformed-answer";

}  // namespace

absl::Status Wrong(const Rule& rule, absl::string_view what) {
  return absl::FailedPreconditionError(
      absl::StrCat(rule.field, ": ", what, " (", rule.file, ": \"", rule.text, "\")"));
}

absl::Status Malformed(absl::string_view service, absl::Status wrong) {
  if (!wrong.ok()) wrong.SetPayload(kMalformed, absl::Cord(service));
  return wrong;
}

std::string MalformedService(const absl::Status& status) {
  return std::string(status.GetPayload(kMalformed).value_or(absl::Cord()));
}

absl::Status Skipped(absl::string_view why) { return absl::CancelledError(why); }

}  // namespace outboard::conformance
