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

namespace outboard::kube {

// The state that the copies of one token share; not used directly.
struct CancelState {
  absl::Mutex mutex;
  bool cancelled ABSL_GUARDED_BY(mutex) = false;
  uint64_t next_id ABSL_GUARDED_BY(mutex) = 0;
  std::map<uint64_t, std::function<void()>> listeners ABSL_GUARDED_BY(mutex);
};

// Shared by the one who cancels and those who wait.
//
// Threading: thread-safe. Lifetime: copies share one switch; a Listener may outlive or predecease
// the token. A listener runs on the cancelling thread, under the token's lock, so it must be short
// and must not touch the token. Errors: none.
class CancelToken {
 public:
  // Unregisters on destruction; afterwards the callback does not run and is not running.
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
  // Waits until cancelled or `duration` has passed; true when cancelled.
  bool WaitFor(absl::Duration duration) const;

 private:
  std::shared_ptr<CancelState> state_;
};

inline CancelToken::CancelToken() : state_(std::make_shared<CancelState>()) {}

inline void CancelToken::Cancel() const {
  absl::MutexLock lock(&state_->mutex);
  if (state_->cancelled) return;
  state_->cancelled = true;
  for (auto& [id, callback] : state_->listeners) callback();
}

inline bool CancelToken::cancelled() const {
  absl::MutexLock lock(&state_->mutex);
  return state_->cancelled;
}

inline bool CancelToken::WaitFor(absl::Duration duration) const {
  absl::MutexLock lock(&state_->mutex);
  return state_->mutex.AwaitWithTimeout(absl::Condition(&state_->cancelled), duration);
}

}  // namespace outboard::kube

#endif  // OUTBOARD_SHIM_KUBE_CANCEL_TOKEN_H_
