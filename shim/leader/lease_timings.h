// The durations of leader election.
#ifndef OUTBOARD_SHIM_LEADER_LEASE_TIMINGS_H_
#define OUTBOARD_SHIM_LEADER_LEASE_TIMINGS_H_

#include <optional>
#include <string>

#include "absl/time/time.h"

namespace outboard::leader {

struct LeaseTimings {
  absl::Duration lease_duration = absl::Seconds(15);
  absl::Duration renew_deadline = absl::Seconds(10);
  absl::Duration retry_period = absl::Seconds(2);
};

// How long after the renew deadline a write that was sent before it may still be under way. Another
// replica leads at the earliest when the lease ends; the margin covers what is on its way then, and
// clocks that run at slightly different rates. Not positive if the timings leave no room.
absl::Duration WriteGrace(const LeaseTimings& timings);

struct TimingsError {
  std::string field;  // of leaderElection
  absl::Duration value;
  std::string message;
};

// client-go's rules: lease > renew deadline > 1.2 × retry period > 0. Stricter: the lease, which is
// published in whole seconds, must exceed the renew deadline by a second, so that there is room for
// WriteGrace.
std::optional<TimingsError> ValidateTimings(const LeaseTimings& timings);

}  // namespace outboard::leader

#endif  // OUTBOARD_SHIM_LEADER_LEASE_TIMINGS_H_
