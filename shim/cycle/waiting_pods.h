// Pods that have a node and wait at Permit.
#ifndef OUTBOARD_SHIM_CYCLE_WAITING_PODS_H_
#define OUTBOARD_SHIM_CYCLE_WAITING_PODS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "proto/outboard/v1alpha1/cluster_state.pb.h"
#include "proto/outboard/v1alpha1/permit.pb.h"
#include "shim/cycle/cluster_state.h"

namespace outboard::cycle {

// How a wait ended.
struct WaitEnd {
  uint64_t attempt_id = 0;
  bool allowed = false;
  // A more important pod takes the place: the pod is to be tried again, nobody rejected it.
  bool preempted = false;
  // Unless allowed: who ended it, and why.
  std::string plugin;
  std::string message;
  absl::Duration waited;
};

// Keeps waits and their limits. A wait belongs to the shim, so that hosts may come and go
// meanwhile. Decisions that come before their wait is registered are kept until then.
//
// Threading: thread-compatible. Errors: none; decisions on unknown attempts are dropped once the
// attempt has ended.
class WaitingPods {
 public:
  // Registers the waits that a Permit answer asked for. May be over at once, by decisions that came
  // early.
  std::optional<WaitEnd> Add(uint64_t attempt_id, const std::string& pod_uid,
                             const v1alpha1::PermitResponse& answer, absl::Time now);
  // A plugin's decision.
  std::optional<WaitEnd> Decide(const v1alpha1::WaitDecision& decision, absl::Time now);
  // A host says anew what its `plugins` wait for: those that do not any more allow the pod, those
  // that go on keep their limits, and those that begin have what they ask for.
  std::optional<WaitEnd> Renew(uint64_t attempt_id, const std::vector<std::string>& plugins,
                               const v1alpha1::PermitResponse& answer, absl::Time now);
  // Forgets a wait that has no end of its own: the attempt has failed.
  void Drop(uint64_t attempt_id) { waits_.erase(attempt_id); }
  // Ends an attempt's wait from outside: the pod went.
  std::optional<WaitEnd> Reject(uint64_t attempt_id, const std::string& plugin,
                                const std::string& message, absl::Time now);
  // As Reject, for a pod of more importance.
  std::optional<WaitEnd> Preempt(uint64_t attempt_id, const std::string& plugin, absl::Time now);
  // The wait whose limit has passed first, if any has. Call until empty.
  std::optional<WaitEnd> TakeExpired(absl::Time now);
  // The next limit; InfiniteFuture if nobody waits.
  absl::Time NextDeadline() const;
  // Forgets early decisions on attempts up to and including `attempt_id` that will never wait.
  void EndAttempt(uint64_t attempt_id);

  bool Waits(uint64_t attempt_id) const { return waits_.contains(attempt_id); }
  size_t size() const { return waits_.size(); }
  // Who is waited for.
  std::vector<PluginWait> Describe(uint64_t attempt_id) const;

 private:
  struct Limit {
    absl::Time deadline;
    absl::Duration timeout;
  };
  struct Wait {
    std::string pod_uid;
    absl::Time began;
    std::map<std::string, Limit> plugins;  // by name
  };
  static Limit LimitOf(const v1alpha1::PermitWait& asked, absl::Time now);
  WaitEnd End(uint64_t attempt_id, bool allowed, std::string plugin, std::string message,
              absl::Time now);

  absl::flat_hash_map<uint64_t, Wait> waits_;
  absl::flat_hash_map<uint64_t, std::vector<v1alpha1::WaitDecision>> early_;
};

// A duration as Go prints it: `30s`, `1m0s`, `1.5s`, `250ms`.
std::string GoDuration(absl::Duration duration);

}  // namespace outboard::cycle

#endif  // OUTBOARD_SHIM_CYCLE_WAITING_PODS_H_
