// The rate limit of client-go's flowcontrol: a burst of `burst` requests, refilled at `qps`.
#ifndef OUTBOARD_SHIM_KUBE_TOKEN_BUCKET_H_
#define OUTBOARD_SHIM_KUBE_TOKEN_BUCKET_H_

#include <algorithm>

#include "absl/time/time.h"

namespace outboard::kube {

// Time is passed in.
//
// Threading: thread-compatible.
// Errors: none.
class TokenBucket {
 public:
  // A negative `qps` means no limit. Zero means client-go's defaults: 5, and 10 for `burst`.
  TokenBucket(double qps, int burst)
      : qps_(qps == 0 ? 5 : qps), burst_(burst <= 0 ? 10 : burst), tokens_(burst_) {}

  // Takes a token if one is available.
  bool TryTake(absl::Time now) {
    if (qps_ < 0) return true;
    Refill(now);
    if (tokens_ < 1) return false;
    tokens_ -= 1;
    return true;
  }

  // When the next token is available; not after `now` if there is one.
  absl::Time NextToken(absl::Time now) {
    if (qps_ < 0) return now;
    Refill(now);
    if (tokens_ >= 1) return now;
    // One nanosecond more, so that rounding never wakes the caller just before the token.
    return now + absl::Seconds((1 - tokens_) / qps_) + absl::Nanoseconds(1);
  }

 private:
  void Refill(absl::Time now) {
    if (now > last_) {
      if (last_ != absl::InfinitePast()) {
        tokens_ = std::min<double>(burst_, tokens_ + absl::ToDoubleSeconds(now - last_) * qps_);
      }
      last_ = now;
    }
  }

  const double qps_;
  const int burst_;
  double tokens_;
  absl::Time last_ = absl::InfinitePast();
};

}  // namespace outboard::kube

#endif  // OUTBOARD_SHIM_KUBE_TOKEN_BUCKET_H_
