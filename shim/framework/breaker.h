// Stops calls to a host that does not answer.
#ifndef OUTBOARD_SHIM_FRAMEWORK_BREAKER_H_
#define OUTBOARD_SHIM_FRAMEWORK_BREAKER_H_

#include <array>
#include <cstddef>

namespace outboard::framework {

// What a host is called for. A good answer to one kind of call does not mean that another works.
enum class HostCall : size_t {
  kAlgorithm,  // PreFilter to Score
  kPostFilter,
  kReserve,
  kUnreserve,
  kPermit,
  kPreBind,
  kPreEnqueue,
  kSortKeys,
  kPush,  // no call: what the host sends on its own, such as hints
};
inline constexpr size_t kHostCalls = static_cast<size_t>(HostCall::kPush) + 1;

// Opens after a number of consecutive calls of one kind without a usable answer, each of which
// blocked all pods until its deadline. An answered probe half-opens it: the next call of that kind
// decides.
class Breaker {
 public:
  // The number of consecutive failures; 0: never opens.
  void SetLimit(int failures) { limit_ = failures; }
  void OnAnswer(HostCall call) { failures_[static_cast<size_t>(call)] = 0; }
  // True if this failure opens it.
  bool OnFailure(HostCall call) {
    const int failures = ++failures_[static_cast<size_t>(call)];
    if (limit_ == 0 || failures < limit_ || open_) return false;
    open_ = true;
    opened_by_ = call;
    return true;
  }
  // True if this opens it: the host is known not to answer, without a call.
  bool Open() {
    if (limit_ == 0 || open_) return false;
    open_ = true;
    return true;
  }
  // True if it was open. One more failure opens it again.
  bool OnProbeAnswered() {
    if (!open_) return false;
    open_ = false;
    failures_[static_cast<size_t>(opened_by_)] = limit_ - 1;
    return true;
  }
  // Another instance replaces the host.
  void Reset() {
    open_ = false;
    failures_.fill(0);
  }
  bool open() const { return open_; }

 private:
  int limit_ = 0;
  std::array<int, kHostCalls> failures_ = {};
  bool open_ = false;
  HostCall opened_by_ = HostCall::kAlgorithm;
};

}  // namespace outboard::framework

#endif  // OUTBOARD_SHIM_FRAMEWORK_BREAKER_H_
