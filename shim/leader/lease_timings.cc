#include "shim/leader/lease_timings.h"

#include "absl/strings/str_cat.h"

namespace outboard::leader {
namespace {

// client-go's JitterFactor.
constexpr double kJitterFactor = 1.2;
constexpr absl::Duration kWriteMargin = absl::Milliseconds(500);
constexpr absl::Duration kLeastHandover = absl::Seconds(1);

// What other replicas wait for.
absl::Duration Published(const LeaseTimings& timings) {
  return absl::Floor(timings.lease_duration, absl::Seconds(1));
}

}  // namespace

absl::Duration WriteGrace(const LeaseTimings& timings) {
  return Published(timings) - timings.renew_deadline - kWriteMargin;
}

std::optional<TimingsError> ValidateTimings(const LeaseTimings& timings) {
  if (timings.retry_period <= absl::ZeroDuration())
    return TimingsError{"retryPeriod", timings.retry_period, "must be greater than zero"};
  if (timings.renew_deadline <= timings.retry_period * kJitterFactor) {
    return TimingsError{"renewDeadline", timings.renew_deadline,
                        absl::StrCat("must be greater than 1.2 times retryPeriod (",
                                     absl::FormatDuration(timings.retry_period), ")")};
  }
  if (Published(timings) < timings.renew_deadline + kLeastHandover) {
    return TimingsError{
        "leaseDuration", timings.lease_duration,
        absl::StrCat("in whole seconds, must exceed renewDeadline (",
                     absl::FormatDuration(timings.renew_deadline),
                     ") by at least 1s: a bind that is sent just before the renew deadline must "
                     "end before another replica can lead")};
  }
  return std::nullopt;
}

}  // namespace outboard::leader
