// The objects of one resource by UID, and what changed when something new is known of them.
#ifndef OUTBOARD_SHIM_INFORMER_STORE_H_
#define OUTBOARD_SHIM_INFORMER_STORE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "shim/informer/informer_handler.h"
#include "shim/informer/resource_version.h"

namespace outboard::informer {

// Tells a handler the story that InformerHandler promises; the store is changed before the handler
// hears of it.
//
// Threading: thread-compatible. Lifetime: the handler outlives it. Errors: none; events that
// contradict what is known are ignored and counted.
template <typename T>
class Store {
 public:
  using Ptr = std::shared_ptr<const T>;

  explicit Store(InformerHandler<T>* handler) : handler_(handler) {}

  // ADDED or MODIFIED: the object is as given. False if that is older news than what is known.
  bool Put(const Ptr& object) {
    auto it = by_uid_.find(object->uid());
    if (it != by_uid_.end()) {
      const auto order = CompareVersions(object->resource_version, it->second->resource_version);
      if (order.has_value() && *order <= 0) return false;
      Ptr old = std::exchange(it->second, object);
      handler_->OnUpdate(old, object);
      return true;
    }
    // The same name with another UID: the old object is gone, though nobody said so.
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

  // DELETED. False if it is not known, or older news.
  bool Delete(const Ptr& object) {
    auto it = by_uid_.find(object->uid());
    if (it == by_uid_.end()) return false;
    if (IsOlderVersion(object->resource_version, it->second->resource_version)) return false;
    Erase(object->uid(), object);
    return true;
  }

  // The whole state, which is true whatever was known: deletes first, then the rest in its order.
  void Replace(std::vector<Ptr> objects) {
    absl::flat_hash_map<std::string, Ptr> fresh;
    fresh.reserve(objects.size());
    for (const Ptr& object : objects) fresh[object->uid()] = object;
    std::vector<std::string> gone;
    for (const auto& [uid, object] : by_uid_) {
      if (!fresh.contains(uid)) gone.push_back(uid);
    }
    for (const std::string& uid : gone) Erase(uid, nullptr);
    for (const Ptr& object : objects) {
      // The last of several entries with one UID counts.
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

 private:
  // `last` is the last state where a DELETED event gave one.
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
