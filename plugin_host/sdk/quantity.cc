#include "plugin_host/sdk/quantity.h"

#include <cmath>
#include <cstdlib>
#include <map>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace outboard::sdk {

absl::StatusOr<int64_t> ParseQuantity(absl::string_view text, int64_t scale) {
  static const auto& factors = *new std::map<std::string, long double>{
      {"", 1},         {"n", 1e-9L},    {"u", 1e-6L},    {"m", 1e-3L},
      {"k", 1e3L},     {"M", 1e6L},     {"G", 1e9L},     {"T", 1e12L},
      {"P", 1e15L},    {"E", 1e18L},    {"Ki", 0x1p10L}, {"Mi", 0x1p20L},
      {"Gi", 0x1p30L}, {"Ti", 0x1p40L}, {"Pi", 0x1p50L}, {"Ei", 0x1p60L}};
  size_t end = 0;
  while (end < text.size() && (absl::ascii_isdigit(text[end]) || text[end] == '.' ||
                               (end == 0 && (text[end] == '-' || text[end] == '+')))) {
    ++end;
  }
  const std::string number(text.substr(0, end));
  absl::string_view suffix = text.substr(end);
  long double factor = 0;
  int exponent = 0;
  // `12e6` and `12E6`; `E` alone is exa.
  if (suffix.size() > 1 && absl::ascii_tolower(suffix[0]) == 'e' &&
      absl::SimpleAtoi(suffix.substr(1), &exponent) && std::abs(exponent) <= 30) {
    factor = std::pow(10.0L, exponent);
  } else if (const auto known = factors.find(std::string(suffix)); known != factors.end()) {
    factor = known->second;
  }
  double value = 0;
  if (factor == 0 || !absl::SimpleAtod(number, &value)) {
    return absl::InvalidArgumentError(absl::StrCat("\"", text, "\" is not a quantity"));
  }
  const long double amount = std::strtold(number.c_str(), nullptr) * factor * scale;
  if (!(std::fabs(amount) < 0x1p63L))
    return absl::InvalidArgumentError(absl::StrCat("\"", text, "\" is too large"));
  // Rounds nearly integral values: 0.1 has no exact binary form.
  const long double whole = std::round(amount);
  const long double slack = 1e-9L + 1e-15L * std::fabs(amount);
  return static_cast<int64_t>(std::fabs(amount - whole) <= slack ? whole : std::ceil(amount));
}

absl::Status SetResource(absl::string_view name, absl::string_view quantity,
                         v1beta1::ResourceList* list) {
  absl::StatusOr<int64_t> amount = ParseQuantity(quantity, name == "cpu" ? 1000 : 1);
  if (!amount.ok()) return amount.status();
  if (name == "cpu") {
    list->set_cpu_millis(*amount);
  } else if (name == "memory") {
    list->set_memory_bytes(*amount);
  } else if (name == "ephemeral-storage") {
    list->set_ephemeral_storage_bytes(*amount);
  } else if (name == "pods") {
    list->set_pods(*amount);
  } else {
    (*list->mutable_scalar())[std::string(name)] = *amount;
  }
  return absl::OkStatus();
}

}  // namespace outboard::sdk
