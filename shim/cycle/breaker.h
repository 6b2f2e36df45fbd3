// Keeps calls from a host that does not answer.
#ifndef OUTBOARD_SHIM_CYCLE_BREAKER_H_
#define OUTBOARD_SHIM_CYCLE_BREAKER_H_

namespace outboard::cycle {

// Opens after a number of calls in a row without a usable answer, each of which held up all pods
// for its deadline. A probe that is answered half-opens it: the next call decides.
class Breaker {
 public:
  // After how many calls; 0: never.
  void SetLimit(int failures) { limit_ = failures; }
  void OnAnswer() { failures_ = 0; }
  // True if it opens by this.
  bool OnFailure() {
    ++failures_;
    if (limit_ == 0 || failures_ < limit_ || open_) return false;
    open_ = true;
    return true;
  }
  // True if it was open; one more failure opens it again.
  bool OnProbeAnswered() {
    if (!open_) return false;
    open_ = false;
    failures_ = limit_ - 1;
    return true;
  }
  // Another instance takes the host's place.
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

}  // namespace outboard::cycle

#endif  // OUTBOARD_SHIM_CYCLE_BREAKER_H_
