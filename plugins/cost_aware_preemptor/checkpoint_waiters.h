// Pods whose possible victims were kept because their checkpoints are too old.
#ifndef OUTBOARD_PLUGINS_COST_AWARE_PREEMPTOR_CHECKPOINT_WAITERS_H_
#define OUTBOARD_PLUGINS_COST_AWARE_PREEMPTOR_CHECKPOINT_WAITERS_H_

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "outboard/v1beta1/types.pb.h"

namespace outboard::cost_aware_preemptor {

// Chooses which pods to retry after running pods wrote checkpoints: one waiting pod per checkpoint,
// and each pod at most every ten seconds. The order is: fewest retries, higher priority, older. So
// a pod that no checkpoint helps does not block the others.
//
// Threading: thread-compatible; runs on the cluster cache's thread.
// Lifetime: a value.
// Errors: none.
class CheckpointWaiters {
 public:
  bool empty() const { return waiters_.empty(); }
  size_t size() const { return waiters_.size(); }
  void Clear();
  // The pod found no victims, and some candidates were kept only for lack of a recent checkpoint.
  void Add(const v1beta1::Pod& pod);
  void Remove(const std::string& uid);
  // A running pod of this priority has written a checkpoint.
  void OnCheckpoint(int32_t priority);
  // Uids of the pods to retry now.
  std::vector<std::string> TakeDue(absl::Time now);

 private:
  // Number of retries, negated priority, creation, uid.
  using Turn = std::tuple<int64_t, int64_t, int64_t, std::string>;
  struct Waiter {
    Turn turn;
    absl::Time last = absl::InfinitePast();
  };
  absl::flat_hash_map<std::string, Waiter> waiters_;
  std::set<Turn> turns_;
  std::vector<int32_t> written_;  // Priorities of pods with unhandled new checkpoints.
};

}  // namespace outboard::cost_aware_preemptor

#endif  // OUTBOARD_PLUGINS_COST_AWARE_PREEMPTOR_CHECKPOINT_WAITERS_H_
