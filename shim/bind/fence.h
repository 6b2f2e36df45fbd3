// Until when this process may write: the fence of the leader's lease.
#ifndef OUTBOARD_SHIM_BIND_FENCE_H_
#define OUTBOARD_SHIM_BIND_FENCE_H_

#include <functional>

#include "absl/time/time.h"
#include "shim/clock.h"

namespace outboard::bind {

// Threading: thread-safe if its functions are; they are also called on the API client's thread.
// Errors: none.
struct Fence {
  // Writes are sent only before this time, the lease's renew deadline; InfiniteFuture without
  // leader election.
  std::function<absl::Time()> deadline = [] { return absl::InfiniteFuture(); };
  // The clock of `deadline`. Never the wall clock, which can be set back.
  std::function<absl::Time()> clock = SteadyNow;

  // How long after `deadline` a write that was sent before it may still be under way. Less than
  // what the lease lasts after its renew deadline: another replica may write then.
  absl::Duration grace = absl::ZeroDuration();

  bool Passed() const {
    // Read the clock last: if the process is suspended in between, the check is too strict, not too
    // lax.
    const absl::Time until = deadline();
    return clock() >= until;
  }

  // When writes that were sent in time must have ended, on `clock`.
  absl::Time EndOfWrites() const { return deadline() + grace; }
};

}  // namespace outboard::bind

#endif  // OUTBOARD_SHIM_BIND_FENCE_H_
