// Kubernetes' validation of names, with its messages.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_VALIDATION_H_
#define OUTBOARD_PLUGIN_HOST_SDK_VALIDATION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace outboard::sdk {

// Errors of a label key or resource name (an optional DNS subdomain, a slash, a name); empty if
// valid.
std::vector<std::string> QualifiedNameErrors(absl::string_view value);
// Errors of a label value; empty if valid.
std::vector<std::string> LabelValueErrors(absl::string_view value);

// Texts of Kubernetes' field errors, without the path: `Invalid value: "x": detail`.
// Quotes the value.
std::string InvalidValue(absl::string_view text_value, absl::string_view detail);
std::string InvalidValue(int64_t value, absl::string_view detail);
std::string NotSupported(absl::string_view value, const std::vector<std::string>& supported);
std::string RequiredValue(absl::string_view detail);
std::string Forbidden(absl::string_view detail);
std::string DuplicateValue(absl::string_view value);
// A text as Go's %q prints it.
std::string Quote(absl::string_view text);

}  // namespace outboard::sdk

#endif  // OUTBOARD_PLUGIN_HOST_SDK_VALIDATION_H_
