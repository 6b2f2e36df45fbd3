// Delayed work on the scheduling thread.
#ifndef OUTBOARD_SHIM_BIND_DELAYS_H_
#define OUTBOARD_SHIM_BIND_DELAYS_H_

#include <functional>
#include <map>
#include <utility>

#include "absl/time/time.h"

namespace outboard::bind {

// Threading: scheduling thread only.
// Errors: none.
class Delays {
 public:
  using Action = std::function<void(absl::Time now)>;

  void Add(absl::Time when, Action action) { actions_.emplace(when, std::move(action)); }
  absl::Time next() const {
    return actions_.empty() ? absl::InfiniteFuture() : actions_.begin()->first;
  }
  // Runs all work that is due. Work added meanwhile runs at the next call at the earliest.
  void RunDue(absl::Time now) {
    std::multimap<absl::Time, Action> due;
    while (!actions_.empty() && actions_.begin()->first <= now)
      due.insert(actions_.extract(actions_.begin()));
    for (auto& [when, action] : due) action(now);
  }

 private:
  std::multimap<absl::Time, Action> actions_;
};

}  // namespace outboard::bind

#endif  // OUTBOARD_SHIM_BIND_DELAYS_H_
