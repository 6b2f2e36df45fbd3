// Queueing hints: what hosts that evaluate them receive, and what they answer.
#ifndef OUTBOARD_SHIM_SCHEDULER_QUEUEING_HINTS_H_
#define OUTBOARD_SHIM_SCHEDULER_QUEUEING_HINTS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/time/time.h"
#include "outboard/v1beta1/cluster_state.pb.h"
#include "outboard/v1beta1/queueing_hint.pb.h"
#include "shim/kube/objects.h"
#include "shim/queue/cluster_event.h"
#include "shim/queue/queue_seams.h"
#include "shim/queue/queued_pod.h"
#include "shim/scheduler/push_results.h"

namespace outboard::scheduler {

class HostCalls;
struct HostRecord;
struct SchedulerState;

// What one host has still to receive: pods that began or ceased to wait, and events, since the last
// message. Bounded by the number of pods, and by kMaxEvents.
//
// Threading: thread-compatible. Lifetime: a value.
// Errors: `overflowed`: events were lost; every waiting pod has to be retried.
class QueueingHintBuffer {
 public:
  static constexpr size_t kMaxEvents = 8192;

  void Waits(const queue::QueuedPod& pod);
  void WaitsNoMore(const std::string& uid) { pods_[uid] = std::nullopt; }
  void Happened(v1beta1::QueueEvent event);

  bool empty() const { return pods_.empty() && events_.empty() && !overflowed_; }
  bool overflowed() const { return overflowed_; }
  // Moves the contents into a message.
  void TakeInto(uint64_t events_needed_from, v1beta1::SyncRequest* request);
  void Clear();

 private:
  absl::flat_hash_map<std::string, std::optional<v1beta1::UnschedulablePod>> pods_;
  std::vector<v1beta1::QueueEvent> events_;
  bool overflowed_ = false;
};

// kube-scheduler evaluates hints at the moment of the event. Here the host's answer arrives a
// moment later, and another pod may be popped in between. In kube-scheduler the same happens if the
// event itself arrives a moment later. No event is lost:
// - a pod that begins to wait names the first event that its attempt may have missed;
// - the host keeps events as long as an attempt is in flight;
// - if a host, a stream or a message may have been lost, every waiting pod is retried.
//
// Threading: the scheduling thread.
class QueueingHints final : public queue::QueueingHintDelegate {
 public:
  QueueingHints(SchedulerState* state, HostCalls* host_calls)
      : state_(*state), host_calls_(*host_calls) {}

  static v1beta1::QueueEvent AboutPod(const std::string& uid);
  static v1beta1::QueueEvent AboutNode(const std::string& name);
  static v1beta1::QueueEvent AboutObject(const v1beta1::ClusterObject& object);

  // Adds an event to the buffers of the hosts. Must follow the change of the cluster state at once:
  // the event has to travel with the change, because the host compares its cache before and after.
  void PublishEvent(const queue::ClusterEvent& event, v1beta1::QueueEvent about);
  void PublishAssumedPodDelete(const kube::PodObject& pod);
  void PublishNominationEnded(const kube::PodObject& pod);
  // Sends what no call has carried.
  void SendHints(absl::Time now);
  // Requeues the pods that a host's hints name. If a hint names another host's plugin or an event
  // that was not sent, the push is refused; its other hints count.
  PushEnd TakeHints(const std::string& host_name, const v1beta1::QueueHints& hints, absl::Time now);
  // Another instance took the host's place, or the host became unavailable.
  void OnHostSet(HostRecord* host);

  // queue::QueueingHintDelegate:
  bool EvaluatesEvents(const kube::PodObject& pod, uint64_t since) override;
  void OnWaiting(const queue::QueuedPod& pod) override;
  void OnNotWaiting(const queue::QueuedPod& pod) override;

 private:
  SchedulerState& state_;
  HostCalls& host_calls_;
  // Kinds of events that hosts have received.
  absl::flat_hash_set<queue::ClusterEvent> announced_;
};

}  // namespace outboard::scheduler

#endif  // OUTBOARD_SHIM_SCHEDULER_QUEUEING_HINTS_H_
