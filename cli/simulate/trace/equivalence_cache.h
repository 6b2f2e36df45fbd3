// Skips attempts that cannot place their pods, because one for a pod like theirs has just failed.
#ifndef OUTBOARD_CLI_SIMULATE_TRACE_EQUIVALENCE_CACHE_H_
#define OUTBOARD_CLI_SIMULATE_TRACE_EQUIVALENCE_CACHE_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "cli/simulate/trace/equivalence_class.h"
#include "shim/cache/cluster_state.h"
#include "shim/kube/objects.h"
#include "shim/queue/scheduling_queue.h"
#include "shim/scheduler/scheduler_options.h"

namespace outboard::simulate::trace {

// For virtual time, where the end of one pod wakes many waiting pods, at every event, and few of
// them fit.
//
// If a pod finds no node, other pods of its kind find none either, at the same instant and as long
// as nothing changes; if a plugin that uses amounts rejected it, those that ask for at least as
// much and were created later. When their turn comes they are rejected as it was, without asking a
// host. From then on they follow it: hosts know only the leader, and whatever retries it retries
// them.
//
// Threading: as ClusterState. Lifetime: cluster and queue outlive it. Errors: none.
class EquivalenceCache final : public scheduler::AttemptSkipper {
 public:
  using ClassOf = std::function<EquivalenceClass(const kube::PodObject&)>;

  // Without `equivalence_class_of` no attempt is skipped.
  EquivalenceCache(const cache::ClusterState* cluster, queue::SchedulingQueue* queue,
                   ClassOf equivalence_class_of, Reads reads)
      : cluster_(cluster),
        queue_(queue),
        equivalence_class_of_(std::move(equivalence_class_of)),
        reads_(std::move(reads)) {}

  // scheduler::AttemptSkipper:
  void Happened(const queue::ClusterEvent& event) override;
  void Failed(const std::string& uid, absl::Time now) override;
  bool Skip(const queue::QueuedPod& info, absl::Time now) override;
  bool IgnoresEvents(const std::string& uid) const override { return leader_of_.contains(uid); }
  void OnNotWaiting(const std::string& uid) override;
  void Release(absl::Time now) override;

 private:
  // The order of creation.
  struct Turn {
    int64_t created = 0;
    std::string ns, name;
    friend auto operator<=>(const Turn&, const Turn&) = default;
  };
  // A pod's class, by the version of the pod for which it was computed.
  struct Known {
    std::weak_ptr<const kube::PodObject> pod;
    size_t kind = 0;  // index into failures_; kNoKind: it is like no other
    int64_t amount = 0;
    absl::string_view amount_field;
    Turn turn;
  };
  static constexpr size_t kNoKind = std::numeric_limits<size_t>::max();
  // Covers pods of its kind with at least this amount and no earlier turn.
  struct Failure {
    int64_t amount = 0;
    Turn turn;
    std::string uid;
  };

  // Null: the pod is like no other, or has a node nominated for it. Valid until the next call.
  const Known* Find(const kube::PodPtr& pod);
  // Null: no failure covers it.
  const Failure* LeaderOf(size_t kind, int64_t amount, const Turn& turn) const;
  // Forgets failures from before a change.
  void Renew(absl::Time now);
  void ForgetFailures();

  const cache::ClusterState* const cluster_;
  queue::SchedulingQueue* const queue_;
  const ClassOf equivalence_class_of_;
  const Reads reads_;
  absl::flat_hash_map<std::string, size_t> kinds_;
  absl::flat_hash_map<std::string, Known> known_;  // by uid; deleted pods stay for a while
  size_t next_sweep_ = 1024;                       // at this size
  // By kind, while nothing changes; without failures that another one covers.
  std::vector<std::vector<Failure>> failures_;
  std::vector<size_t> failed_kinds_;  // that have any
  absl::Time failed_at_ = absl::InfinitePast();
  uint64_t placements_ = 0;  // ClusterState::placements_generation then
  // By uid. A follower that continued by itself is still in its old leader's list.
  absl::flat_hash_map<std::string, std::vector<std::string>> followers_;
  absl::flat_hash_map<std::string, std::string> leader_of_;
  std::vector<std::string> released_;  // leaders
};

}  // namespace outboard::simulate::trace

#endif  // OUTBOARD_CLI_SIMULATE_TRACE_EQUIVALENCE_CACHE_H_
