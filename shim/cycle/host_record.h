// What the scheduler keeps of each plugin host.
#ifndef OUTBOARD_SHIM_CYCLE_HOST_RECORD_H_
#define OUTBOARD_SHIM_CYCLE_HOST_RECORD_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/container/flat_hash_set.h"
#include "absl/time/time.h"
#include "shim/cycle/breaker.h"
#include "shim/cycle/cluster_state.h"
#include "shim/cycle/hint_feed.h"
#include "shim/cycle/host_client.h"

namespace outboard::cycle {

// Threading: scheduling thread. Lifetime: the client outlives its place here.
struct HostRecord {
  HostClient* client = nullptr;
  ClusterState::Cursor cursor = 0;
  absl::Time away_since = absl::InfinitePast();
  absl::Time parked_pods_checked = absl::InfinitePast();
  // The connection's state has to be mended by a new handshake.
  bool wants_new_session = false;
  // Of attempts' calls, and of PreEnqueue and SortKeys: an answer there says nothing of these.
  Breaker breaker;
  Breaker queue_breaker;
  // It judges queueing hints: those events from this number on.
  bool judges = false;
  uint64_t knows_events_from = 0;
  HintFeed hints;
  // It could not be told of some event, or forgot who waits.
  bool hints_lost = false;
  // The versions that its mirror has had before the pushes to come, and that has all it must.
  int64_t pushes_from = 0;
  std::optional<int64_t> all_listed;
  bool keeps_objects = false;  // and has to hear of changes though no pod is placed
  absl::Time changes_sent = absl::InfinitePast();
  // Pods that it has not said the sort key of, and when it was asked for such last.
  absl::flat_hash_set<std::string> sort_keys_owed;
  absl::Time sort_keys_asked = absl::InfinitePast();
  // Uids of pods that wait for its word at PreEnqueue, and have not been told so; some may be gone.
  absl::flat_hash_set<std::string> gates_owed;
  // By TellTime.
  absl::Time told_time = absl::InfinitePast();

  // It is not asked until it has answered a probe.
  bool held_back() const { return breaker.open() || queue_breaker.open(); }
  bool is_here() const { return client != nullptr && client->usable() && !held_back(); }
};

}  // namespace outboard::cycle

#endif  // OUTBOARD_SHIM_CYCLE_HOST_RECORD_H_
