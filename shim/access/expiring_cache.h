// A bounded cache whose entries expire.
#ifndef OUTBOARD_SHIM_ACCESS_EXPIRING_CACHE_H_
#define OUTBOARD_SHIM_ACCESS_EXPIRING_CACHE_H_

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace outboard::access {

// If the cache is full, the oldest entry is evicted.
//
// Threading: thread-safe.
// Errors: none.
template <typename Value>
class ExpiringCache {
 public:
  explicit ExpiringCache(size_t max_entries) : max_entries_(max_entries) {}

  std::optional<Value> Find(const std::string& key, absl::Time now) {
    absl::MutexLock lock(&mutex_);
    const auto found = entries_.find(key);
    if (found == entries_.end() || now >= found->second.expires) return std::nullopt;
    return found->second.value;
  }

  void Put(const std::string& key, Value value, absl::Time expires) {
    absl::MutexLock lock(&mutex_);
    const auto [entry, is_new] = entries_.insert_or_assign(key, Entry{std::move(value), expires});
    if (!is_new) return;
    order_.push_back(key);
    if (order_.size() <= max_entries_) return;
    entries_.erase(order_.front());
    order_.pop_front();
  }

  size_t size() {
    absl::MutexLock lock(&mutex_);
    return entries_.size();
  }

 private:
  struct Entry {
    Value value;
    absl::Time expires;
  };
  const size_t max_entries_;
  absl::Mutex mutex_;
  absl::flat_hash_map<std::string, Entry> entries_ ABSL_GUARDED_BY(mutex_);
  std::deque<std::string> order_ ABSL_GUARDED_BY(mutex_);  // keys by arrival; each once
};

}  // namespace outboard::access

#endif  // OUTBOARD_SHIM_ACCESS_EXPIRING_CACHE_H_
