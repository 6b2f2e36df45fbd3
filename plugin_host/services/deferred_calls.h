// Calls that wait for the cache to reach their version.
#ifndef OUTBOARD_PLUGIN_HOST_SERVICES_DEFERRED_CALLS_H_
#define OUTBOARD_PLUGIN_HOST_SERVICES_DEFERRED_CALLS_H_

#include <algorithm>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace outboard::services {

// A call that may have to wait.
class DeferredCall {
 public:
  virtual ~DeferredCall() = default;
  // Answers if it can, or if `now` is past its deadline; true if it did. The call may be deleted
  // when this returns.
  virtual bool TryAnswer(absl::Time now) = 0;
};

// The waiting calls of all sessions.
//
// Threading: the engine's thread.
// Lifetime: does not own the calls; they leave before their destruction.
// Errors: none.
class DeferredCalls {
 public:
  void Park(DeferredCall* call, std::string session, absl::Time until) {
    waiting_.push_back({call, std::move(session), until});
  }
  void Leave(DeferredCall* call) {
    std::erase_if(waiting_, [&](const Entry& entry) { return entry.call == call; });
  }
  // The session's cache changed: its calls try again.
  void Retry(const std::string& session, absl::Time now) {
    TryAll([&](const Entry& entry) { return entry.session == session; }, now);
  }
  // Calls past their deadline answer.
  void Expire(absl::Time now) {
    TryAll([&](const Entry& entry) { return entry.until <= now; }, now);
  }
  absl::Time NextDeadline() const {
    absl::Time next = absl::InfiniteFuture();
    for (const Entry& entry : waiting_) next = std::min(next, entry.until);
    return next;
  }
  bool empty() const { return waiting_.empty(); }

 private:
  struct Entry {
    DeferredCall* call;
    std::string session;
    absl::Time until;
  };
  template <typename Pred>
  void TryAll(Pred pred, absl::Time now) {
    if (waiting_.empty()) return;
    std::vector<Entry> chosen;
    for (auto it = waiting_.begin(); it != waiting_.end();) {
      if (pred(*it)) {
        chosen.push_back(std::move(*it));
        it = waiting_.erase(it);
      } else {
        ++it;
      }
    }
    for (Entry& entry : chosen) {
      if (!entry.call->TryAnswer(now)) waiting_.push_back(std::move(entry));
    }
  }
  std::vector<Entry> waiting_;
};

}  // namespace outboard::services

#endif  // OUTBOARD_PLUGIN_HOST_SERVICES_DEFERRED_CALLS_H_
