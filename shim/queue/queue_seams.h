// What the scheduling queue asks of, and tells, its surroundings.
#ifndef OUTBOARD_SHIM_QUEUE_QUEUE_SEAMS_H_
#define OUTBOARD_SHIM_QUEUE_QUEUE_SEAMS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "shim/queue/cluster_event.h"
#include "shim/queue/queued_pod.h"

namespace outboard::queue {

// What PreEnqueue says of a pod.
struct GateVerdict {
  enum class Kind {
    kPass,
    kGated,        // `plugin` keeps it out
    kUnavailable,  // no answer: the pod is parked for `host`
  };
  Kind kind = Kind::kPass;
  std::string plugin;
  std::string message;
  std::string host;
};

// PreEnqueue. Asked before a pod enters the active or the backoff queue, many pods at a time where
// many move.
//
// Threading: called by the queue, on its thread, and must not call the queue back.
class PreEnqueueGate {
 public:
  virtual ~PreEnqueueGate() = default;
  // One verdict for each pod, in order.
  virtual std::vector<GateVerdict> Judge(absl::Span<const QueuedPod* const> pods,
                                         absl::Time now) = 0;
  // Whether the pod is certainly kept out until SchedulingQueue::Release: then nobody has to judge
  // meanwhile what helps it.
  virtual bool Holds(const QueuedPod& pod) const { return false; }
};

// Hosts that judge themselves which events help which of the pods that their plugins rejected. The
// queue moves such a pod on no event; it says that the pod waits, and hears by Wake.
//
// Threading: called by the queue, on its thread, and must not call the queue back.
class HintJudge {
 public:
  virtual ~HintJudge() = default;
  // Whether the pod's hosts know, or will be told of, every event from number `since` on.
  virtual bool Judges(const kube::PodObject& pod, uint64_t since) = 0;
  // The pod waits, for its rejectors as they are now, since `pod.judged_since`.
  virtual void OnWaiting(const QueuedPod& pod) = 0;
  // A pod of which OnWaiting told waits no more.
  virtual void OnNotWaiting(const QueuedPod& pod) = 0;
};

// Told of every move; for metrics.
class QueueObserver {
 public:
  virtual ~QueueObserver() = default;
  // queue_incoming_pods_total{queue="active|backoff|unschedulable", event}; "parked" is ours.
  virtual void OnIncoming(absl::string_view queue, absl::string_view event) = 0;
  // unschedulable_pods{plugin, profile} rises or falls by one.
  virtual void OnUnschedulableReason(const std::string& plugin, const std::string& profile,
                                     int delta) = 0;
};

}  // namespace outboard::queue

#endif  // OUTBOARD_SHIM_QUEUE_QUEUE_SEAMS_H_
