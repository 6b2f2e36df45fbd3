// How other threads hand work to the scheduling thread.
#ifndef OUTBOARD_SHIM_INBOX_H_
#define OUTBOARD_SHIM_INBOX_H_

#include <functional>
#include <memory>
#include <optional>
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
// Threading: Post, Ask and Close from any thread, Ask not from the scheduling thread; Run on the
// scheduling thread. Lifetime: the waiter outlives it.
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

  // What `question` answers on the scheduling thread, in its turn among what is posted. None: it
  // was not answered in time, or nobody runs this inbox any more; `question` may still be asked
  // later.
  template <typename T>
  std::optional<T> Ask(std::function<T(absl::Time now)> question, absl::Duration timeout) {
    // Shared, for the asker may have given up; guarded by mu_.
    auto answer = std::make_shared<std::optional<T>>();
    Post([this, answer, question = std::move(question)](absl::Time now) {
      T value = question(now);
      absl::MutexLock lock(&mu_);
      *answer = std::move(value);
    });
    absl::MutexLock lock(&mu_);
    const auto ended = [this, &answer]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      return closed_ || answer->has_value();
    };
    mu_.AwaitWithTimeout(absl::Condition(&ended), timeout);
    return std::move(*answer);
  }

  // Run will not be called any more: whoever asks hears that at once.
  void Close() {
    absl::MutexLock lock(&mu_);
    closed_ = true;
  }

 private:
  cycle::Waiter* const waiter_;
  absl::Mutex mu_;
  std::vector<Work> waiting_ ABSL_GUARDED_BY(mu_);
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<Work> running_;  // of the scheduling thread; keeps its capacity
};

}  // namespace outboard::shim

#endif  // OUTBOARD_SHIM_INBOX_H_
