// Whether the scheduling thread still runs.
#ifndef OUTBOARD_SHIM_HEARTBEAT_H_
#define OUTBOARD_SHIM_HEARTBEAT_H_

#include <atomic>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

namespace outboard::shim {

// Times are of a clock that ignores changes of the wall clock (BootTimeNow).
//
// Threading: Beat on the scheduling thread, Check on any.
class Heartbeat {
 public:
  explicit Heartbeat(absl::Time now) { Beat(now); }

  // The thread begins a turn of its loop.
  void Beat(absl::Time now) { nanos_.store(absl::ToUnixNanos(now), std::memory_order_relaxed); }
  // INTERNAL: it has not begun one for longer than `tolerance`.
  absl::Status Check(absl::Duration tolerance, absl::Time now) const {
    const absl::Duration silence =
        now - absl::FromUnixNanos(nanos_.load(std::memory_order_relaxed));
    if (silence <= tolerance) return absl::OkStatus();
    return absl::InternalError(
        absl::StrCat("the scheduling thread has hung for ",
                     absl::FormatDuration(absl::Trunc(silence, absl::Seconds(1)))));
  }

 private:
  std::atomic<int64_t> nanos_;
};

}  // namespace outboard::shim

#endif  // OUTBOARD_SHIM_HEARTBEAT_H_
