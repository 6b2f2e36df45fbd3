// Writes events.k8s.io/v1 events about pods and other objects, like client-go's recorder.
#ifndef OUTBOARD_SHIM_BIND_EVENT_RECORDER_H_
#define OUTBOARD_SHIM_BIND_EVENT_RECORDER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "outboard/v1beta1/effect.pb.h"
#include "shim/bind/executor.h"
#include "shim/bind/fence.h"
#include "shim/kube/api_client.h"
#include "shim/kube/objects.h"

namespace outboard::bind {

struct EventRecorderOptions {
  // Suffix of reportingInstance: `PROFILE-HOSTNAME`.
  std::string hostname;
  // See ApiWriterOptions.
  Fence fence;
  // The time that is written into objects: wall time. All other times are the caller's `now`.
  std::function<absl::Time()> wall = absl::Now;
  // Binds come first: with few events the API server has more time for them. Therefore few events
  // are written at a time, and more only as the queue grows or its first event gets old: an API
  // server that answers slowly must not leave events of half a minute to be lost with the process.
  int min_in_flight = 2;
  int max_in_flight = 32;
  size_t waiting_per_more_in_flight = 1000;
  absl::Duration age_per_more_in_flight = absl::Seconds(2);
  size_t max_queued = 50000;  // above this, new events are dropped and counted
  size_t max_series = 10000;  // events remembered for series; the oldest are evicted
};

struct EventRecorderStats {
  uint64_t written = 0;
  uint64_t dropped = 0;   // the queue was full
  uint64_t rejected = 0;  // rejected by the API server, or retries exhausted
  uint64_t merged = 0;    // counted in a series without a write
  size_t queued = 0;
  size_t in_flight = 0;
};

// An event about a pod, or about another object: see EventFields.
struct ObjectEvent {
  std::string object_namespace;
  std::string object_name;
  std::string object_uid;
  std::string object_resource_version;
  std::string profile;  // reportingController
  std::string type;     // "Normal" or "Warning"
  std::string reason;
  std::string action;
  std::string note;  // at most 1024 bytes
  std::string kind = "Pod";
  std::string api_version = "v1";
  std::string plugin{};  // that wants the event; empty: the shim's own
};

// kube-scheduler's events, with its texts.
ObjectEvent ScheduledEvent(const kube::PodObject& pod, absl::string_view profile,
                           absl::string_view node);
ObjectEvent FailedSchedulingEvent(const kube::PodObject& pod, absl::string_view profile,
                                  absl::string_view message);
// A preemption victim. The preemptor `preemptor_uid` evicted it from `node`. `in_memory`: it was
// not bound yet and only lost its assumed node.
ObjectEvent PreemptedEvent(const kube::PodObject& victim, absl::string_view profile,
                           absl::string_view preemptor_uid, absl::string_view node, bool in_memory);
// A plugin's event, about `pod` unless it names an object.
// Errors: INVALID_ARGUMENT if it names neither, or a resource that plugins may not use.
absl::StatusOr<ObjectEvent> PluginEvent(const v1beta1::Effect& effect, const kube::PodObject* pod,
                                        absl::string_view profile);

// Never blocks and never delays a bind: has its own queue and its own limit on requests in flight.
//
// Equal events (all fields except note and time) within 6 minutes form a series, as in client-go:
// the second event patches count 2 once the first has been answered, later ones only count. The
// count is written after 30 minutes and when the series ends, 6 minutes after its last event.
// "Scheduled" of the shim itself happens once per pod and is not remembered.
//
// Threading: scheduling thread only. The client's callbacks only post to the executor.
// Lifetime: the client outlives this object. Answers after its destruction are dropped.
// Errors: logged and counted, as in client-go (12 tries, 10 s apart, only without an answer).
class EventRecorder {
 public:
  EventRecorder(kube::ApiClient* client, Executor executor, EventRecorderOptions options);
  ~EventRecorder();
  EventRecorder(const EventRecorder&) = delete;
  EventRecorder& operator=(const EventRecorder&) = delete;

  void Record(ObjectEvent event, absl::Time now);

  // Ends and refreshes series, and retries. Call it at NextTick at the latest.
  void Tick(absl::Time now);
  absl::Time NextTick() const;

  // Events queued or in flight. A shutdown waits briefly for 0.
  size_t pending() const;
  // Pending events except those delayed for a retry. A shutdown waits for these.
  size_t under_way() const;
  // No more binds follow: from now on, write as many events at a time as allowed.
  void UseAllRequests(absl::Time now);
  EventRecorderStats stats() const;

 private:
  struct State;
  std::shared_ptr<State> state_;  // callbacks hold it weakly
};

}  // namespace outboard::bind

#endif  // OUTBOARD_SHIM_BIND_EVENT_RECORDER_H_
