// When the heap gives memory that is free back to the kernel.
#ifndef OUTBOARD_SHIM_HEAP_TRIM_H_
#define OUTBOARD_SHIM_HEAP_TRIM_H_

#include "absl/time/time.h"

namespace outboard::shim {

// A list of all pods, a burst of pods or a host that floods leaves free memory between objects that
// stay. glibc keeps it, so a shim would be for ever as large as in its worst second. Giving it back
// takes some milliseconds of the scheduling thread, therefore a moment is chosen in which no pod
// waits.
//
// Threading: thread-compatible.
class HeapTrim {
 public:
  static constexpr absl::Duration kPeriod = absl::Minutes(1);
  // Even if pods wait all the time.
  static constexpr absl::Duration kAtLatest = absl::Minutes(2);

  explicit HeapTrim(absl::Time now) : last_(now) {}

  // Whether to do it now. Call it about once a second.
  bool IsDue(bool is_idle, absl::Time now) {
    if (now - last_ < (is_idle ? kPeriod : kAtLatest)) return false;
    last_ = now;
    return true;
  }

 private:
  absl::Time last_;
};

}  // namespace outboard::shim

#endif  // OUTBOARD_SHIM_HEAP_TRIM_H_
