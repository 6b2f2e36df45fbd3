// Limits of evictions, against hosts that preempt without measure.
#ifndef OUTBOARD_SHIM_FRAMEWORK_EVICTION_LIMITS_H_
#define OUTBOARD_SHIM_FRAMEWORK_EVICTION_LIMITS_H_

#include <cstddef>
#include <deque>
#include <utility>

#include "absl/time/time.h"

namespace outboard::framework {

// The evictions of the last minute.
//
// Threading: thread-compatible. Lifetime: a value.
class RecentEvictions {
 public:
  void Add(size_t count, absl::Time now) {
    Forget(now);
    if (count == 0) return;
    recent_.emplace_back(now, count);
    sum_ += count;
  }
  size_t Count(absl::Time now) {
    Forget(now);
    return sum_;
  }

 private:
  void Forget(absl::Time now) {
    while (!recent_.empty() && recent_.front().first <= now - absl::Minutes(1)) {
      sum_ -= recent_.front().second;
      recent_.pop_front();
    }
  }

  std::deque<std::pair<absl::Time, size_t>> recent_;
  size_t sum_ = 0;
};

}  // namespace outboard::framework

#endif  // OUTBOARD_SHIM_FRAMEWORK_EVICTION_LIMITS_H_
