// The seam where the scheduling thread sleeps.
#ifndef OUTBOARD_SHIM_CYCLE_WAITER_H_
#define OUTBOARD_SHIM_CYCLE_WAITER_H_

#include "absl/time/time.h"

namespace outboard::cycle {

// Lets the scheduling thread sleep until something happens.
//
// Threading: Wait on the scheduling thread only; Wake from any thread. A Wake that comes before the
// Wait ends it at once, so that "post, then wake" never loses a wake-up.
class Waiter {
 public:
  virtual ~Waiter() = default;
  // Returns on Wake, on activity of a host, or at `deadline`; sometimes for no reason.
  virtual void Wait(absl::Time deadline) = 0;
  virtual void Wake() = 0;
};

}  // namespace outboard::cycle

#endif  // OUTBOARD_SHIM_CYCLE_WAITER_H_
