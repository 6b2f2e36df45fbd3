// Writes events.k8s.io/v1 events about pods, as client-go's recorder does.
#ifndef OUTBOARD_SHIM_BIND_EVENT_RECORDER_H_
#define OUTBOARD_SHIM_BIND_EVENT_RECORDER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "shim/bind/inbox.h"
#include "shim/kube/api_client.h"
#include "shim/kube/objects.h"

namespace outboard::bind {

struct EventRecorderOptions {
  // Ends reportingInstance: `PROFILE-HOSTNAME`.
  std::string hostname;
  // As ApiWriterOptions.
  std::function<absl::Time()> fence = [] { return absl::InfiniteFuture(); };
  std::function<absl::Time()> clock = [] { return absl::Now(); };
  // Binds come first: an API server that is busy with few events has more time for them. So few
  // are written at a time, and one more for each so many that wait.
  int min_in_flight = 2;
  int max_in_flight = 32;
  size_t waiting_per_more_in_flight = 1000;
  size_t max_queued = 50000;  // beyond it new events are dropped and counted
  size_t max_series = 10000;  // events remembered for series; the oldest are forgotten
};

struct EventRecorderStats {
  uint64_t written = 0;
  uint64_t dropped = 0;   // the queue was full
  uint64_t rejected = 0;  // the API server refused, or retries ran out
  uint64_t merged = 0;    // counted into a series without a write
  size_t queued = 0;
  size_t in_flight = 0;
};

// What happened to a pod.
struct PodEvent {
  std::string pod_namespace;
  std::string pod_name;
  std::string pod_uid;
  std::string pod_resource_version;
  std::string profile;  // reportingController
  std::string type;     // "Normal" or "Warning"
  std::string reason;
  std::string action;
  std::string note;  // at most 1024 bytes
};

// kube-scheduler's events, in its words.
PodEvent ScheduledEvent(const kube::PodObject& pod, absl::string_view profile,
                        absl::string_view node);
PodEvent FailedSchedulingEvent(const kube::PodObject& pod, absl::string_view profile,
                               absl::string_view message);
// A victim of preemption. `preemptor_uid` had it leave `node`; `in_memory`: it only lost the place
// that it was about to get.
PodEvent PreemptedEvent(const kube::PodObject& victim, absl::string_view profile,
                        absl::string_view preemptor_uid, absl::string_view node, bool in_memory);

// Never blocks and never holds up a bind: has its own queue and its own share of requests in
// flight.
//
// Equal events (all but note and time) of the last 6 minutes become one with a series, as client-go
// has it: the second one patches count 2, later ones only count, and the count is written after 30
// minutes and when the series ends, 6 minutes after its last event. "Scheduled" happens once to a
// pod and is not remembered.
//
// Threading: scheduling thread only; the client's callbacks only post to the inbox.
// Lifetime:  the client outlives it; answers that come after its end are dropped.
// Errors:    none to the caller: logged and counted, as in client-go (12 tries, 10 s apart, only
// where no answer came).
class EventRecorder {
 public:
  EventRecorder(kube::ApiClient* client, Inbox inbox, EventRecorderOptions options);
  ~EventRecorder();
  EventRecorder(const EventRecorder&) = delete;
  EventRecorder& operator=(const EventRecorder&) = delete;

  void Record(PodEvent event, absl::Time now);

  // Ends series, refreshes them, retries. To be called at NextTick at the latest.
  void Tick(absl::Time now);
  absl::Time NextTick() const;

  // Queued or in flight; a shutdown gives it a moment to reach 0.
  size_t pending() const;
  // Those of them that are not put off until a later try: a process that ends waits for these.
  size_t under_way() const;
  // No more binds come: from now on as many events are written at a time as may be.
  void Hurry();
  EventRecorderStats stats() const;

 private:
  struct State;
  std::shared_ptr<State> state_;  // callbacks hold it weakly
};

}  // namespace outboard::bind

#endif  // OUTBOARD_SHIM_BIND_EVENT_RECORDER_H_
