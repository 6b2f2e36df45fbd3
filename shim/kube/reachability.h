// Whether the API server answers, from the outcomes of all requests of a process.
#ifndef OUTBOARD_SHIM_KUBE_REACHABILITY_H_
#define OUTBOARD_SHIM_KUBE_REACHABILITY_H_

#include <atomic>
#include <functional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace outboard::kube {

// The API server is away when several requests in a row had no answer, whichever client sent them.
// An answer with any HTTP status ends that. Informers, lease and writers each try again at their
// own pace, so they do not log it: one line here, repeated at growing intervals.
//
// Threading: thread-safe.
class Reachability {
 public:
  using Log = std::function<void(const std::string& line)>;

  // `server` is the URL that messages name. `log` is called on the clients' threads.
  Reachability(std::string server, Log log) : server_(std::move(server)), log_(std::move(log)) {}

  void OnAnswer(absl::Time now);
  // `error` says why a request had no answer.
  void OnFailure(absl::string_view error, absl::Time now);

  // Errors: UNAVAILABLE with server, duration and the last request's error while it is away.
  absl::Status Check(absl::Time now) const;

 private:
  // One lost request is not an outage: connections end for many reasons.
  static constexpr int kFailures = 2;

  std::string Describe(absl::Time now) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string server_;
  const Log log_;
  std::atomic<bool> failing_{false};  // failures_ > 0; lets answers pass without the mutex
  mutable absl::Mutex mutex_;
  int failures_ ABSL_GUARDED_BY(mutex_) = 0;  // in a row
  absl::Time since_ ABSL_GUARDED_BY(mutex_);
  std::string error_ ABSL_GUARDED_BY(mutex_);
  absl::Time next_line_ ABSL_GUARDED_BY(mutex_);
  absl::Duration interval_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace outboard::kube

#endif  // OUTBOARD_SHIM_KUBE_REACHABILITY_H_
