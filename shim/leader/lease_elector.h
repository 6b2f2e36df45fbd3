// Takes part in leader election by a Lease.
#ifndef OUTBOARD_SHIM_LEADER_LEASE_ELECTOR_H_
#define OUTBOARD_SHIM_LEADER_LEASE_ELECTOR_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "shim/kube/api_client.h"
#include "shim/leader/lease_step.h"

namespace outboard::leader {

struct LeaseElectorOptions {
  std::string lease_namespace = "kube-system";
  std::string lease_name;
  // Unique for this process: host name, underscore, UUID.
  std::string identity;
  LeaseTimings timings;
  // Whether Stop gives the lease up, so that another need not wait for it to expire.
  bool release_on_stop = true;
  // Whether leading would be of use; asked on the elector's thread. A lease that is free is left to
  // others while it says no, but only until `patience` after the last yes, or Start: then anybody
  // who leads is better than nobody. None: always of use.
  std::function<bool()> useful;
  absl::Duration patience = absl::Seconds(10);
};

// All on the elector's thread.
struct LeaseCallbacks {
  // We lead; `transitions` is the lease's count and tells our term from others.
  std::function<void(int transitions)> on_started;
  // We lead no more: after the deadline, or before the lease is released, which waits for the
  // return of this call. The process is expected to end.
  std::function<void()> on_stopped;
  // Another holder was seen (or none: empty).
  std::function<void(const std::string& identity)> on_new_leader;
};

// The fence: a bind is sent only while BootTimeNow() < BindDeadline(), checked immediately before
// it leaves. From there to the earliest moment at which another can lead are lease_duration -
// renew_deadline, 5 s, which a bind's timeout must stay under.
//
// Threading: BindDeadline, leading, Check and leader may be read anywhere; Start and Stop from one
// thread.
// Lifetime: the client outlives it and is its own: renewals must not wait behind binds. The
// destructor stops. It is used once: after the loss of leadership it stays stopped.
// Errors: ValidateTimings before; failures of requests are retried as the timings say, and logged.
class LeaseElector {
 public:
  LeaseElector(kube::ApiClient& client, LeaseElectorOptions options, LeaseCallbacks callbacks);
  ~LeaseElector();
  LeaseElector(const LeaseElector&) = delete;
  LeaseElector& operator=(const LeaseElector&) = delete;

  void Start();
  // Ends the participation; if leading: on_stopped, then the release. Waits for both.
  void Stop();

  // The last successful renewal's beginning plus renew_deadline, on BootTimeNow's clock;
  // InfinitePast when not leading.
  absl::Time BindDeadline() const;
  bool leading() const { return BootTimeNow() < BindDeadline(); }
  // For liveness: not OK when we still believe to lead `tolerance` after the lease expired, that
  // is, when this class hangs.
  absl::Status Check(absl::Duration tolerance) const;
  // The holder last seen.
  std::string leader() const;

 private:
  void Run();
  absl::StatusOr<Lease> Read(absl::Duration timeout);
  absl::StatusOr<Lease> Write(const LeaseAction& action, absl::Duration timeout);
  absl::StatusOr<Lease> Send(kube::ApiRequest request);
  absl::Duration RequestTimeout() const;
  // Whether a lease that could be had is left alone at `now`.
  bool LeavesLease(absl::Time now);
  void Publish();
  void StopLeading();
  void Release();

  kube::ApiClient& client_;
  const LeaseElectorOptions options_;
  const LeaseCallbacks callbacks_;
  kube::CancelToken cancel_;
  // Nanoseconds of BootTimeNow; the minimum when not leading.
  std::atomic<int64_t> deadline_ns_;

  mutable absl::Mutex mutex_;
  std::string leader_ ABSL_GUARDED_BY(mutex_);

  // Of the thread.
  LeaseStep step_;
  bool told_started_ = false;
  absl::Time last_useful_;
  bool leaves_lease_ = false;  // and has said so

  std::thread thread_;
};

}  // namespace outboard::leader

#endif  // OUTBOARD_SHIM_LEADER_LEASE_ELECTOR_H_
