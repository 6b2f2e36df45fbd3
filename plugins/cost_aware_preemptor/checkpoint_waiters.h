// Pods for which others would have had to leave, were their checkpoints younger.
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
#include "proto/outboard/v1alpha1/types.pb.h"

namespace outboard::cost_aware_preemptor {

// Who is tried again when a running pod has written a checkpoint: one waiting pod for each, and
// none more often than every ten seconds, however many wait and however many are written. Those
// that were called least are called first, then the more important, then the older: one whom no
// checkpoint helps does not stand before the others for ever.
//
// Threading: thread-compatible; the mirror's thread. Lifetime: a value. Errors: none.
class CheckpointWaiters {
 public:
  bool empty() const { return waiters_.empty(); }
  size_t size() const { return waiters_.size(); }
  void Clear();
  // The pod found nobody who may leave, some of them for want of a young checkpoint.
  void Add(const v1alpha1::Pod& pod);
  void Remove(const std::string& uid);
  // A running pod of this priority has written a checkpoint.
  void OnCheckpoint(int32_t priority);
  // Uids of those that are to be tried now.
  std::vector<std::string> TakeDue(absl::Time now);

 private:
  // Times that it was called, minus its priority, creation, uid.
  using Turn = std::tuple<int64_t, int64_t, int64_t, std::string>;
  struct Waiter {
    Turn turn;
    absl::Time last = absl::InfinitePast();
  };
  absl::flat_hash_map<std::string, Waiter> waiters_;
  std::set<Turn> turns_;
  std::vector<int32_t> written_;  // Priorities of pods that wrote checkpoints, not acted on yet.
};

}  // namespace outboard::cost_aware_preemptor

#endif  // OUTBOARD_PLUGINS_COST_AWARE_PREEMPTOR_CHECKPOINT_WAITERS_H_
