// Attempts that cannot place their pods, since one for a pod like theirs has just failed.
#ifndef OUTBOARD_SHIM_CYCLE_VAIN_ATTEMPTS_H_
#define OUTBOARD_SHIM_CYCLE_VAIN_ATTEMPTS_H_

#include <compare>
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
#include "shim/cycle/cluster_state.h"
#include "shim/cycle/scheduler_options.h"
#include "shim/kube/objects.h"
#include "shim/queue/scheduling_queue.h"

namespace outboard::cycle {

// Spares attempts in virtual time, where the end of one pod wakes many that wait, at every event,
// and few of them fit (SchedulerOptions::likeness).
//
// Where a pod finds no node, others of its kind find none either, at the same instant and as long
// as nothing changes; if a plugin that goes by amounts rejected it, those that ask for as much and
// were created later. When their turn comes they are rejected as it was, without asking anybody,
// and from then on follow it: hosts hear of it alone, and whatever lets it be tried again lets them
// be tried, too.
//
// Threading: as ClusterState. Lifetime: cluster and queue outlive it. Errors: none.
class VainAttempts {
 public:
  // Whether the plugin reads a field.
  using Reads = std::function<bool(const std::string& plugin, absl::string_view field)>;

  // Without `likeness_of` nothing is spared.
  VainAttempts(const ClusterState* cluster, queue::SchedulingQueue* queue, LikenessOf likeness_of,
               Reads reads)
      : cluster_(cluster),
        queue_(queue),
        likeness_of_(std::move(likeness_of)),
        reads_(std::move(reads)) {}

  // An event; see queue::SchedulingQueue::MoveAllToActiveOrBackoff.
  void Happened(const queue::ClusterEvent& event);
  // The pod found no node, nobody leaves for it, and it waits in the queue: for its rejectors as
  // they are now.
  void Failed(const std::string& uid, absl::Time now);
  // Of a pod just taken from the queue: whether it was rejected without an attempt.
  bool Spare(const queue::QueuedPod& info, absl::Time now);
  // Whether the pod follows another.
  bool Holds(const std::string& uid) const { return leader_of_.contains(uid); }
  // The pod waits no more. From within the queue.
  void OnNotWaiting(const std::string& uid);
  // Those whose leaders wait no more go on. To be called before a pod is taken from the queue.
  void Release(absl::Time now);

 private:
  // Who was created first.
  struct Turn {
    int64_t created = 0;
    std::string ns, name;
    friend auto operator<=>(const Turn&, const Turn&) = default;
  };
  // What is known of a pod, as it was then.
  struct Known {
    std::weak_ptr<const kube::PodObject> pod;
    size_t kind = 0;  // index into failures_; kNoKind: it is like no other
    int64_t amount = 0;
    absl::string_view amount_field;
    Turn turn;
  };
  static constexpr size_t kNoKind = std::numeric_limits<size_t>::max();
  // Speaks for those of its kind with as large an amount and no earlier a turn.
  struct Failure {
    int64_t amount = 0;
    Turn turn;
    std::string uid;
  };

  // Null: the pod is like no other, or has a node nominated for it. Valid until the next call.
  const Known* Find(const kube::PodPtr& pod);
  // Null: nobody has failed that speaks for it.
  const Failure* LeaderOf(size_t kind, int64_t amount, const Turn& turn) const;
  // Forgets failures from before a change.
  void Renew(absl::Time now);
  void ForgetFailures();

  const ClusterState* const cluster_;
  queue::SchedulingQueue* const queue_;
  const LikenessOf likeness_of_;
  const Reads reads_;
  absl::flat_hash_map<std::string, size_t> kinds_;
  absl::flat_hash_map<std::string, Known> known_;  // by uid; those that are gone, for a while
  size_t next_sweep_ = 1024;                       // once so many are known
  // By kind, while nothing changes; without those for which another speaks.
  std::vector<std::vector<Failure>> failures_;
  std::vector<size_t> failed_kinds_;  // that have any
  absl::Time failed_at_ = absl::InfinitePast();
  uint64_t placements_ = 0;  // ClusterState::placements_generation then
  // By uid. A follower that went on by itself is still among its old leader's.
  absl::flat_hash_map<std::string, std::vector<std::string>> followers_;
  absl::flat_hash_map<std::string, std::string> leader_of_;
  std::vector<std::string> released_;  // leaders
};

}  // namespace outboard::cycle

#endif  // OUTBOARD_SHIM_CYCLE_VAIN_ATTEMPTS_H_
