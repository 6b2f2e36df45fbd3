// The seam where the scheduling thread sleeps.
#ifndef OUTBOARD_SHIM_FRAMEWORK_WAITER_H_
#define OUTBOARD_SHIM_FRAMEWORK_WAITER_H_

#include "absl/time/time.h"

namespace outboard::framework {

// Lets the scheduling thread sleep until something happens.
//
// Threading: Wait on the scheduling thread only; Wake from any thread. A Wake before the Wait ends
// it at once, so that "post, then wake" never loses a wake-up.
class Waiter {
 public:
  virtual ~Waiter() = default;
  // Returns on Wake, on activity of a host, or at `deadline`; sometimes spuriously.
  virtual void Wait(absl::Time deadline) = 0;
  virtual void Wake() = 0;
};

}  // namespace outboard::framework

#endif  // OUTBOARD_SHIM_FRAMEWORK_WAITER_H_
