// A one-way switch that ends blocking calls from another thread.
#ifndef OUTBOARD_SHIM_KUBE_CANCEL_TOKEN_H_
#define OUTBOARD_SHIM_KUBE_CANCEL_TOKEN_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "shim/steady_condition.h"

namespace outboard::kube {

// The shared state of all copies of one token. Not used directly.
struct CancelState {
  absl::Mutex mutex;
  bool cancelled ABSL_GUARDED_BY(mutex) = false;
  SteadyCondition changed;
  uint64_t next_id ABSL_GUARDED_BY(mutex) = 0;
  std::map<uint64_t, std::function<void()>> listeners ABSL_GUARDED_BY(mutex);
};

// Shared by the canceller and the waiting callers.
//
// Threading: thread-safe. A listener runs on the cancelling thread, under the token's lock: it must
// be short and must not use the token.
// Lifetime: copies share one switch; a Listener may outlive the token or end before it.
// Errors: none.
class CancelToken {
 public:
  // Unregisters on destruction. Afterwards the callback is not running and will not run.
  class Listener {
   public:
    Listener(const CancelToken& token, std::function<void()> callback) : state_(token.state_) {
      absl::MutexLock lock(&state_->mutex);
      id_ = state_->next_id++;
      if (state_->cancelled) {
        callback();
      } else {
        state_->listeners[id_] = std::move(callback);
      }
    }
    ~Listener() {
      absl::MutexLock lock(&state_->mutex);
      state_->listeners.erase(id_);
    }
    Listener(const Listener&) = delete;
    Listener& operator=(const Listener&) = delete;

   private:
    friend class CancelToken;
    std::shared_ptr<CancelState> state_;
    uint64_t id_ = 0;
  };

  CancelToken();

  void Cancel() const;
  bool cancelled() const;
  // Waits until cancelled or until `duration` has passed. True if cancelled.
  bool WaitFor(absl::Duration duration) const;

 private:
  std::shared_ptr<CancelState> state_;
};

inline CancelToken::CancelToken() : state_(std::make_shared<CancelState>()) {}

inline void CancelToken::Cancel() const {
  absl::MutexLock lock(&state_->mutex);
  if (state_->cancelled) return;
  state_->cancelled = true;
  state_->changed.Notify();
  for (auto& [id, callback] : state_->listeners) callback();
}

inline bool CancelToken::cancelled() const {
  absl::MutexLock lock(&state_->mutex);
  return state_->cancelled;
}

inline bool CancelToken::WaitFor(absl::Duration duration) const {
  CancelState& state = *state_;
  absl::MutexLock lock(&state.mutex);
  return state.changed.AwaitFor(
      state.mutex, duration,
      [&state]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(state.mutex) { return state.cancelled; });
}

}  // namespace outboard::kube

#endif  // OUTBOARD_SHIM_KUBE_CANCEL_TOKEN_H_
