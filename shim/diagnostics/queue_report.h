// The scheduling queue at one moment, for users and tests: where each pod is, why, and since when.
#ifndef OUTBOARD_SHIM_DIAGNOSTICS_QUEUE_REPORT_H_
#define OUTBOARD_SHIM_DIAGNOSTICS_QUEUE_REPORT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "shim/queue/scheduling_queue.h"

namespace outboard::diagnostics {

inline constexpr size_t kDefaultQueueLimit = 500;
inline constexpr size_t kMaxQueueLimit = 20000;

struct QueueQuery {
  size_t limit = kDefaultQueueLimit;  // maximum number of listed pods; others are only counted
  std::string pod;                    // namespace/name; empty: all pods
};

struct QueueCounts {
  size_t active = 0, backoff = 0, error_backoff = 0, unschedulable = 0, gated = 0, parked = 0,
         in_flight = 0;
};

struct PodEntry {
  std::string ns, name, uid, profile;
  queue::Place place = queue::Place::kNone;
  bool deleted = false;
  int attempts = 0;
  int requeues = 0;
  std::vector<std::string> unschedulable_plugins, pending_plugins;
  std::string gating_plugin, gate_message, parked_host, last_event;
  // InfinitePast: not set.
  absl::Time queued = absl::InfinitePast();
  absl::Time initial_attempt = absl::InfinitePast();
  absl::Time last_transition = absl::InfinitePast();
  absl::Time backoff_until = absl::InfinitePast();
};

// How far a host has followed the cluster. The host has evaluated every event before
// `acknowledged_version`, and the shim has received the results.
struct HostEntry {
  std::string name, instance;
  bool usable = false;
  int64_t sent_version = 0;
  int64_t acknowledged_version = 0;
};

struct QueueReport {
  absl::Time time;
  // Since when and why the API server does not answer. Empty if it does.
  std::string api_server;
  // On a replica that does not lead: the lease's holder, "" if none holds it.
  std::optional<std::string> leader;
  QueueCounts counts;
  std::vector<PodEntry> pods;
  size_t omitted = 0;  // matching pods beyond the limit
  std::vector<HostEntry> hosts;
};

// Pods by place, in the order of `Place`, then by arrival there. Visits every pod but copies only
// the listed ones. `wall` is the wall time at `now`: readers get wall times.
//
// Threading: scheduling thread.
QueueReport CollectQueue(const queue::SchedulingQueue& queue, const QueueQuery& query,
                         absl::Time now, absl::Time wall);

// One object: `time`, `apiServer`, `leader`, `counts`, `pods`, `omitted`, `hosts`; times in RFC
// 3339. Unset times and leaders and an empty `apiServer` are omitted. Threading: any thread.
std::string ToJson(const QueueReport& report);

}  // namespace outboard::diagnostics

#endif  // OUTBOARD_SHIM_DIAGNOSTICS_QUEUE_REPORT_H_
