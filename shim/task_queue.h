// Hands work from other threads to the scheduling thread.
#ifndef OUTBOARD_SHIM_TASK_QUEUE_H_
#define OUTBOARD_SHIM_TASK_QUEUE_H_

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "shim/framework/waiter.h"
#include "shim/steady_condition.h"

namespace outboard::shim {

// A queue of closures. Unbounded: tasks report facts (an object changed, a bind ended) that must
// not be dropped. The API server and the limit on requests in flight bound the posting threads.
//
// Threading: Post, Ask and Close from any thread, Ask not from the scheduling thread; Run on the
// scheduling thread.
// Lifetime: the waiter outlives this object.
class TaskQueue {
 public:
  using Work = std::function<void(absl::Time now)>;

  explicit TaskQueue(framework::Waiter* waiter) : waiter_(waiter) {}

  void Post(Work work) {
    {
      absl::MutexLock lock(&mu_);
      waiting_.push_back(std::move(work));
    }
    waiter_->Wake();
  }

  // Runs all posted tasks, in order. Returns true if there were any.
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

  // Runs `question` on the scheduling thread, in posting order, and returns its answer. Returns
  // nullopt if the answer was late or the queue is closed; `question` may still run later.
  template <typename T>
  std::optional<T> Ask(std::function<T(absl::Time now)> question, absl::Duration timeout) {
    // Shared, because the caller may time out first. Guarded by mu_.
    auto answer = std::make_shared<std::optional<T>>();
    Post([this, answer, question = std::move(question)](absl::Time now) {
      T value = question(now);
      absl::MutexLock lock(&mu_);
      *answer = std::move(value);
      answered_.Notify();
    });
    absl::MutexLock lock(&mu_);
    const auto ended = [this, &answer]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      return closed_ || answer->has_value();
    };
    answered_.AwaitFor(mu_, timeout, ended);
    return std::move(*answer);
  }

  // Run will not be called again: callers of Ask return at once.
  void Close() {
    absl::MutexLock lock(&mu_);
    closed_ = true;
    answered_.Notify();
  }

 private:
  framework::Waiter* const waiter_;
  absl::Mutex mu_;
  std::vector<Work> waiting_ ABSL_GUARDED_BY(mu_);
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
  SteadyCondition answered_;
  std::vector<Work> running_;  // scheduling thread only; keeps its capacity
};

}  // namespace outboard::shim

#endif  // OUTBOARD_SHIM_TASK_QUEUE_H_
