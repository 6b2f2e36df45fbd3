// What the scheduling queue asks its surroundings, and reports to them.
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

// The result of PreEnqueue for a pod.
struct PreEnqueueResult {
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

// PreEnqueue. Called before a pod enters the active or the backoff queue, with all pods that move
// at once.
//
// Threading: the queue calls it on its thread; it must not call the queue back.
class PreEnqueueGate {
 public:
  virtual ~PreEnqueueGate() = default;
  // One result per pod, in order.
  virtual std::vector<PreEnqueueResult> PreEnqueue(absl::Span<const QueuedPod* const> pods,
                                                   absl::Time now) = 0;
  // Whether the pod certainly stays out until SchedulingQueue::Release. Until then no host
  // evaluates events for it.
  virtual bool IgnoresEvents(const QueuedPod& pod) const { return false; }
};

// Hosts that decide themselves which events help the pods that their plugins rejected. Events do
// not move such a pod in the queue: the queue reports that the pod waits, and ApplyHints moves it.
//
// Threading: the queue calls it on its thread; it must not call the queue back.
class QueueingHintDelegate {
 public:
  virtual ~QueueingHintDelegate() = default;
  // Whether the pod's hosts know, or will receive, every event from number `since` on.
  virtual bool EvaluatesEvents(const kube::PodObject& pod, uint64_t since) = 0;
  // The pod waits, with its current rejectors, since `pod.delegated_since`.
  virtual void OnWaiting(const QueuedPod& pod) = 0;
  // A pod that OnWaiting reported no longer waits.
  virtual void OnNotWaiting(const QueuedPod& pod) = 0;
};

// Receives every move; for metrics.
class QueueObserver {
 public:
  virtual ~QueueObserver() = default;
  // A pod came into the queue, or changed in it.
  virtual void OnPod(const kube::PodObject& pod) {}
  // A pod left the queue: it was bound or deleted, or its profile is gone.
  virtual void OnPodLeft(const kube::PodObject& pod) {}
  // queue_incoming_pods_total{queue="active|backoff|unschedulable", event}; "parked" is ours.
  virtual void OnIncoming(absl::string_view queue, absl::string_view event) = 0;
  // unschedulable_pods{plugin, profile} rises or falls by one.
  virtual void OnUnschedulableReason(const std::string& plugin, const std::string& profile,
                                     int delta) = 0;
};

}  // namespace outboard::queue

#endif  // OUTBOARD_SHIM_QUEUE_QUEUE_SEAMS_H_
