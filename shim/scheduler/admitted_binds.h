// Binds of other schedulers that the API server asks about before it executes them.
#ifndef OUTBOARD_SHIM_SCHEDULER_ADMITTED_BINDS_H_
#define OUTBOARD_SHIM_SCHEDULER_ADMITTED_BINDS_H_

#include <cstdint>
#include <deque>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "shim/kube/objects.h"
#include "shim/scheduler/cluster_actions.h"
#include "shim/scheduler/scheduler.h"

namespace outboard::scheduler {

// An admitted bind counts on its node until its outcome is known: from the watch, or by reading the
// pod. The API server does not say that it has given up on one, for example because our answer was
// late, nor in which order it sent requests that arrive late. So an admission is never replaced by
// a later request for another node before the pod was read.
//
// Threading: the scheduling thread. Lifetime: the scheduler and the actions outlive it.
class AdmittedBinds final : public BindOutcomeHandler {
 public:
  AdmittedBinds(const SharedParts& shared, ClusterActions* actions)
      : state_(*shared.state), hints_(*shared.hints), actions_(*actions) {}

  // If this returns OK, the pod counts on the node from now on, unless it is a `dry_run`.
  // Errors, both mean that the bind must be denied: RESOURCE_EXHAUSTED: the node has no room beside
  // its pods, the shim's pending binds and the admitted ones. ABORTED: the pod may be on another
  // node, whose outcome this asks for; the other scheduler tries again.
  absl::Status Admit(const std::string& profile, const kube::PodPtr& pod,
                     const std::string& node_name, bool dry_run, absl::Time now);

  // If the watch reports nothing for this long after an admission, the pod is read. The API server
  // gives up on a request after a minute (its --request-timeout), so it cannot execute the bind any
  // more.
  static constexpr absl::Duration kSettleAfter = absl::Seconds(65);
  void Tick(absl::Time now);
  absl::Time NextTick() const;

  void OnBindEnded(uint64_t attempt_id, BindEnd end, const std::string& message,
                   absl::Time now) override;

 private:
  struct Admission {
    BindOrder order;       // its attempt reads the pod; 0: it is not being read
    absl::Time settle_at;  // when to read it
  };

  // Waits for the watch from `now` on, and ignores a read that has begun.
  void Await(Admission* admission, absl::Time now);
  void Read(Admission* admission, absl::Time now);

  SchedulerState& state_;
  QueueingHints& hints_;
  ClusterActions& actions_;
  absl::flat_hash_map<std::string, Admission> admissions_;  // by the pod's uid
  std::deque<std::pair<absl::Time, std::string>> due_;      // settle_at and uid, by time
  absl::flat_hash_map<uint64_t, std::string> reads_;        // uids, by attempt
};

}  // namespace outboard::scheduler

#endif  // OUTBOARD_SHIM_SCHEDULER_ADMITTED_BINDS_H_
