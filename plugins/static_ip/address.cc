#include "plugins/static_ip/address.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

namespace outboard::static_ip {
namespace {

using Bytes = std::array<unsigned char, 16>;

absl::uint128 Largest(bool v6) { return v6 ? absl::Uint128Max() : absl::uint128(0xffffffffu); }

Bytes ToBytes(const Address& address) {
  Bytes bytes{};
  absl::uint128 left = address.value;
  for (int i = address.v6 ? 15 : 3; i >= 0; --i) {
    bytes[i] = static_cast<unsigned char>(absl::Uint128Low64(left) & 0xff);
    left >>= 8;
  }
  return bytes;
}

Address FromBytes(bool v6, const Bytes& bytes) {
  Address address;
  address.v6 = v6;
  for (int i = 0; i < (v6 ? 16 : 4); ++i) address.value = (address.value << 8) | bytes[i];
  return address;
}

bool IsHex(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }

}  // namespace

std::optional<Address> ParseAddress(absl::string_view text) {
  if (text.size() > 45 || text.find('\0') != absl::string_view::npos) return std::nullopt;
  const std::string copy(text);
  Bytes bytes{};
  const bool v6 = text.find(':') != absl::string_view::npos;
  if (inet_pton(v6 ? AF_INET6 : AF_INET, copy.c_str(), bytes.data()) != 1) return std::nullopt;
  return FromBytes(v6, bytes);
}

std::string ToText(const Address& address) {
  const Bytes bytes = ToBytes(address);
  char text[INET6_ADDRSTRLEN] = {};
  inet_ntop(address.v6 ? AF_INET6 : AF_INET, bytes.data(), text, sizeof(text));
  return text;
}

std::string NameOf(const Address& address) {
  const Bytes bytes = ToBytes(address);
  std::string name;
  for (int i = 0; i < (address.v6 ? 16 : 4); i += address.v6 ? 2 : 1) {
    absl::StrAppend(&name, name.empty() ? "" : "-");
    if (address.v6) {
      absl::StrAppendFormat(&name, "%02x%02x", bytes[i], bytes[i + 1]);
    } else {
      absl::StrAppend(&name, static_cast<int>(bytes[i]));
    }
  }
  return name;
}

std::optional<Address> AddressOfName(absl::string_view name) {
  const std::vector<absl::string_view> groups = absl::StrSplit(name, '-');
  if (groups.size() != 4 && groups.size() != 8) return std::nullopt;
  const bool v6 = groups.size() == 8;
  if (v6 && !std::all_of(name.begin(), name.end(), [](char c) { return IsHex(c) || c == '-'; }))
    return std::nullopt;
  const std::optional<Address> address =
      ParseAddress(absl::StrReplaceAll(name, {{"-", v6 ? ":" : "."}}));
  if (!address || NameOf(*address) != name) return std::nullopt;
  return address;
}

std::optional<Range> ParseCidr(absl::string_view text) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, '/');
  int bits = 0;
  if (parts.size() != 2 || parts[1].empty() || parts[1].size() > 3 ||
      !std::all_of(parts[1].begin(), parts[1].end(), [](char c) { return c >= '0' && c <= '9'; }) ||
      !absl::SimpleAtoi(parts[1], &bits)) {
    return std::nullopt;
  }
  const std::optional<Address> first = ParseAddress(parts[0]);
  if (!first || bits > (first->v6 ? 128 : 32)) return std::nullopt;
  const int host_bits = (first->v6 ? 128 : 32) - bits;
  const absl::uint128 mask =
      host_bits == 128 ? absl::Uint128Max() : (absl::uint128(1) << host_bits) - 1;
  if ((first->value & mask) != 0) return std::nullopt;
  return Range{*first, {first->v6, first->value | mask}};
}

std::optional<Range> ParseRange(absl::string_view text) {
  if (text.find('/') != absl::string_view::npos) return ParseCidr(text);
  const std::vector<absl::string_view> parts = absl::StrSplit(text, '-');
  if (parts.size() > 2) return std::nullopt;
  const std::optional<Address> first = ParseAddress(parts.front());
  const std::optional<Address> last = ParseAddress(parts.back());
  if (!first || !last || first->v6 != last->v6 || *last < *first) return std::nullopt;
  return Range{*first, *last};
}

void AddressSet::Add(const Range& range) {
  Address first = range.first;
  Address last = range.last;
  auto it = runs_.upper_bound(first);
  if (it != runs_.begin()) {
    const auto before = std::prev(it);
    const Address& end = before->second;
    const bool touches = end.v6 == first.v6 && (first.value == 0 || end.value >= first.value - 1);
    if (touches) it = before;
  }
  while (it != runs_.end() && it->first.v6 == first.v6 &&
         (last.value == Largest(last.v6) || it->first.value <= last.value + 1)) {
    first = std::min(first, it->first);
    last = std::max(last, it->second);
    it = runs_.erase(it);
  }
  runs_[first] = last;
}

void AddressSet::Remove(const Range& range) {
  auto it = runs_.upper_bound(range.first);
  if (it != runs_.begin()) --it;
  while (it != runs_.end() && !(range.last < it->first)) {
    const Address first = it->first;
    const Address last = it->second;
    if (last < range.first || last.v6 != range.first.v6) {
      ++it;
      continue;
    }
    it = runs_.erase(it);
    if (first < range.first) runs_[first] = {first.v6, range.first.value - 1};
    if (range.last < last) it = runs_.emplace(Address{last.v6, range.last.value + 1}, last).first;
  }
}

bool AddressSet::Contains(const Address& address) const {
  auto it = runs_.upper_bound(address);
  return it != runs_.begin() &&
         Range{std::prev(it)->first, std::prev(it)->second}.Contains(address);
}

std::optional<Address> AddressSet::LowestIn(const Range& range) const {
  if (Contains(range.first)) return range.first;
  const auto next = runs_.upper_bound(range.first);
  if (next == runs_.end() || !range.Contains(next->first)) return std::nullopt;
  return next->first;
}

AddressSet AddressSet::Intersection(const Range& range) const {
  AddressSet both;
  for (const auto& [first, last] : runs_) {
    if (first.v6 != range.first.v6 || last < range.first || range.last < first) continue;
    both.Add(Range{std::max(first, range.first), std::min(last, range.last)});
  }
  return both;
}

}  // namespace outboard::static_ip
