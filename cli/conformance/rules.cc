#include "cli/conformance/rules.h"

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"

namespace outboard::conformance {
namespace {

constexpr char kMalformed[] = "outboard/malformed-answer";
constexpr char kLate[] = "outboard/late-answer";

}  // namespace

absl::Status Wrong(const Rule& rule, absl::string_view what) {
  return absl::FailedPreconditionError(
      absl::StrCat(rule.field, ": ", what, " (", rule.file, ": \"", rule.text, "\")"));
}

absl::Status Malformed(absl::string_view service, absl::Status wrong) {
  if (!wrong.ok() && !service.empty()) wrong.SetPayload(kMalformed, absl::Cord(service));
  return wrong;
}

std::string MalformedService(const absl::Status& status) {
  const absl::optional<absl::Cord> service = status.GetPayload(kMalformed);
  return service.has_value() ? std::string(*service) : "";
}

absl::Status Late(absl::Status wrong) {
  if (!wrong.ok()) wrong.SetPayload(kLate, absl::Cord());
  return wrong;
}

bool IsLate(const absl::Status& status) { return status.GetPayload(kLate).has_value(); }

absl::Status Skipped(absl::string_view why) { return absl::CancelledError(why); }

}  // namespace outboard::conformance
