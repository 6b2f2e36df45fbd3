// A condition variable whose timed waits do not depend on the wall clock.
#ifndef OUTBOARD_SHIM_STEADY_CONDITION_H_
#define OUTBOARD_SHIM_STEADY_CONDITION_H_

#include <algorithm>
#include <chrono>
#include <condition_variable>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace outboard {

// absl's timed waits sleep until a wall time: a wall clock that is set back by an hour lengthens a
// wait of a second by an hour. These sleep on CLOCK_MONOTONIC.
//
// Threading: thread-safe; Notify after each change of what waiters wait for, with or without the
// mutex.
// Errors: none.
class SteadyCondition {
 public:
  void Notify() { condition_.notify_all(); }

  // Releases `mutex` and waits until `reached()`, called with it held, or for `timeout`. Returns
  // reached().
  template <typename Predicate>
  bool AwaitFor(absl::Mutex& mutex, absl::Duration timeout, const Predicate& reached)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    Lockable lockable{mutex};
    if (timeout == absl::InfiniteDuration()) {
      condition_.wait(lockable, reached);
      return true;
    }
    // Bounded, because adding more to a time point would overflow.
    const auto bounded = std::clamp(timeout, absl::ZeroDuration(), absl::Hours(24 * 365));
    return condition_.wait_for(lockable, absl::ToChronoNanoseconds(bounded), reached);
  }

 private:
  struct Lockable {
    absl::Mutex& mutex;
    void lock() ABSL_NO_THREAD_SAFETY_ANALYSIS { mutex.Lock(); }
    void unlock() ABSL_NO_THREAD_SAFETY_ANALYSIS { mutex.Unlock(); }
  };

  std::condition_variable_any condition_;
};

}  // namespace outboard

#endif  // OUTBOARD_SHIM_STEADY_CONDITION_H_
