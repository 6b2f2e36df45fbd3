// What a host that judges queueing hints has still to be told.
#ifndef OUTBOARD_SHIM_CYCLE_HINT_FEED_H_
#define OUTBOARD_SHIM_CYCLE_HINT_FEED_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "proto/outboard/v1alpha1/cluster_state.pb.h"
#include "proto/outboard/v1alpha1/queueing_hint.pb.h"
#include "shim/queue/queued_pod.h"

namespace outboard::cycle {

// Pods that began or ceased to wait, and events, since the last message. Bounded by the pods that
// there are, and by kMaxEvents.
//
// Threading: thread-compatible. Lifetime: a value. Errors: `overflowed`: events were lost; whoever
// waits has to be tried.
class HintFeed {
 public:
  static constexpr size_t kMaxEvents = 8192;

  void Waits(const queue::QueuedPod& pod);
  void WaitsNoMore(const std::string& uid) { pods_[uid] = std::nullopt; }
  void Happened(v1alpha1::QueueEvent event);

  bool empty() const { return pods_.empty() && events_.empty() && !overflowed_; }
  bool overflowed() const { return overflowed_; }
  // Moves everything into a message.
  void TakeInto(uint64_t events_needed_from, v1alpha1::SyncRequest* request);
  void Clear();

 private:
  absl::flat_hash_map<std::string, std::optional<v1alpha1::WaitingPod>> pods_;
  std::vector<v1alpha1::QueueEvent> events_;
  bool overflowed_ = false;
};

}  // namespace outboard::cycle

#endif  // OUTBOARD_SHIM_CYCLE_HINT_FEED_H_
