// How other threads hand work to the scheduling thread.
#ifndef OUTBOARD_SHIM_INBOX_H_
#define OUTBOARD_SHIM_INBOX_H_

#include <functional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "shim/cycle/waiter.h"

namespace outboard::shim {

// A queue of closures. Unbounded: what is posted are facts (an object changed, a bind ended), which
// may not be dropped; the posters are bounded by the API server and by the number of requests in
// flight.
//
// Threading: Post from any thread; Run on the scheduling thread. Lifetime: the waiter outlives it.
class Inbox {
 public:
  using Work = std::function<void(absl::Time now)>;

  explicit Inbox(cycle::Waiter* waiter) : waiter_(waiter) {}

  void Post(Work work) {
    {
      absl::MutexLock lock(&mu_);
      waiting_.push_back(std::move(work));
    }
    waiter_->Wake();
  }

  // Runs what was posted so far, in order; true if there was anything.
  bool Run(absl::Time now) {
    {
      absl::MutexLock lock(&mu_);
      running_.swap(waiting_);
    }
    for (Work& work : running_) work(now);
    const bool any = !running_.empty();
    running_.clear();
    return any;
  }

 private:
  cycle::Waiter* const waiter_;
  absl::Mutex mu_;
  std::vector<Work> waiting_ ABSL_GUARDED_BY(mu_);
  std::vector<Work> running_;  // of the scheduling thread; keeps its capacity
};

}  // namespace outboard::shim

#endif  // OUTBOARD_SHIM_INBOX_H_
