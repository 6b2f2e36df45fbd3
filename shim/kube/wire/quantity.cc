#include "shim/kube/wire/quantity.h"

#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"

namespace outboard::kube {
namespace {

using uint128 = unsigned __int128;

constexpr uint64_t kMaxInt64 = std::numeric_limits<int64_t>::max();

absl::Status WrongFormat() {
  return absl::InvalidArgumentError(
      "quantities must match the regular expression "
      "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'");
}
absl::Status WrongNumber() {
  return absl::InvalidArgumentError("unable to parse numeric part of quantity");
}
absl::Status WrongSuffix() {
  return absl::InvalidArgumentError("unable to parse quantity's suffix");
}

// The factor of a suffix: 10^ten, or 2^two.
struct Suffix {
  int32_t ten = 0;
  int two = 0;
  bool binary = false;
};

bool ParseSuffix(absl::string_view text, Suffix* out) {
  if (text.empty()) return true;
  constexpr absl::string_view kLetters = "numkMGTPE";
  constexpr int8_t kExponents[] = {-9, -6, -3, 3, 6, 9, 12, 15, 18};
  if (text.size() == 1) {
    const size_t at = kLetters.find(text[0]);
    if (at == absl::string_view::npos) return false;
    out->ten = kExponents[at];
    return true;
  }
  if (text.size() == 2 && text[1] == 'i') {
    constexpr absl::string_view kBinary = "KMGTPE";
    const size_t at = kBinary.find(text[0]);
    if (at == absl::string_view::npos) return false;
    out->two = 10 * (static_cast<int>(at) + 1);
    out->binary = true;
    return true;
  }
  if (text[0] != 'e' && text[0] != 'E') return false;
  int64_t exponent = 0;
  absl::string_view digits = text.substr(1);
  // SimpleAtoi also accepts surrounding spaces; the caller has excluded them.
  if (!absl::SimpleAtoi(digits, &exponent)) return false;
  out->ten = static_cast<int32_t>(exponent);  // Truncated as in resource.Quantity.
  return true;
}

// A quantity's parts: value = (-1)^negative * int(whole ++ fraction) * 10^-len(fraction) * suffix.
struct Parts {
  bool negative = false;
  absl::string_view whole;     // without leading zeros
  absl::string_view fraction;  // digits after the point
  bool has_digits = false;     // leading zeros count
  Suffix suffix;
};

size_t SkipDigits(absl::string_view text, size_t pos) {
  while (pos < text.size() && absl::ascii_isdigit(text[pos])) ++pos;
  return pos;
}

// A text without digits ("Ki", ".") is zero if resource.Quantity's quick path accepts it, otherwise
// an error.
bool NoDigitsIsZero(const Parts& parts) {
  if (parts.suffix.binary) return parts.suffix.two < 50;
  return parts.suffix.ten >= -9;
}

absl::Status Split(absl::string_view text, Parts* out) {
  if (text.empty()) return WrongFormat();
  size_t pos = 0;
  if (text[0] == '-' || text[0] == '+') {
    out->negative = text[0] == '-';
    pos = 1;
  }
  const size_t first = pos;
  while (pos < text.size() && text[pos] == '0') ++pos;
  out->has_digits = pos > first;
  // "", "+" and "000" are zero here.
  if (pos == text.size()) return absl::OkStatus();
  size_t end = SkipDigits(text, pos);
  out->whole = text.substr(pos, end - pos);
  pos = end;
  if (pos < text.size() && text[pos] == '.') {
    end = SkipDigits(text, pos + 1);
    out->fraction = text.substr(pos + 1, end - pos - 1);
    pos = end;
  }
  out->has_digits = out->has_digits || !out->whole.empty() || !out->fraction.empty();
  const size_t suffix = pos;
  constexpr absl::string_view kSuffixLetters = "eEinumkKMGTP";
  while (pos < text.size() && kSuffixLetters.find(text[pos]) != absl::string_view::npos) ++pos;
  if (pos < text.size() && (text[pos] == '-' || text[pos] == '+')) ++pos;
  if (SkipDigits(text, pos) != text.size()) return WrongFormat();
  if (!ParseSuffix(text.substr(suffix), &out->suffix)) return WrongSuffix();
  if (!out->has_digits && !NoDigitsIsZero(*out)) return WrongNumber();
  return absl::OkStatus();
}

// The digits of whole and fraction as one number.
class Digits {
 public:
  explicit Digits(const Parts& parts) : whole_(parts.whole), fraction_(parts.fraction) {}
  int64_t size() const { return static_cast<int64_t>(whole_.size() + fraction_.size()); }
  int operator[](int64_t i) const {
    const auto at = static_cast<size_t>(i);
    return (at < whole_.size() ? whole_[at] : fraction_[at - whole_.size()]) - '0';
  }

