// The seam through which calls of hosts are measured.
#ifndef OUTBOARD_SHIM_HOSTS_CALL_OBSERVER_H_
#define OUTBOARD_SHIM_HOSTS_CALL_OBSERVER_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "shim/clock.h"

namespace outboard::hosts {

// The calls for pods. Handshakes, probes and the change stream are not among them. Plan, which a
// host has in place of Cycle, counts as Cycle.
enum class Call : uint8_t {
  kCycle,
  kPreFilter,
  kFilter,
  kPostFilter,
  kPreScore,
  kScore,
  kSortKeys,
  kPreEnqueue,
  kReserve,
  kUnreserve,
  kPermit,
  kPreBind,
  kBind,
  kPostBind,
  kGeneratePlacements,
  kScorePlacements,
};
// The contract's names, by Call.
inline constexpr std::array<const char*, 16> kCallNames = {
    "Cycle",          "PreFilter", "Filter",     "PostFilter", "PreScore",
    "Score",          "SortKeys",  "PreEnqueue", "Reserve",    "Unreserve",
    "Permit",         "PreBind",   "Bind",       "PostBind",   "GeneratePlacements",
    "ScorePlacements"};

// Observes the calls of one host.
//
// Threading: scheduling thread.
// Lifetime: outlives the host's clients and their calls.
class CallObserver {
 public:
  virtual ~CallObserver() = default;
  // Once for each call that was sent. `code`: OK for an answer, whatever it says.
  virtual void OnCallEnded(Call call, absl::StatusCode code, absl::Duration elapsed) = 0;
  // The time that the host itself spent on an answered call, by its own account; at most `elapsed`.
  virtual void OnEvaluated(Call call, absl::Duration evaluation) = 0;
};

// Measures one call. Without an observer it does nothing and reads no clock.
class CallTimer {
 public:
  CallTimer(CallObserver* observer, Call call)
      : observer_(observer),
        call_(call),
        began_(observer == nullptr ? absl::InfinitePast() : SteadyNow()) {}

  // Call it once. `evaluation_micros`: by the host's account; 0: none.
  void End(absl::StatusCode code, int64_t evaluation_micros = 0) const {
    if (observer_ == nullptr) return;
    const absl::Duration elapsed = std::max(SteadyNow() - began_, absl::ZeroDuration());
    observer_->OnCallEnded(call_, code, elapsed);
    // The host's account is not trusted: no part of the call is longer than the call.
    if (evaluation_micros > 0)
      observer_->OnEvaluated(call_, std::min(absl::Microseconds(evaluation_micros), elapsed));
  }

 private:
  CallObserver* const observer_;
  const Call call_;
  const absl::Time began_;
};

}  // namespace outboard::hosts

#endif  // OUTBOARD_SHIM_HOSTS_CALL_OBSERVER_H_
