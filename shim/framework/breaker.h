// Stops calls to a host that does not answer.
#ifndef OUTBOARD_SHIM_FRAMEWORK_BREAKER_H_
#define OUTBOARD_SHIM_FRAMEWORK_BREAKER_H_

#include <algorithm>
#include <array>
#include <cstddef>

#include "absl/time/time.h"

namespace outboard::framework {

// What a host is called for. A good answer to one kind of call does not mean that another works.
enum class HostCall : size_t {
  kAlgorithm,  // PreFilter to Score
  kPostFilter,
  kGeneratePlacements,
  kScorePlacements,
  kReserve,
  kUnreserve,
  kPermit,
  kPreBind,
  kBind,
  kPreEnqueue,
  kSortKeys,
  kPush,  // no call: what the host sends on its own, such as hints
};
inline constexpr size_t kHostCalls = static_cast<size_t>(HostCall::kPush) + 1;

// Opens after a number of consecutive calls of one kind without a usable answer, each of which
// blocked all pods until its deadline. An answered probe half-opens it: the next call of that kind
// decides. If it opens again and again, because the host answers probes only, it stays open for
// longer each time: pods of other hosts wait for each of these calls, too.
class Breaker {
 public:
  static constexpr absl::Duration kFirstPause = absl::Seconds(2);
  static constexpr absl::Duration kLongestPause = absl::Seconds(30);

  // The number of consecutive failures; 0: never opens.
  void SetLimit(int failures) { limit_ = failures; }
  void OnAnswer(HostCall call) {
    failures_[static_cast<size_t>(call)] = 0;
    if (call == opened_by_) pause_ = absl::ZeroDuration();
  }
  // True if this failure opens it.
  bool OnFailure(HostCall call, absl::Time now) {
    const int failures = ++failures_[static_cast<size_t>(call)];
    if (limit_ == 0 || failures < limit_ || open_) return false;
    open_ = true;
    if (call != opened_by_) pause_ = absl::ZeroDuration();
    opened_by_ = call;
    open_until_ = now + pause_;
    pause_ = std::clamp(2 * pause_, kFirstPause, kLongestPause);
    return true;
  }
  // True if this opens it: the host is known not to answer, without a call.
  bool Open() {
    if (limit_ == 0 || open_) return false;
    open_ = true;
    open_until_ = absl::InfinitePast();
    return true;
  }
  // True if it was open, and for long enough. One more failure opens it again.
  bool OnProbeAnswered(absl::Time now) {
    if (!open_ || now < open_until_) return false;
    open_ = false;
    failures_[static_cast<size_t>(opened_by_)] = limit_ - 1;
    return true;
  }
  // Another instance replaces the host.
  void Reset() {
    open_ = false;
    failures_.fill(0);
    pause_ = absl::ZeroDuration();
  }
  bool open() const { return open_; }

 private:
  int limit_ = 0;
  std::array<int, kHostCalls> failures_ = {};
  bool open_ = false;
  HostCall opened_by_ = HostCall::kAlgorithm;
  absl::Duration pause_;  // of the next opening by the same kind of call
  absl::Time open_until_ = absl::InfinitePast();
};

}  // namespace outboard::framework

#endif  // OUTBOARD_SHIM_FRAMEWORK_BREAKER_H_
