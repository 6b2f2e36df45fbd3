// The scheduling queue at one moment, for people and tests: where each pod is, why, and since when.
#ifndef OUTBOARD_SHIM_QUEUE_REPORT_QUEUE_REPORT_H_
#define OUTBOARD_SHIM_QUEUE_REPORT_QUEUE_REPORT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "shim/queue/scheduling_queue.h"

namespace outboard::queue_report {

inline constexpr size_t kDefaultLimit = 500;
inline constexpr size_t kMaxLimit = 20000;

struct Query {
  size_t limit = kDefaultLimit;  // pods to list; those beyond are only counted
  std::string pod;               // namespace/name; empty: all pods
};

struct Counts {
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
  // InfinitePast: never, or none.
  absl::Time queued = absl::InfinitePast();
  absl::Time initial_attempt = absl::InfinitePast();
  absl::Time last_transition = absl::InfinitePast();
  absl::Time backoff_until = absl::InfinitePast();
};

// How far a host has followed the cluster. It has judged every event that came before
// `acknowledged_version`, and its word on them has arrived.
struct HostEntry {
  std::string name, instance;
  bool usable = false;
  int64_t sent_version = 0;
  int64_t acknowledged_version = 0;
};

struct Report {
  absl::Time time;
  Counts counts;
  std::vector<PodEntry> pods;
  size_t omitted = 0;  // pods that the query asked for, beyond its limit
  std::vector<HostEntry> hosts;
};

// Pods by place, in the order of `Place`, then by arrival there. Visits every pod, copies those
// that are listed.
//
// Threading: the scheduling thread.
Report Collect(const queue::SchedulingQueue& queue, const Query& query, absl::Time now);

// One object: `time`, `counts`, `pods`, `omitted`, `hosts`; times in RFC 3339, and only those that
// there are. Any thread.
std::string ToJson(const Report& report);

}  // namespace outboard::queue_report

#endif  // OUTBOARD_SHIM_QUEUE_REPORT_QUEUE_REPORT_H_
