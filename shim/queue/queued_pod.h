// A pod in the scheduling queue, or in an attempt, with what the queue remembers about it.
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

// Where a pod is. It is in exactly one of these.
enum class Place {
  kNone,           // on its way from one place to another, within a call to the queue
  kActive,         // waits for its turn
  kBackoff,        // was rejected, waits for the end of its backoff
  kErrorBackoff,   // failed for no fault of its own, waits for the end of its backoff
  kUnschedulable,  // was rejected, waits for an event
  kGated,          // PreEnqueue keeps it out, waits for an event
  kParked,         // a host that it needs is away, waits for that host
  kInFlight,       // popped, and not given back yet
};

// Metrics and the cycle read these fields; only the queue writes them.
struct QueuedPod {
  // Always the newest object that the queue was given, also while an attempt is under way.
  kube::PodPtr pod;
  Place place = Place::kNone;
  // Gone from the cluster, or bound, while an attempt was under way: the attempt's end forgets it.
  bool deleted = false;
  // The attempt's events are still recorded (between Pop and Done).
  bool recording = false;

  // Attempts begun, the present one included; one that ends in Park is taken off again.
  int attempts = 0;
  int unschedulable_count = 0;
  int consecutive_errors = 0;
  // When it entered the queue last: orders equals, and starts backoff and the flush timeout.
  absl::Time timestamp = absl::InfinitePast();
  // When it first entered the active queue (start of the scheduling SLI); unset while it was always
  // gated.
  std::optional<absl::Time> initial_attempt_time;
  // When it came to the place where it is.
  absl::Time last_transition = absl::InfinitePast();
  // Label of what let it into the active or the backoff queue last, and how often that was so since
  // it was added; ends of backoff and attempts do not count.
  std::string last_event;
  int requeues = 0;
  // It came back by the flush timeout, not by an event.
  bool was_flushed = false;

  // Plugins that rejected it in its last attempt, or at PreEnqueue.
  absl::btree_set<std::string> unschedulable_plugins;
  absl::btree_set<std::string> pending_plugins;
  // Those that found no help for it.
  absl::btree_set<std::string> post_filter_plugins;
  // With kGated: who gates, and why.
  std::string gating_plugin;
  std::string gate_message;
  // With kUnschedulable and kGated: a host judges the events from number `judged_since` on, and no
  // event moves the pod here.
  bool judged = false;
  uint64_t judged_since = 0;
  // A host would judge, but the gate holds the pod, so that no event helps it.
  bool held = false;
  // Number of the first event after it began to wait.
  uint64_t waiting_since = 0;
  // With kParked.
  std::string parked_host;
  absl::Time parked_since = absl::InfinitePast();

  // The rest serves the queue alone.
  std::string sort_key;
  bool has_custom_key = false;
  uint64_t sequence = 0;
  std::optional<absl::Time> backoff_expiration;
  size_t heap_index = 0;
  uint64_t recording_since = 0;
  std::vector<ClusterEvent> own_events;  // events about this very pod since recording began
  bool activate_requested = false;       // Activate came while in flight

  const std::string& uid() const { return pod->uid(); }
  bool has_rejectors() const { return !unschedulable_plugins.empty() || !pending_plugins.empty(); }
};

}  // namespace outboard::queue

#endif  // OUTBOARD_SHIM_QUEUE_QUEUED_POD_H_
