#include "plugin_host/sdk/label_values.h"

#include <cmath>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "glog/logging.h"
#include "plugin_host/sdk/validation.h"

namespace outboard::sdk {
namespace {

// A label value has at most 63 characters, an annotation up to 256 KiB.
constexpr size_t kMaxQuoted = 100;

bool IsDigit(char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); }

// True if it consumed at least one digit.
bool ConsumeDigits(absl::string_view* text) {
  size_t count = 0;
  while (count < text->size() && IsDigit((*text)[count])) ++count;
  text->remove_prefix(count);
  return count > 0;
}

}  // namespace

const std::string* FindValue(const StringMap& map, absl::string_view key) {
  // Most pods have none of a plugin's annotations, and many have no annotations.
  if (map.empty()) return nullptr;
  // By view, to avoid a string for the key.
  const auto it = map.find(std::string_view(key.data(), key.size()));
  return it == map.end() ? nullptr : &it->second;
}

std::optional<double> ParseAmount(absl::string_view text, double max) {
  // SimpleAtod also accepts signs, spaces, hexadecimal numbers, `1.`, `.5`, `inf` and `nan`.
  absl::string_view rest = text;
  if (!ConsumeDigits(&rest)) return std::nullopt;
  if (absl::ConsumePrefix(&rest, ".") && !ConsumeDigits(&rest)) return std::nullopt;
  if (absl::ConsumePrefix(&rest, "e") || absl::ConsumePrefix(&rest, "E")) {
    if (!absl::ConsumePrefix(&rest, "-")) absl::ConsumePrefix(&rest, "+");
    if (!ConsumeDigits(&rest)) return std::nullopt;
  }
  double value = 0;
  if (!rest.empty() || !absl::SimpleAtod(text, &value) || !std::isfinite(value) || value > max) {
    return std::nullopt;
  }
  return value;
}

std::optional<int64_t> ParseCount(absl::string_view text, int64_t max) {
  int64_t value = 0;
  // SimpleAtoi also accepts signs and spaces.
  for (const char c : text) {
    if (!IsDigit(c)) return std::nullopt;
  }
  if (text.empty() || !absl::SimpleAtoi(text, &value) || value > max) return std::nullopt;
  return value;
}

std::optional<bool> ParseBool(absl::string_view text) {
  if (absl::EqualsIgnoreCase(text, "true")) return true;
  if (absl::EqualsIgnoreCase(text, "false")) return false;
  return std::nullopt;
}

std::optional<absl::Time> ParseTimestamp(absl::string_view text) {
  // ParseTime also accepts surrounding spaces, years of any length and `infinite-future`.
  constexpr size_t kShortest = 20, kLongest = 35;
  if (text.size() < kShortest || text.size() > kLongest || text[4] != '-') return std::nullopt;
  for (const size_t i : {0, 1, 2, 3}) {
    if (!IsDigit(text[i])) return std::nullopt;
  }
  if (absl::ascii_isspace(static_cast<unsigned char>(text.back()))) return std::nullopt;
  absl::Time time;
  std::string error;
  if (!absl::ParseTime(absl::RFC3339_full, text, &time, &error)) return std::nullopt;
  return time;
}

void MalformedValues::Warn(absl::string_view object, absl::string_view key, absl::string_view value,
                           absl::string_view wanted) {
  if (warned_keys_.size() >= kMaxObjects && !warned_keys_.contains(object)) warned_keys_.clear();
  if (!warned_keys_[std::string(object)].insert(std::string(key)).second) return;
  ++warned_;
  LOG(WARNING) << plugin_ << ": " << object << ": " << key << "="
               << Quote(value.substr(0, kMaxQuoted)) << " is not " << wanted
               << " and counts as absent";
}

void MalformedValues::Forget(absl::string_view object) { warned_keys_.erase(object); }

}  // namespace outboard::sdk
