#include "shim/kube/wire/name_rules.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "shim/kube/wire/utf8.h"

namespace outboard::kube {
namespace {

bool IsLowerAlnum(char c) { return absl::ascii_isdigit(c) || absl::ascii_islower(c); }

bool IsDnsLabel(absl::string_view text) {
  return !text.empty() && IsLowerAlnum(text.front()) && IsLowerAlnum(text.back()) &&
         std::all_of(text.begin(), text.end(), [](char c) { return IsLowerAlnum(c) || c == '-'; });
}

// Letters, digits, -, _ and ., with a letter or digit at both ends.
bool IsName(absl::string_view text) {
  return !text.empty() && absl::ascii_isalnum(text.front()) && absl::ascii_isalnum(text.back()) &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '.';
         });
}

std::string Quoted(absl::string_view text) { return absl::StrCat("\"", ToUtf8(text), "\""); }

std::string TooLong(absl::string_view text, int limit) {
  return absl::StrCat(Quoted(text), " must be no more than ", limit, " characters");
}

}  // namespace

std::string CheckPathSegment(absl::string_view name) {
  if (name.empty()) return "must not be empty";
  if (name == "." || name == "..") return absl::StrCat("must not be ", Quoted(name));
  if (name.find_first_of("/%") == absl::string_view::npos) return "";
  return absl::StrCat(Quoted(name.substr(0, 253)), " must not contain '/' or '%'");
}

std::string CheckSubdomain(absl::string_view name) {
  if (name.empty()) return "must not be empty";
  if (name.size() > 253) return TooLong(name, 253);
  absl::string_view rest = name;
  while (true) {
    const size_t dot = rest.find('.');
    if (!IsDnsLabel(rest.substr(0, dot))) {
      return absl::StrCat(
          Quoted(name),
          " must consist of lower case alphanumeric characters, '-' or '.', and must start and end "
          "with an alphanumeric character (a lowercase RFC 1123 subdomain)");
    }
    if (dot == absl::string_view::npos) return "";
    rest.remove_prefix(dot + 1);
  }
}

std::string CheckDnsLabel(absl::string_view name) {
  if (name.empty()) return "must not be empty";
  if (name.size() > 63) return TooLong(name, 63);
  if (IsDnsLabel(name)) return "";
  return absl::StrCat(
      Quoted(name),
      " must consist of lower case alphanumeric characters or '-', and must start and end with an "
      "alphanumeric character (a lowercase RFC 1123 label)");
}

std::string CheckQualifiedName(absl::string_view name) {
  if (name.empty()) return "must not be empty";
  absl::string_view base = name;
  if (const size_t slash = name.find('/'); slash != absl::string_view::npos) {
    if (std::string wrong = CheckSubdomain(name.substr(0, slash)); !wrong.empty()) {
      return absl::StrCat("the prefix of ", Quoted(name), ": ", wrong);
    }
    base.remove_prefix(slash + 1);
  }
  if (base.size() > 63) return TooLong(base, 63);
  if (IsName(base)) return "";
  return absl::StrCat(Quoted(name),
                      " must be [prefix/]name, and name must consist of alphanumeric characters, "
                      "'-', '_' or '.', and "
                      "must start and end with an alphanumeric character");
}

std::string CheckLabelValue(absl::string_view value) {
  if (value.empty()) return "";
  if (value.size() > 63) return TooLong(value, 63);
  if (IsName(value)) return "";
  return absl::StrCat(Quoted(value),
                      " must be empty or consist of alphanumeric characters, '-', '_' or '.', and "
                      "must start and end "
                      "with an alphanumeric character");
}

}  // namespace outboard::kube
