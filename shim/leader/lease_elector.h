// Participates in leader election by a Lease.
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
#include "shim/clock.h"
#include "shim/kube/api_client.h"
#include "shim/leader/lease_step.h"

namespace outboard::leader {

struct LeaseElectorOptions {
  std::string lease_namespace = "kube-system";
  std::string lease_name;
  // Unique for this process: host name, underscore, UUID.
  std::string identity;
  LeaseTimings timings;
  // Whether Stop releases the lease, so that other replicas need not wait for its expiry.
  bool release_on_stop = true;
  // Whether this process could schedule as leader; called on the elector's thread. While false, a
  // free lease is left to other replicas, but at most for `patience` after the last true (or
  // Start): any leader is better than none. Not set: always true.
  std::function<bool()> useful;
  absl::Duration patience = absl::Seconds(10);
  // Whether this process still works; called on the elector's thread. While false, a leader does
  // not renew, so that another replica leads once the lease expires. Not set: always true.
  std::function<bool()> alive;
};

// All called on the elector's thread.
struct LeaseCallbacks {
  // This process leads. `transitions` is the lease's count and identifies the term.
  std::function<void(int transitions)> on_started;
  // This process no longer leads: after the deadline, or before the lease is released, which waits
  // for the return of this call. The process is expected to end.
  std::function<void()> on_stopped;
  // Another holder was seen (empty: no holder).
  std::function<void(const std::string& identity)> on_new_leader;
};

// The fence: a bind is sent only while SteadyNow() < BindDeadline(), checked immediately before
// the send. Another replica can lead at the earliest lease_duration - renew_deadline (5 s) later; a
// bind must have ended WriteGrace after the deadline.
//
// The epoch is the same fence for writes that others make in this leader's name.
//
// Threading: BindDeadline, leading, epoch, Check, leader and identity from any thread; Start and
// Stop from one thread. Lifetime: the client outlives this object and is used only by it: renewals
// must not wait behind binds. The destructor stops. Single use: after the loss of leadership it
// stays stopped. Errors: call ValidateTimings before. Failed requests are logged and retried
// according to the timings.
class LeaseElector {
 public:
  LeaseElector(kube::ApiClient& client, LeaseElectorOptions options, LeaseCallbacks callbacks);
  ~LeaseElector();
  LeaseElector(const LeaseElector&) = delete;
  LeaseElector& operator=(const LeaseElector&) = delete;

  void Start();
  // Ends the participation. If leading: on_stopped, then the release. Waits for both.
  void Stop();

  // Start of the last successful renewal plus renew_deadline, on SteadyNow's clock; InfinitePast
  // when not leading.
  absl::Time BindDeadline() const;
  bool leading() const { return SteadyNow() < BindDeadline(); }
  // Grows with each change of holder, also if the lease was deleted between them: the lease's
  // resource version as written when this process became its holder, unchanged while it renews.
  // Known before leading() is true; kept when the lease is lost. 0: not yet a holder, or the API
  // server's resource versions are not decimal numbers.
  int64_t epoch() const { return epoch_.load(std::memory_order_acquire); }
  // For liveness: an error if this object still believes to lead `tolerance` after the lease
  // expired, which means that its thread hangs.
  absl::Status Check(absl::Duration tolerance) const;
  // The last seen holder.
  std::string leader() const;
  // This process.
  const std::string& identity() const { return options_.identity; }

 private:
  void Run();
  absl::StatusOr<Lease> Read(absl::Duration timeout);
  absl::StatusOr<Lease> Write(const LeaseAction& action, absl::Duration timeout);
  absl::StatusOr<Lease> Send(kube::ApiRequest request);
  absl::Duration RequestTimeout() const;
  // Whether a leader lets its lease expire.
  bool LetsExpire();
  // Whether a free lease is left to others at `now`.
  bool LeavesLease(absl::Time now);
  void Publish();
  // Takes the epoch from the lease that this process has just written.
  void BeginEpoch();
  void StopLeading();
  void Release();

  kube::ApiClient& client_;
  const LeaseElectorOptions options_;
  const LeaseCallbacks callbacks_;
  kube::CancelToken cancel_;
  // SteadyNow in nanoseconds; the minimum when not leading.
  std::atomic<int64_t> deadline_ns_;
  std::atomic<int64_t> epoch_{0};

  mutable absl::Mutex mutex_;
  std::string leader_ ABSL_GUARDED_BY(mutex_);

  // Used by the thread only.
  LeaseStep step_;
  bool started_reported_ = false;
  absl::Time last_useful_;
  bool leaves_lease_ = false;  // and it was logged
  bool lets_expire_ = false;   // and it was logged

  std::thread thread_;
};

}  // namespace outboard::leader

#endif  // OUTBOARD_SHIM_LEADER_LEASE_ELECTOR_H_
