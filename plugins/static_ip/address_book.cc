#include "plugins/static_ip/address_book.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "plugin_host/sdk/custom_objects.h"
#include "plugin_host/sdk/validation.h"

namespace outboard::static_ip {
namespace {

bool IsSelected(const std::map<std::string, std::string>& selector, const sdk::NodeView& node) {
  return std::all_of(selector.begin(), selector.end(), [&](const auto& wanted) {
    return node.Label(wanted.first) == absl::string_view(wanted.second);
  });
}

// The addresses of the reservations that the effects create.
std::vector<Address> AddressesIn(const std::vector<v1beta1::Effect>& effects) {
  std::vector<Address> addresses;
  for (const v1beta1::Effect& effect : effects) {
    if (!effect.has_put_object() || effect.put_object().resource() != kReservations) continue;
    if (const auto address = AddressOfName(effect.put_object().name()))
      addresses.push_back(*address);
  }
  return addresses;
}

}  // namespace

std::optional<int64_t> OrdinalOf(absl::string_view pod_name) {
  const size_t dash = pod_name.rfind('-');
  if (dash == absl::string_view::npos) return std::nullopt;
  return sdk::ParseCount(pod_name.substr(dash + 1), int64_t{1} << 31);
}

void AddressBook::Clear() {
  pools_.clear();
  reservations_.clear();
  by_owner_.clear();
  by_pod_uid_.clear();
  taken_.clear();
  pods_.clear();
  live_.clear();
  ordinals_.clear();
  malformed_.Clear();
}

void AddressBook::SetNode(sdk::Slot slot) {
  for (auto& [name, pool] : pools_) {
    if (slot >= pool.serves.size()) pool.serves.resize(slot + 1, 0);
    pool.serves[slot] = IsSelected(pool.spec.node_selector, cluster_.node(slot)) ? 1 : 0;
  }
}

void AddressBook::SetPool(const v1beta1::GenericObject& object) {
  Pool& pool = pools_[object.name()];
  pool.name = object.name();
  pool.spec = ReadPool(object);
  const std::string about = absl::StrCat("StaticIPPool ", object.name());
  malformed_.Forget(about);
  if (!pool.spec.fault.empty()) malformed_.Warn(about, "spec", pool.spec.fault, "a pool");
  pool.free = pool.spec.allowed;
  for (const auto& [address, count] : taken_) pool.free.Remove(address);
  const sdk::NodeTable& nodes = cluster_.nodes();
  pool.serves.assign(nodes.occupied.size(), 0);
  for (const sdk::Slot slot : cluster_.node_order())
    pool.serves[slot] = IsSelected(pool.spec.node_selector, cluster_.node(slot)) ? 1 : 0;
}

void AddressBook::RemovePool(const std::string& name) {
  malformed_.Forget(absl::StrCat("StaticIPPool ", name));
  pools_.erase(name);
}

void AddressBook::Take(const Address& address) {
  if (++taken_[address] > 1) return;
  for (auto& [name, pool] : pools_) pool.free.Remove(address);
}

void AddressBook::Release(const Address& address) {
  const auto it = taken_.find(address);
  if (it == taken_.end() || --it->second > 0) return;
  taken_.erase(it);
  for (auto& [name, pool] : pools_) {
    if (pool.spec.allowed.Contains(address)) pool.free.Add(address);
  }
}

void AddressBook::SetReservation(const v1beta1::GenericObject& object) {
  RemoveReservation(object.name());
  Reservation& reservation = reservations_[object.name()];
  reservation = ReadReservation(object);
  if (reservation.address) Take(*reservation.address);
  if (!reservation.owner.pod.empty()) by_owner_[KeyOf(reservation.owner)].insert(reservation.name);
  for (const std::string& uid : {reservation.owner.pod_uid, reservation.user_uid}) {
    if (!uid.empty()) by_pod_uid_[uid].insert(reservation.name);
  }
}

void AddressBook::RemoveReservation(const std::string& name) {
  const auto it = reservations_.find(name);
  if (it == reservations_.end()) return;
  if (it->second.address) Release(*it->second.address);
  Unlink(it->second);
  reservations_.erase(it);
}

void AddressBook::Unlink(const Reservation& reservation) {
  const auto unlink = [&](auto* index, const std::string& key) {
    const auto it = index->find(key);
    if (it == index->end()) return;
    it->second.erase(reservation.name);
    if (it->second.empty()) index->erase(it);
  };
  unlink(&by_owner_, KeyOf(reservation.owner));
  unlink(&by_pod_uid_, reservation.owner.pod_uid);
  unlink(&by_pod_uid_, reservation.user_uid);
}

void AddressBook::SetPod(const sdk::PodRecord& pod) {
  KnownPod known;
  const bool of_set = pod.pod.has_controller() && pod.pod.controller().kind() == "StatefulSet";
  if (of_set || IpRequestOf(pod.pod, &malformed_).wants_ip)
    known.key = sdk::NamespacedKey(pod.pod.namespace_(), pod.pod.name());
  if (of_set) {
    known.set = sdk::NamespacedKey(pod.pod.namespace_(), pod.pod.controller().name());
    known.ordinal = OrdinalOf(pod.pod.name()).value_or(-1);
  }
  if (!pod.effects.empty()) known.assumed = AddressesIn(pod.effects);
  // Take the new addresses first, so that no address is free in between.
  for (const Address& address : known.assumed) Take(address);
  Forget(pod.pod.uid());
  if (known.key.empty() && known.assumed.empty()) return;
  if (!known.key.empty()) ++live_[known.key];
  if (!known.set.empty()) ++ordinals_[known.set][known.ordinal];
  pods_[pod.pod.uid()] = std::move(known);
}

void AddressBook::RemovePod(const sdk::PodRecord& pod) {
  Forget(pod.pod.uid());
  malformed_.Forget(absl::StrCat("pod ", pod.pod.namespace_(), "/", pod.pod.name()));
}

void AddressBook::Forget(const std::string& pod_uid) {
  const auto it = pods_.find(pod_uid);
  if (it == pods_.end()) return;
  const KnownPod known = std::move(it->second);
  pods_.erase(it);
  for (const Address& address : known.assumed) Release(address);
  if (!known.key.empty() && --live_[known.key] == 0) live_.erase(known.key);
  if (known.set.empty()) return;
  std::map<int64_t, int>& ordinals = ordinals_[known.set];
  if (--ordinals[known.ordinal] == 0) ordinals.erase(known.ordinal);
  if (ordinals.empty()) ordinals_.erase(known.set);
}

const Reservation* AddressBook::Find(const std::string& name) const {
  const auto it = reservations_.find(name);
  return it == reservations_.end() ? nullptr : &it->second;
}

const Reservation* AddressBook::ReservedFor(absl::string_view ns, absl::string_view pod) const {
  const auto names = by_owner_.find(sdk::NamespacedKey(ns, pod));
  if (names == by_owner_.end()) return nullptr;
  const Reservation* best = nullptr;
  for (const std::string& name : names->second) {
    const Reservation& reservation = reservations_.at(name);
    if (IsUsable(reservation) && (best == nullptr || Before(reservation, *best)))
      best = &reservation;
  }
  return best;
}

const Pool* AddressBook::PoolOf(const Reservation& reservation) const {
  if (!reservation.pool.empty()) {
    const auto it = pools_.find(reservation.pool);
    return it == pools_.end() ? nullptr : &it->second;
  }
  for (const auto& [name, pool] : pools_) {
    if (pool.spec.fault.empty() && pool.spec.cidr.Contains(*reservation.address)) return &pool;
  }
  return nullptr;
}

const sdk::PodRecord* AddressBook::UserOf(const Reservation& reservation) const {
  if (!reservation.user_uid.empty()) {
    if (const sdk::PodRecord* user = cluster_.FindPod(reservation.user_uid)) return user;
  }
  const std::string& uid = reservation.owner.pod_uid;
  const sdk::PodRecord* pod = uid.empty() ? nullptr : cluster_.FindPod(uid);
  if (pod == nullptr) return nullptr;
  // If several name the pod (a late write of a killed process), only one of them counts.
  for (const std::string& name : by_pod_uid_.at(uid)) {
    if (name == reservation.name) continue;
    const Reservation& other = reservations_.at(name);
    if (other.user_uid == uid || Before(other, reservation)) return nullptr;
  }
  return pod;
}

bool AddressBook::Before(const Reservation& a, const Reservation& b) const {
  const auto rank = [](const Reservation& r) {
    return std::make_tuple(r.deleting, r.user_uid.empty(), !r.was_accepted,
                           absl::string_view(r.created));
  };
  if (rank(a) != rank(b)) return rank(a) < rank(b);
  return a.address < b.address;
}

std::string AddressBook::PoolFault(const Reservation& reservation) const {
  // An accepted reservation stays valid if its pool shrinks or is deleted.
  if (reservation.was_accepted) return "";
  const std::string ip = ToText(*reservation.address);
  const Pool* pool = PoolOf(reservation);
  if (reservation.pool.empty())
    return pool == nullptr ? absl::StrCat(ip, " is in no StaticIPPool") : "";
  if (pool == nullptr)
    return absl::StrCat("StaticIPPool ", sdk::Quote(reservation.pool), " does not exist");
  if (!pool->spec.fault.empty())
    return absl::StrCat("StaticIPPool ", sdk::Quote(pool->name), " is invalid: ", pool->spec.fault);
  if (!pool->spec.cidr.Contains(*reservation.address))
    return absl::StrCat(ip, " is outside of StaticIPPool ", sdk::Quote(pool->name));
  return "";
}

std::string AddressBook::FaultOf(const Reservation& reservation) const {
  if (!reservation.fault.empty()) return reservation.fault;
  if (reservation.owner.pod.empty()) return "";
  if (std::string fault = PoolFault(reservation); !fault.empty()) return fault;
  if (reservation.deleting) return "";
  if (const Reservation* counts = ReservedFor(reservation.owner.ns, reservation.owner.pod);
      counts != nullptr && counts->name != reservation.name) {
    return absl::StrCat("pod ", KeyOf(reservation.owner), " already has ",
                        ToText(*counts->address));
  }
  if (const sdk::PodRecord* user = UserOf(reservation)) {
    const std::string name = sdk::NamespacedKey(user->pod.namespace_(), user->pod.name());
    if (name != KeyOf(reservation.owner))
      return absl::StrCat("pod ", name,
                          " uses the IP; the IP stays with that pod until the pod is gone");
  }
  return "";
}

bool AddressBook::HasHigherOrdinal(const Owner& owner) const {
  const auto set = ordinals_.find(sdk::NamespacedKey(owner.ns, owner.stateful_set));
  const std::optional<int64_t> ordinal = OrdinalOf(owner.pod);
  return set != ordinals_.end() && ordinal && set->second.rbegin()->first > *ordinal;
}

}  // namespace outboard::static_ip
