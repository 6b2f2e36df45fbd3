// The objects of one resource by UID; computes the changes for the handler.
#ifndef OUTBOARD_SHIM_INFORMER_STORE_H_
#define OUTBOARD_SHIM_INFORMER_STORE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "shim/informer/informer_handler.h"
#include "shim/informer/resource_version.h"

namespace outboard::informer {

// Keeps the guarantees of InformerHandler. The store is updated before the handler is called.
//
// Threading: thread-compatible.
// Lifetime: the handler outlives this object.
// Errors: none; events that contradict the known state are ignored and counted.
template <typename T>
class Store {
 public:
  using Ptr = std::shared_ptr<const T>;

  explicit Store(InformerHandler<T>* handler) : handler_(handler) {}

  // ADDED or MODIFIED. Returns false if the store has a newer version.
  bool Put(const Ptr& object) {
    auto it = by_uid_.find(object->uid());
    if (it != by_uid_.end()) {
      const auto order = CompareVersions(object->resource_version, it->second->resource_version);
      if (order.has_value() && *order <= 0) return false;
      Ptr old = std::exchange(it->second, object);
      handler_->OnUpdate(old, object);
      return true;
    }
    // The same name with another UID: the old object was deleted without an event.
    auto name = by_key_.find(object->key());
    if (name != by_key_.end()) {
      const std::string old_uid = name->second;
      Erase(old_uid, nullptr);
    }
    by_key_[object->key()] = object->uid();
    by_uid_[object->uid()] = object;
    handler_->OnAdd(object);
    return true;
  }

  // DELETED. Returns false if the object is unknown or the store has a newer version.
  bool Delete(const Ptr& object) {
    auto it = by_uid_.find(object->uid());
    if (it == by_uid_.end()) return false;
    if (IsOlderVersion(object->resource_version, it->second->resource_version)) return false;
    Erase(object->uid(), object);
    return true;
  }

  // A DELETED event whose object could not be decoded. Returns false if the object is unknown or
  // the store has a newer version.
  bool DeleteUndecoded(const std::string& uid, const std::string& resource_version) {
    auto it = by_uid_.find(uid);
    if (it == by_uid_.end()) return false;
    if (IsOlderVersion(resource_version, it->second->resource_version)) return false;
    Erase(std::string(uid), nullptr);
    return true;
  }

  // Sets the whole state, whatever was known: deletes first, then the rest in its order. The
  // objects `undecoded` (UIDs) exist, but could not be decoded: they stay as they are known.
  void Replace(std::vector<Ptr> objects, const absl::flat_hash_set<std::string>& undecoded = {}) {
    absl::flat_hash_map<std::string, Ptr> fresh;
    fresh.reserve(objects.size());
    for (const Ptr& object : objects) fresh[object->uid()] = object;
    std::vector<std::string> gone;
    for (const auto& [uid, object] : by_uid_) {
      if (!fresh.contains(uid) && !undecoded.contains(uid)) gone.push_back(uid);
    }
    for (const std::string& uid : gone) Erase(uid, nullptr);
    for (const Ptr& object : objects) {
      // If a UID occurs several times, the last entry counts.
      if (fresh.find(object->uid())->second != object) continue;
      auto it = by_uid_.find(object->uid());
      if (it == by_uid_.end()) {
        Put(object);
      } else if (it->second->resource_version != object->resource_version) {
        Ptr old = std::exchange(it->second, object);
        handler_->OnUpdate(old, object);
      }
    }
  }

  size_t size() const { return by_uid_.size(); }
  Ptr Find(const std::string& uid) const {
    auto it = by_uid_.find(uid);
    return it == by_uid_.end() ? nullptr : it->second;
  }

  // The object here, in place of another one of the same version: a second complete state then
  // needs no second copy of the cluster, whose memory the allocator would keep.
  Ptr Known(Ptr object) const {
    const Ptr known = Find(object->uid());
    const bool is_same = known != nullptr && known->resource_version == object->resource_version;
    return is_same ? known : object;
  }

 private:
  // `last` is the last state from a DELETED event, if any.
  void Erase(const std::string& uid, Ptr last) {
    auto it = by_uid_.find(uid);
    if (last == nullptr) last = it->second;
    auto name = by_key_.find(it->second->key());
    if (name != by_key_.end() && name->second == uid) by_key_.erase(name);
    by_uid_.erase(it);
    handler_->OnDelete(last);
  }

  InformerHandler<T>* const handler_;
  absl::flat_hash_map<std::string, Ptr> by_uid_;
  absl::flat_hash_map<std::string, std::string> by_key_;
};

}  // namespace outboard::informer

#endif  // OUTBOARD_SHIM_INFORMER_STORE_H_
