// The clock of the shim's waits, deadlines and periods.
#ifndef OUTBOARD_SHIM_CLOCK_H_
#define OUTBOARD_SHIM_CLOCK_H_

#include <time.h>

#include "absl/time/time.h"

namespace outboard {

// CLOCK_BOOTTIME: counts suspension, and setting the wall clock does not change it.
//
// Times of this clock start in the year 2100 at the machine's boot, so that a mix with a wall time
// (absl::Now) shows: it is wrong by decades. Compare them only with each other. Wall time is only
// for what leaves the process (events, the lease's record, pod conditions, logs) and for times that
// the API server sent.
//
// absl's timed waits (AwaitWithTimeout and the like) end by the wall clock, whatever their
// argument: use SteadyCondition instead.
inline absl::Time SteadyNow() {
  constexpr absl::Duration kBoot = absl::Seconds(4102444800);  // 2100-01-01
  timespec now = {};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return absl::TimeFromTimespec(now) + kBoot;
}

}  // namespace outboard

#endif  // OUTBOARD_SHIM_CLOCK_H_
