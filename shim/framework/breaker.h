// Stops calls to a host that does not answer.
#ifndef OUTBOARD_SHIM_FRAMEWORK_BREAKER_H_
#define OUTBOARD_SHIM_FRAMEWORK_BREAKER_H_

namespace outboard::framework {

// Opens after a number of consecutive calls without a usable answer, each of which blocked all pods
// until its deadline. An answered probe half-opens it: the next call decides.
class Breaker {
 public:
  // The number of consecutive failures; 0: never opens.
  void SetLimit(int failures) { limit_ = failures; }
  void OnAnswer() { failures_ = 0; }
  // True if this failure opens it.
  bool OnFailure() {
    ++failures_;
    if (limit_ == 0 || failures_ < limit_ || open_) return false;
    open_ = true;
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
    failures_ = limit_ - 1;
    return true;
  }
  // Another instance replaces the host.
  void Reset() {
    open_ = false;
    failures_ = 0;
  }
  bool open() const { return open_; }

 private:
  int limit_ = 0;
  int failures_ = 0;
  bool open_ = false;
};

}  // namespace outboard::framework

#endif  // OUTBOARD_SHIM_FRAMEWORK_BREAKER_H_
