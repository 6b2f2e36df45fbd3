// An index of pools, reservations and pods: which IPs exist, who owns them, which pods exist.
#ifndef OUTBOARD_PLUGINS_STATIC_IP_ADDRESS_BOOK_H_
#define OUTBOARD_PLUGINS_STATIC_IP_ADDRESS_BOOK_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "plugin_host/sdk/label_values.h"
#include "plugin_host/sdk/views.h"
#include "plugins/static_ip/address.h"
#include "plugins/static_ip/static_ip_objects.h"

namespace outboard::static_ip {

struct Pool {
  std::string name;
  PoolSpec spec;
  AddressSet free;              // allowed minus taken
  std::vector<uint8_t> serves;  // by slot
};

// An IP is taken while an object has its name, whatever the object contains, and while an assumed
// pod will get it.
//
// Threading: thread-compatible; called on the cluster cache's thread.
// Lifetime:  results are valid until the next change.
// Errors:    none; an invalid value counts as absent, or as taken.
class AddressBook {
 public:
  explicit AddressBook(sdk::ClusterView cluster) : cluster_(cluster) {}

  void Clear();
  void SetNode(sdk::Slot slot);
  void SetPool(const v1beta1::GenericObject& object);
  void RemovePool(const std::string& name);
  void SetReservation(const v1beta1::GenericObject& object);
  void RemoveReservation(const std::string& name);
  void SetPod(const sdk::PodRecord& pod);
  void RemovePod(const sdk::PodRecord& pod);

  // By name.
  const std::map<std::string, Pool>& pools() const { return pools_; }
  const std::map<std::string, Reservation>& reservations() const { return reservations_; }
  const Reservation* Find(const std::string& name) const;
  // The reservation that applies to the pod of this name; null: none.
  const Reservation* ReservedFor(absl::string_view ns, absl::string_view pod) const;
  // Null if the pool does not exist any more.
  const Pool* PoolOf(const Reservation& reservation) const;
  // The pod that uses the IP or will use it; null: none.
  const sdk::PodRecord* UserOf(const Reservation& reservation) const;
  // Why the reservation does not apply to the pod that it names; empty: it applies.
  std::string FaultOf(const Reservation& reservation) const;
  // A pod of this name exists, with any uid.
  bool IsLive(const Owner& owner) const { return live_.contains(KeyOf(owner)); }
  // A pod of the StatefulSet with a higher ordinal exists.
  bool HasHigherOrdinal(const Owner& owner) const;

 private:
  struct KnownPod {
    std::string key;  // namespace/name; empty: the name is not tracked
    std::string set;  // namespace/name of its StatefulSet
    int64_t ordinal = -1;
    std::vector<Address> assumed;  // taken by its effects
  };
  static std::string KeyOf(const Owner& owner) { return sdk::NamespacedKey(owner.ns, owner.pod); }
  std::string PoolFault(const Reservation& reservation) const;
  // Whether `a` takes precedence over `b`, for two reservations of one pod.
  bool Before(const Reservation& a, const Reservation& b) const;
  bool IsUsable(const Reservation& reservation) const {
    return !reservation.deleting && reservation.fault.empty() && PoolFault(reservation).empty();
  }
  void Take(const Address& address);
  void Release(const Address& address);
  void Unlink(const Reservation& reservation);
  void Forget(const std::string& pod_uid);

  const sdk::ClusterView cluster_;
  std::map<std::string, Pool> pools_;
  std::map<std::string, Reservation> reservations_;
  absl::flat_hash_map<std::string, std::set<std::string>> by_owner_;    // names by namespace/name
  absl::flat_hash_map<std::string, std::set<std::string>> by_pod_uid_;  // names
  std::map<Address, int> taken_;
  absl::flat_hash_map<std::string, KnownPod> pods_;                    // by uid
  absl::flat_hash_map<std::string, int> live_;                         // pods by namespace/name
  absl::flat_hash_map<std::string, std::map<int64_t, int>> ordinals_;  // by set
  sdk::MalformedValues malformed_{"StaticIP"};
};

// The number after the last dash; nullopt without one.
std::optional<int64_t> OrdinalOf(absl::string_view pod_name);

}  // namespace outboard::static_ip

#endif  // OUTBOARD_PLUGINS_STATIC_IP_ADDRESS_BOOK_H_
