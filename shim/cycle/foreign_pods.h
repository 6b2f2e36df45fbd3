// Pods that another scheduler places: judged and bound on its word, never queued.
#ifndef OUTBOARD_SHIM_CYCLE_FOREIGN_PODS_H_
#define OUTBOARD_SHIM_CYCLE_FOREIGN_PODS_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "shim/cycle/node_judge.h"
#include "shim/cycle/scheduler.h"
#include "shim/kube/objects.h"

namespace outboard::cycle {

// Shares the scheduler's books, hosts and sessions: what it is asked is one more attempt between
// two of the scheduler's own. Reserve, Permit and PreBind are not asked: whoever places the pod
// decides when.
//
// Threading: the scheduling thread; Judge and JudgeVictims block it for at most the cycle's
// deadline. Lifetime: the scheduler and the effects outlive it.
class ForeignPods {
 public:
  struct Evictions {
    uint32_t slot = 0;
    std::vector<std::string> victim_uids;  // on the node
  };
  using Bound = std::function<void(const absl::Status&)>;

  ForeignPods(Scheduler* scheduler, Effects* effects) : scheduler_(scheduler), effects_(effects) {}

  const ClusterState& cluster() const { return scheduler_->cluster_; }

  // The profile's hosts on the pod and every one of `slots`, each of which holds a node, once.
  // Errors: NOT_FOUND: there is no such profile, or its hosts have not come yet; UNAVAILABLE: one
  // of them gave no answer; UNKNOWN: a plugin failed, in its words.
  absl::Status Judge(const std::string& profile, const kube::PodObject& pod,
                     absl::Span<const uint32_t> slots, absl::Time now, NodeJudgement* out);
  // Which nodes the pod could come to once those on them had left. Errors as above.
  absl::Status JudgeVictims(const std::string& profile, const kube::PodObject& pod,
                            absl::Span<const Evictions> evictions, absl::Time now,
                            std::vector<bool>* fits);

  // Counts the pod on the node at once and has it bound; `bound` hears how that ended, before this
  // returns where nothing was sent. RESOURCE_EXHAUSTED: by our own sums the node cannot take it.
  void Bind(const std::string& profile, const kube::PodPtr& pod, const std::string& node_name,
            absl::Time now, Bound bound);
  // Another scheduler's bind, before the API server carries it out: where this is OK the pod counts
  // on the node from now on, unless it is a `dry_run`. Whether it was carried out the watch tells,
  // or the API server if it has not within kSettleAfter. RESOURCE_EXHAUSTED: with what is on the
  // node, and what we are about to put there, there is no room.
  absl::Status Admit(const std::string& profile, const kube::PodPtr& pod,
                     const std::string& node_name, bool dry_run, absl::Time now);
  static constexpr absl::Duration kSettleAfter = absl::Seconds(10);
  // Asks what became of admitted binds that nothing was heard of.
  void Tick(absl::Time now);
  absl::Time NextTick() const;

  // The end of a bind; false: it is not one of these.
  bool OnBindEnded(uint64_t attempt_id, BindEnd end, const std::string& message, absl::Time now);

 private:
  struct Binding {
    kube::PodPtr pod;
    Bound bound;
  };
  // An attempt on the profile's hosts as they are now.
  absl::Status Begin(const std::string& profile, const kube::PodObject& pod, absl::Time now,
                     const ProfilePlan** plan, JudgeRequest* request);
  // Ends it, and keeps the books of who answered.
  absl::Status End(const ProfilePlan& plan, const JudgeRequest& request, const NodeJudge& judge,
                   absl::Status status, absl::Time now);

  struct Admission {
    absl::Time settle_at;
    cycle::BindOrder order;
  };

  Scheduler* const scheduler_;
  Effects* const effects_;
  absl::flat_hash_map<uint64_t, Binding> bindings_;  // by attempt
  std::deque<Admission> admissions_;                 // by time
};

}  // namespace outboard::cycle

#endif  // OUTBOARD_SHIM_CYCLE_FOREIGN_PODS_H_