 private:
  absl::string_view whole_;
  absl::string_view fraction_;
};

// ceil(digits * 10^ten * 2^two), at most kMaxInt64. Exact for any number of digits.
uint64_t ScaleUp(const Digits& digits, int64_t ten, int two) {
  int64_t size = digits.size();
  int64_t begin = 0;
  while (begin < size && digits[begin] == 0) ++begin;
  while (size > begin && digits[size - 1] == 0) {
    --size;
    ++ten;
  }
  if (begin == size) return 0;
  // Digits [begin, point) are before the decimal point, [point, size) after it; `point` may lie
  // outside the digits.
  const int64_t point = size + ten;
  uint128 whole = 0;
  for (int64_t i = begin; i < point; ++i) {
    whole = whole * 10 + static_cast<unsigned>(i < size ? digits[i] : 0);
    if (whole > kMaxInt64) return kMaxInt64;
  }
  // The fraction times 2^two, starting at its last digit: a carry over the point belongs to the
  // whole part.
  uint128 carry = 0;
  bool rest = false;
  for (int64_t i = size - 1; i >= point; --i) {
    if (i < begin && carry == 0) break;
    carry += static_cast<uint128>(i < begin ? 0 : digits[i]) << two;
    rest = rest || carry % 10 != 0;
    carry /= 10;
  }
  const uint128 result = (whole << two) + carry + (rest ? 1 : 0);
  return result > kMaxInt64 ? kMaxInt64 : static_cast<uint64_t>(result);
}

// The plain forms of nearly all objects: up to 15 digits, then nothing, m, or k M G Ki Mi Gi. False
// for all others.
bool QuickScale(absl::string_view text, bool milli, int64_t* out) {
  uint64_t number = 0;
  size_t pos = 0;
  for (; pos < text.size() && absl::ascii_isdigit(text[pos]); ++pos) {
    if (pos == 15) return false;
    number = number * 10 + static_cast<uint64_t>(text[pos] - '0');
  }
  if (pos == 0) return false;
  uint64_t factor = milli ? 1000 : 1;
  const size_t left = text.size() - pos;
  if (left == 1 && text[pos] == 'm') {
    *out = static_cast<int64_t>(milli ? number : (number + 999) / 1000);
    return true;
  }
  if (left == 2 && text[pos + 1] == 'i') {
    switch (text[pos]) {
      case 'K':
        factor <<= 10;
        break;
      case 'M':
        factor <<= 20;
        break;
      case 'G':
        factor <<= 30;
        break;
      default:
        return false;
    }
  } else if (left == 1) {
    switch (text[pos]) {
      case 'k':
        factor *= 1000;
        break;
      case 'M':
        factor *= 1000000;
        break;
      case 'G':
        factor *= 1000000000;
        break;
      default:
        return false;
    }
  } else if (left != 0) {
    return false;
  }
  const uint128 product = static_cast<uint128>(number) * factor;
  *out = static_cast<int64_t>(product > kMaxInt64 ? kMaxInt64 : static_cast<uint64_t>(product));
  return true;
}

absl::StatusOr<int64_t> Scale(absl::string_view text, bool milli) {
  int64_t quick = 0;
  if (QuickScale(text, milli, &quick)) return quick;
  Parts parts;
  if (absl::Status status = Split(text, &parts); !status.ok()) return status;
  const int64_t ten = static_cast<int64_t>(parts.suffix.ten) -
                      static_cast<int64_t>(parts.fraction.size()) + (milli ? 3 : 0);
  const auto amount = static_cast<int64_t>(ScaleUp(Digits(parts), ten, parts.suffix.two));
  return parts.negative ? -amount : amount;
}

}  // namespace

absl::StatusOr<int64_t> QuantityValue(absl::string_view text) { return Scale(text, false); }

absl::StatusOr<int64_t> QuantityMilliValue(absl::string_view text) { return Scale(text, true); }

}  // namespace outboard::kube
