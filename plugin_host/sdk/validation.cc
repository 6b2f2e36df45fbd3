#include "plugin_host/sdk/validation.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace outboard::sdk {
namespace {

constexpr char kNameRegex[] = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
constexpr char kNameRule[] =
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character";
constexpr char kSubdomainRegex[] =
    "[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";

std::string RegexError(absl::string_view rule, absl::string_view regex,
                       const std::vector<std::string>& examples) {
  std::string result = absl::StrCat(rule, " (e.g. ");
  for (size_t i = 0; i < examples.size(); ++i) {
    absl::StrAppend(&result, i > 0 ? " or " : "", "'", examples[i], "', ");
  }
  absl::StrAppend(&result, "regex used for validation is '", regex, "')");
  return result;
}

bool IsName(absl::string_view name) {
  if (name.empty() || !absl::ascii_isalnum(name.front()) || !absl::ascii_isalnum(name.back())) {
    return false;
  }
  return std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '.';
  });
}

bool IsDnsLabel(absl::string_view label) {
  auto alnum = [](unsigned char c) { return absl::ascii_islower(c) || absl::ascii_isdigit(c); };
  if (label.empty() || !alnum(label.front()) || !alnum(label.back())) return false;
  return std::all_of(label.begin(), label.end(),
                     [&](unsigned char c) { return alnum(c) || c == '-'; });
}

std::vector<std::string> SubdomainErrors(absl::string_view value) {
  std::vector<std::string> errors;
  if (value.size() > 253) errors.push_back("must be no more than 253 bytes");
  const std::vector<absl::string_view> labels = absl::StrSplit(value, '.');
  if (!std::all_of(labels.begin(), labels.end(), IsDnsLabel)) {
    errors.push_back(RegexError(
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
        "'.', and must start and end with an alphanumeric character",
        kSubdomainRegex, {"example.com"}));
  }
  return errors;
}

}  // namespace

std::vector<std::string> QualifiedNameErrors(absl::string_view value) {
  std::vector<std::string> errors;
  const std::vector<absl::string_view> parts = absl::StrSplit(value, '/');
  if (parts.size() > 2) {
    return {absl::StrCat("a valid label key ",
                         RegexError(kNameRule, kNameRegex, {"MyName", "my.name", "123-abc"}),
                         " with an optional DNS subdomain prefix and '/' (e.g. "
                         "'example.com/MyName')")};
  }
  if (parts.size() == 2) {
    if (parts[0].empty()) {
      errors.push_back("prefix part must be non-empty");
    } else {
      for (const std::string& error : SubdomainErrors(parts[0])) {
        errors.push_back(absl::StrCat("prefix part ", error));
      }
    }
  }
  const absl::string_view name = parts.back();
  if (name.empty()) {
    errors.push_back("name part must be non-empty");
  } else if (name.size() > 63) {
    errors.push_back("name part must be no more than 63 bytes");
  }
  if (!IsName(name)) {
    errors.push_back(absl::StrCat(
        "name part ", RegexError(kNameRule, kNameRegex, {"MyName", "my.name", "123-abc"})));
  }
  return errors;
}

std::vector<std::string> LabelValueErrors(absl::string_view value) {
  std::vector<std::string> errors;
  if (value.size() > 63) errors.push_back("must be no more than 63 bytes");
  if (!value.empty() && !IsName(value)) {
    errors.push_back(RegexError(
        "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
        "'.', and must start and end with an alphanumeric character",
        absl::StrCat("(", kNameRegex, ")?"), {"MyValue", "my_value", "12345"}));
  }
  return errors;
}

std::string Quote(absl::string_view text) {
  return absl::StrCat("\"", absl::Utf8SafeCEscape(text), "\"");
}

std::string InvalidValue(absl::string_view text_value, absl::string_view detail) {
  return absl::StrCat("Invalid value: ", Quote(text_value), ": ", detail);
}

std::string InvalidValue(int64_t value, absl::string_view detail) {
  return absl::StrCat("Invalid value: ", value, ": ", detail);
}

std::string NotSupported(absl::string_view value, const std::vector<std::string>& supported) {
  return absl::StrCat("Unsupported value: ", Quote(value), ": supported values: ",
                      absl::StrJoin(supported, ", ", [](std::string* out, const std::string& text) {
                        out->append(Quote(text));
                      }));
}

std::string RequiredValue(absl::string_view detail) {
  return absl::StrCat("Required value: ", detail);
}

std::string Forbidden(absl::string_view detail) { return absl::StrCat("Forbidden: ", detail); }

std::string DuplicateValue(absl::string_view value) {
  return absl::StrCat("Duplicate value: ", Quote(value));
}

}  // namespace outboard::sdk
