// A pod in the scheduling queue, or in an attempt, with the queue's data about it.
#ifndef OUTBOARD_SHIM_QUEUE_QUEUED_POD_H_
#define OUTBOARD_SHIM_QUEUE_QUEUED_POD_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/btree_set.h"
#include "absl/time/time.h"
#include "shim/kube/objects.h"
#include "shim/queue/cluster_event.h"

namespace outboard::queue {

// The place of a pod. It is in exactly one of these.
enum class Place {
  kNone,           // between two places, within a call to the queue
  kActive,         // waits for its turn
  kBackoff,        // was rejected, waits for the end of its backoff
  kErrorBackoff,   // failed with an error, waits for the end of its backoff
  kUnschedulable,  // was rejected, waits for an event
  kGated,          // PreEnqueue keeps it out, waits for an event
  kParked,         // a host that it needs is unavailable, waits for that host
  kInFlight,       // popped; its attempt has not ended
};

// Metrics and the cycle read these fields; only the queue writes them.
struct QueuedPod {
  // Always the newest object that the queue received, also during an attempt.
  kube::PodPtr pod;
  Place place = Place::kNone;
  // Deleted or bound during an attempt; the pod is forgotten when the attempt ends.
  bool deleted = false;
  // The attempt's events are still recorded (between Pop and Done).
  bool recording = false;

  // Attempts begun, including the current one. An attempt that ends in Park is not counted.
  int attempts = 0;
  int unschedulable_count = 0;
  int consecutive_errors = 0;
  // When it last entered the queue: orders equal pods, and starts backoff and the flush timeout.
  absl::Time timestamp = absl::InfinitePast();
  // When it first entered the active queue (start of the scheduling SLI); unset while it was always
  // gated.
  std::optional<absl::Time> initial_attempt_time;
  // When it came to its current place.
  absl::Time last_transition = absl::InfinitePast();
  // Label of what last let it into the active or the backoff queue, and how often that happened
  // since it was added; ends of backoff and attempts do not count.
  std::string last_event;
  int requeues = 0;
  // It came back by the flush timeout, not by an event.
  bool was_flushed = false;

  // Plugins that rejected it in its last attempt, or at PreEnqueue.
  absl::btree_set<std::string> unschedulable_plugins;
  absl::btree_set<std::string> pending_plugins;
  // PostFilter plugins that found no help for it.
  absl::btree_set<std::string> post_filter_plugins;
  // With kGated: the gating plugin and its message.
  std::string gating_plugin;
  std::string gate_message;
  // With kUnschedulable and kGated: a host evaluates the events from number `delegated_since` on,
  // and no event moves the pod here.
  bool delegated = false;
  uint64_t delegated_since = 0;
  // A host would evaluate events, but the gate holds the pod, so that no event helps it.
  bool held = false;
  // Number of the first event after it began to wait.
  uint64_t waiting_since = 0;
  // With kParked.
  std::string parked_host;
  absl::Time parked_since = absl::InfinitePast();

  // Used by the queue only.
  std::string sort_key;
  bool has_custom_key = false;
  uint64_t sequence = 0;
  std::optional<absl::Time> backoff_expiration;
  size_t heap_index = 0;
  uint64_t recording_since = 0;
  std::vector<ClusterEvent> own_events;  // events about this pod since recording began
  bool activate_requested = false;       // Activate was called while in flight

  const std::string& uid() const { return pod->uid(); }
  bool has_rejectors() const { return !unschedulable_plugins.empty() || !pending_plugins.empty(); }
};

}  // namespace outboard::queue

#endif  // OUTBOARD_SHIM_QUEUE_QUEUED_POD_H_
