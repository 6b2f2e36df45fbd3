// IP addresses, ranges and sets of them.
#ifndef OUTBOARD_PLUGINS_STATIC_IP_ADDRESS_H_
#define OUTBOARD_PLUGINS_STATIC_IP_ADDRESS_H_

#include <map>
#include <optional>
#include <string>

#include "absl/numeric/int128.h"
#include "absl/strings/string_view.h"

namespace outboard::static_ip {

// An IPv4 value has 32 bits. IPv4 sorts before IPv6.
struct Address {
  bool v6 = false;
  absl::uint128 value = 0;
  friend bool operator==(const Address&, const Address&) = default;
  friend bool operator<(const Address& a, const Address& b) {
    return a.v6 != b.v6 ? b.v6 : a.value < b.value;
  }
};

// Kubernetes' format: `10.0.0.5`, `fd00::5`; without leading zeros and zone.
std::optional<Address> ParseAddress(absl::string_view text);
std::string ToText(const Address& address);
// The unique object name for the address: `10-0-0-5`; for IPv6 all eight groups of four digits,
// `fd00-0000-0000-0000-0000-0000-0000-0005`.
std::string NameOf(const Address& address);
std::optional<Address> AddressOfName(absl::string_view name);

// Includes both ends.
struct Range {
  Address first, last;
  bool Contains(const Address& address) const {
    return address.v6 == first.v6 && !(address < first) && !(last < address);
  }
};
// `10.0.0.0/24`; the host bits must be zero.
std::optional<Range> ParseCidr(absl::string_view text);
// A CIDR, an address, or `10.0.0.10-10.0.0.20`.
std::optional<Range> ParseRange(absl::string_view text);

// A set stored as runs; costs depend on the runs, not on the size.
//
// Threading: thread-compatible.
// Lifetime:  a value.
// Errors:    none.
class AddressSet {
 public:
  void Add(const Range& range);
  void Remove(const Range& range);
  void Add(const Address& address) { Add(Range{address, address}); }
  void Remove(const Address& address) { Remove(Range{address, address}); }
  bool Contains(const Address& address) const;
  bool empty() const { return runs_.empty(); }
  const Address& lowest() const { return runs_.begin()->first; }  // requires !empty()
  // Costs the logarithm of the runs.
  std::optional<Address> LowestIn(const Range& range) const;
  size_t runs() const { return runs_.size(); }
  AddressSet Intersection(const Range& range) const;

 private:
  std::map<Address, Address> runs_;  // last by first; disjoint, not adjacent
};

}  // namespace outboard::static_ip

#endif  // OUTBOARD_PLUGINS_STATIC_IP_ADDRESS_H_
