// The objects of one resource that exist but cannot be decoded: an alarm.
#ifndef OUTBOARD_SHIM_INFORMER_UNDECODED_OBJECTS_H_
#define OUTBOARD_SHIM_INFORMER_UNDECODED_OBJECTS_H_

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "shim/kube/wire/decode.h"

namespace outboard::informer {

// What the log says of such an object. `kept`: the version that is kept; empty: none, so nothing
// schedules the object or counts it. Pure.
inline std::string UndecodedText(const kube::RejectedObject& rejected, absl::string_view kept) {
  const kube::ObjectIdentity& identity = rejected.identity;
  return absl::StrCat(
      "cannot decode ", identity.name.empty() ? "an object" : identity.key(), " at version ",
      identity.resource_version.empty() ? "?" : identity.resource_version, ": ", rejected.why, "; ",
      kept.empty() ? "it is missing until it changes" : absl::StrCat("keeping version ", kept));
}

// Threading: any thread.
class UndecodedObjects {
 public:
  void Add(const kube::RejectedObject& rejected) {
    absl::MutexLock lock(&mutex_);
    // More than that are a format that this build does not know, not single objects.
    if (texts_.size() >= kMaxObjects) return;
    const kube::ObjectIdentity& identity = rejected.identity;
    const std::string& key = identity.uid.empty() ? rejected.why : identity.uid;
    texts_[key] = identity.name.empty() ? "one without a readable name" : identity.key();
  }
  void Remove(const std::string& uid) {
    absl::MutexLock lock(&mutex_);
    if (!texts_.empty()) texts_.erase(uid);
  }
  void Clear() {
    absl::MutexLock lock(&mutex_);
    texts_.clear();
  }

  size_t size() const {
    absl::MutexLock lock(&mutex_);
    return texts_.size();
  }
  // "ns/a, ns/b and 7 more"; "" if there are none.
  std::string Names() const {
    absl::MutexLock lock(&mutex_);
    std::vector<std::string> names;
    for (const auto& [key, name] : texts_) {
      if (names.size() == kMaxNames) break;
      names.push_back(name);
    }
    const size_t more = texts_.size() - names.size();
    return absl::StrCat(absl::StrJoin(names, ", "),
                        more == 0 ? "" : absl::StrCat(" and ", more, " more"));
  }

 private:
  static constexpr size_t kMaxObjects = 10000;
  static constexpr size_t kMaxNames = 3;

  mutable absl::Mutex mutex_;
  std::map<std::string, std::string> texts_ ABSL_GUARDED_BY(mutex_);  // UID → name
};

}  // namespace outboard::informer

#endif  // OUTBOARD_SHIM_INFORMER_UNDECODED_OBJECTS_H_
