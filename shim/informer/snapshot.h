// A complete state of a resource while it arrives.
#ifndef OUTBOARD_SHIM_INFORMER_SNAPSHOT_H_
#define OUTBOARD_SHIM_INFORMER_SNAPSHOT_H_

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "shim/kube/wire/decode.h"

namespace outboard::informer {

// Collects the items of a list, or the initial events of a watch. While these arrive, objects may
// change, be deleted, or become undecodable.
//
// Threading: thread-compatible.
template <typename T>
class Snapshot {
 public:
  using Ptr = std::shared_ptr<const T>;

  void Clear() {
    objects_.clear();
    deleted_.clear();
    rejected_.clear();
  }
  void Add(Ptr object) {
    if (!rejected_.empty()) rejected_.erase(object->uid());
    objects_.push_back(std::move(object));
  }
  void Delete(const std::string& uid) {
    // UIDs are never reused, so a deleted object stays deleted.
    deleted_.insert(uid);
    rejected_.erase(uid);
  }
  void Reject(kube::RejectedObject rejected) {
    // Without a UID, the reason distinguishes objects.
    const std::string& uid = rejected.identity.uid;
    std::string key = uid.empty() ? rejected.why : uid;
    rejected_.insert_or_assign(std::move(key), std::move(rejected));
  }

  // The objects that exist, in their order; several of one UID are its versions. One pass, however
  // many were deleted.
  std::vector<Ptr> TakeObjects() {
    std::vector<Ptr> objects = std::exchange(objects_, {});
    if (!deleted_.empty()) {
      objects.erase(
          std::remove_if(objects.begin(), objects.end(),
                         [this](const Ptr& object) { return deleted_.contains(object->uid()); }),
          objects.end());
    }
    deleted_.clear();
    return objects;
  }
  // The objects whose last version could not be decoded.
  std::vector<kube::RejectedObject> TakeRejected() {
    std::vector<kube::RejectedObject> all;
    for (auto& [key, rejected] : rejected_) all.push_back(std::move(rejected));
    rejected_.clear();
    return all;
  }

 private:
  std::vector<Ptr> objects_;
  absl::flat_hash_set<std::string> deleted_;
  absl::flat_hash_map<std::string, kube::RejectedObject> rejected_;
};

}  // namespace outboard::informer

#endif  // OUTBOARD_SHIM_INFORMER_SNAPSHOT_H_
