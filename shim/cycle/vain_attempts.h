// Attempts that cannot place their pods, whatever hosts say.
#ifndef OUTBOARD_SHIM_CYCLE_VAIN_ATTEMPTS_H_
#define OUTBOARD_SHIM_CYCLE_VAIN_ATTEMPTS_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/node_hash_map.h"
#include "absl/time/time.h"
#include "shim/cycle/cluster_state.h"
#include "shim/cycle/node_guard.h"
#include "shim/cycle/scheduler_options.h"
#include "shim/kube/objects.h"
#include "shim/queue/scheduling_queue.h"

namespace outboard::cycle {

// Spares attempts in virtual time, where the end of one pod wakes all that wait, at every event,
// and few of them fit (SchedulerOptions::likeness).
//
// Of pods of one kind the first is tried; if it finds no node the others find none either, until
// something happens that may help. Nor does one for which, by the shim's own books, no node has
// room, and that cannot make others leave. Such pods wait here: no host is told of them, no event
// moves them. In the round after an event the first of each kind that may fit has its turn, then
// the next; and all others are taken to have had theirs, in the order of the queue, so that order,
// counts and backoffs are as if each had been tried.
//
// Threading: as ClusterState. Lifetime: cluster and queue outlive it. Errors: none.
class VainAttempts {
 public:
  // What the profile of a pod allows it; none: the pod is tried.
  struct Terms {
    const GuardScope* scope = nullptr;
    bool may_preempt = false;
  };
  using TermsOf = std::function<std::optional<Terms>(const kube::PodObject&)>;

  // Without `likeness_of` nothing is spared.
  VainAttempts(const ClusterState* cluster, queue::SchedulingQueue* queue, LikenessOf likeness_of,
               TermsOf terms_of)
      : cluster_(cluster),
        queue_(queue),
        likeness_of_(std::move(likeness_of)),
        terms_of_(std::move(terms_of)) {}

  // An event; see queue::SchedulingQueue::MoveAllToActiveOrBackoff.
  void Happened(const queue::ClusterEvent& event);
  // When others hear what events move: if there was one, those that wait here have their turns.
  void BeginRound(absl::Time now);
  // Has the next of each kind tried that may find a node. To be called before each pod is taken
  // from the queue.
  void TryNext(absl::Time now);
  // Of a pod just taken from the queue: whether it would be rejected as it was before. Then it
  // waits again, and nobody hears of the attempt.
  bool Spare(const queue::QueuedPod& info, absl::Time now);
  // In place of the queue's own: an attempt ended without a node, and with nobody leaving for it.
  bool AddUnschedulable(const std::string& uid, queue::SchedulingQueue::Rejectors rejectors,
                        absl::Time now);
  // The queue is empty.
  void EndRound(absl::Time now);
  // Whether the pod waits here.
  bool Holds(const std::string& uid) const;

 private:
  static constexpr int64_t kAll = std::numeric_limits<int64_t>::max();

  struct Kind;
  struct Held {
    std::string uid;
    Kind* kind = nullptr;
    int64_t amount = 0;
    bool waits = false;  // here; else it is forgotten before the next round
    bool had_turn = false;
  };
  struct OnNode {
    uint64_t generation = 0;  // of the node when it was looked at
    bool fits = false;
  };
  struct Kind {
    std::vector<Held*> turns;  // of the round
    size_t next = 0;           // among these
    std::string active;        // the uid of the one whose turn it is
    // In the round number `round` whoever asks for `bound` or more finds no node; a pod that did
    // not was tried at `failed`.
    uint64_t round = 0;
    int64_t bound = kAll;
    absl::Time failed = absl::InfinitePast();
    const GuardScope* scope = nullptr;  // that `nodes`, by slot, was looked at with
    std::vector<OnNode> nodes;
  };
  struct Lowest {
    uint64_t generation = 0;
    int32_t priority = std::numeric_limits<int32_t>::max();
  };

  struct Found {
    Kind* kind;
    int64_t amount;
  };
  std::optional<Found> Find(const kube::PodObject& pod);
  bool Wait(const std::string& uid, const Found& as, queue::SchedulingQueue::Rejectors rejectors,
            absl::Time now);
  // Whether the pod waits, here and by the queue.
  const queue::QueuedPod* Waiting(const Held& held) const;
  bool MayFit(Kind* kind, const kube::PodObject& pod, const Terms& terms);
  int32_t LowestPriority();

  const ClusterState* const cluster_;
  queue::SchedulingQueue* const queue_;
  const LikenessOf likeness_of_;
  const TermsOf terms_of_;
  bool happened_ = false;  // since the last round began
  bool in_round_ = false;
  uint64_t round_ = 1;
  std::map<std::string, Kind> kinds_;
  absl::node_hash_map<std::string, Held> held_;
  std::vector<Held*> order_;    // all of them; the round's first
  size_t in_order_ = 0;         // so many are of the round
  std::vector<Lowest> lowest_;  // by slot
};

}  // namespace outboard::cycle

#endif  // OUTBOARD_SHIM_CYCLE_VAIN_ATTEMPTS_H_
