// The pods that wait for a node, in the order of their turns.
#ifndef OUTBOARD_SHIM_QUEUE_SCHEDULING_QUEUE_H_
#define OUTBOARD_SHIM_QUEUE_SCHEDULING_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "shim/kube/objects.h"
#include "shim/queue/cluster_event.h"
#include "shim/queue/pod_heap.h"
#include "shim/queue/queue_seams.h"
#include "shim/queue/queued_pod.h"

namespace outboard::queue {

struct QueueOptions {
  absl::Duration initial_backoff = absl::Seconds(1);
  absl::Duration max_backoff = absl::Seconds(10);  // zero disables backoff
  absl::Duration max_in_unschedulable = absl::Minutes(5);
};

struct QueueCounts {
  size_t active = 0;
  size_t backoff = 0;  // both backoff queues
  size_t unschedulable = 0;
  size_t gated = 0;
  size_t parked = 0;
  size_t in_flight = 0;
  size_t recording = 0;  // pods in flight for which events are recorded
};

// kube-scheduler's scheduling queue (backend/queue, v1.36) on a single thread and a given clock.
//
// A pod's way: Add → active → Pop → in flight, and from there exactly one of
// - Forget: it is bound, or deleted;
// - AddUnschedulable: it was rejected, or failed;
// - Park: its host is unavailable.
// Each of these implies Done. As upstream's, Done ends the recording of the attempt's events, and
// may come earlier. Active order: sort key (unsigned bytes, smaller first; by default priority,
// higher first), then queueing time, then arrival.
//
// Threading: thread-compatible; the scheduling thread. Never waits, logs or reads a clock; calls
// only its seams.
// Lifetime: seams outlive the queue and may be null (no gate, no delegate: every registered event
// counts, no observer). A QueuedPod pointer is valid until the pod is forgotten; for a popped pod,
// until its attempt ends.
// Errors: calls about unknown pods do nothing, or return false.
class SchedulingQueue {
 public:
  SchedulingQueue(QueueOptions options, absl::Time now, PreEnqueueGate* gate = nullptr,
                  QueueingHintDelegate* delegate = nullptr, QueueObserver* observer = nullptr);
  ~SchedulingQueue();
  SchedulingQueue(const SchedulingQueue&) = delete;
  SchedulingQueue& operator=(const SchedulingQueue&) = delete;

  // Per plugin of a profile, the events that may help pods that it rejected. Replaces the profile's
  // old events. Without events, only an update of the pod itself and the flush help.
  using WakeUpEvents = absl::flat_hash_map<std::string, std::vector<ClusterEvent>>;
  void SetWakeUpEvents(const std::string& profile, WakeUpEvents events);

  // Adds a new pod, or updates a known one.
  void Add(kube::PodPtr pod, absl::Time now) { AddAll({&pod, 1}, now); }
  // Many at once, with one call of the gate.
  void AddAll(absl::Span<const kube::PodPtr> pods, absl::Time now);
  // A pod changed. `events` says how (cache/cluster_events.h); without events, only the object is
  // replaced. A known resource version is ignored. An unknown pod is added.
  void Update(kube::PodPtr pod, absl::Span<const ClusterEvent> events, absl::Time now);
  // A pod was deleted or bound. In flight, it stays until its attempt ends, marked `deleted`.
  void Delete(const std::string& uid);

  // The next pod, now in flight; null if none. If none is active, takes pods in backoff early.
  QueuedPod* Pop(absl::Time now);
  // The first `count` pods of the active queue, in order.
  std::vector<const QueuedPod*> Next(size_t count) const { return active_.First(count); }
  // Takes a pod out of turn, as if popped; null if it cannot be tried now.
  QueuedPod* Take(const std::string& uid, absl::Time now);
  // Ends the recording of events for this attempt (it is past Permit). Only for a pod in flight.
  void Done(const std::string& uid);
  // The attempt ended, and the pod needs no further attempt: it is bound, or deleted.
  void Forget(const std::string& uid);

  // Plugins that rejected an attempt; without any, the attempt failed with an error.
  struct Rejectors {
    absl::btree_set<std::string> unschedulable;
    absl::btree_set<std::string> pending;
    // PostFilter plugins that found no help. Events do not help them, but they may Activate the
    // pod.
    absl::btree_set<std::string> post_filter = {};
  };
  // The attempt ended without a node. The pod waits:
  // - for the end of its backoff, if a helpful event came during the attempt, or no plugin rejected
  //   the pod;
  // - not at all, if during the attempt an event came that helps a pending plugin;
  // - for an event, otherwise.
  // False: the pod was deleted meanwhile and is forgotten.
  bool AddUnschedulable(const std::string& uid, Rejectors rejectors, absl::Time now);
  // The attempt was not possible because a host is unavailable; it is not counted. False: as above.
  bool Park(const std::string& uid, const std::string& host, absl::Time now);
  // A host is back: the pods parked for it are requeued.
  void HostReturned(const std::string& host, absl::Time now);

  // Something happened in the cluster. `precheck`, if given, selects pods.
  using PodFilter = absl::FunctionRef<bool(const QueuedPod&)>;
  void MoveAllToActiveOrBackoff(const ClusterEvent& event, absl::Time now);
  void MoveAllToActiveOrBackoff(const ClusterEvent& event, PodFilter precheck, absl::Time now);

  // A host's queueing hint: an event helps a plugin that rejected the pod.
  struct Hint {
    std::string uid;
    std::string plugin;
    ClusterEvent event;
    uint64_t number = 0;  // the event's; 0: events since the attempt are unknown
  };
  // Moves pods that still wait. A pod that began to wait after the event is not moved by it.
  void ApplyHints(absl::Span<const Hint> hints, absl::Time now);
  // The gate no longer holds the pod: events help it from now on.
  void Release(const std::string& uid);
  // A profile's delegate changed or lost its state: retries the pods that waited for it.
  void DelegateReset(const std::string& profile, absl::Time now);
  // Whether a delegate needs an event: it may help a waiting pod or a pod in flight.
  bool IsEventRelevant(const ClusterEvent& event) const;
  // The same for an update of a pod.
  bool IsEventRelevant(const std::string& uid) const;
  // Numbers an event that is sent to a delegate.
  uint64_t TakeEventNumber() { return event_clock_++; }
  uint64_t next_event_number() const { return event_clock_; }
  // The first event that a current attempt needs.
  uint64_t EventsNeededFrom() const;

  // For a cache that skips attempts (PreEnqueueGate::IgnoresEvents): requeues waiting pods, at once
  // or after backoff.
  void TryAgain(absl::Span<const std::string> uids, absl::Time now);

  // Tries these pods at once, whatever rejected them. A pod in flight is tried again after its
  // attempt and a backoff. With `plugin`, only pods that this plugin rejected.
  void Activate(absl::Span<const std::string> uids, absl::Time now,
                absl::string_view plugin = absl::string_view());
  // Calls the gate again for gated pods.
  void RecheckGates(absl::Span<const std::string> uids, absl::Time now);
  void RecheckGates(PodFilter which, absl::Time now);

  // Orders a pod by `key`; empty: by priority again.
  void SetSortKey(const std::string& uid, std::string key);
  // The key of pods without their own.
  static std::string DefaultSortKey(int32_t priority);

  // Ends backoffs (on whole seconds) and moves pods that were unschedulable for too long (every 30
  // s). Cheap when nothing is due.
  void FlushDue(absl::Time now);
  // When FlushDue is due next; InfiniteFuture if never.
  absl::Time NextWakeup() const;

  // Whether Pop would return a pod.
  bool HasNext() const { return !active_.empty() || !backoff_.empty(); }
  const QueuedPod* Find(const std::string& uid) const;
  QueueCounts counts() const;
  void ForEach(absl::FunctionRef<void(const QueuedPod&)> visit) const;
  // The events recorded for pods in flight: each kind once, however often it happened.
  void ForEachRecordedEvent(absl::FunctionRef<void(const ClusterEvent&)> visit) const;
  // When the pod's backoff ends; InfinitePast: no backoff.
  absl::Time BackoffEnd(QueuedPod& pod) const;

 private:
  enum class Strategy { kSkip, kAfterBackoff, kImmediately };
  // A pod on its way into the active or the backoff queue, before the gate.
  struct Move {
    QueuedPod* pod;
    bool to_backoff;
  };

  QueuedPod* FindMutable(const std::string& uid);
  QueuedPod* BeginAttempt(QueuedPod& pod, absl::Time now);
  void Leave(QueuedPod& pod);
  void EnterActive(QueuedPod& pod, absl::string_view event, absl::Time now);
  void EnterBackoff(QueuedPod& pod, absl::string_view event, absl::Time now);
  void EnterUnschedulable(QueuedPod& pod, absl::string_view event, uint64_t delegated_since,
                          absl::Time now);
  void EnterParked(QueuedPod& pod, const std::string& host, absl::string_view event,
                   absl::Time now);
  std::vector<PreEnqueueResult> RunPreEnqueue(const std::vector<Move>& moves, absl::Time now) const;
  void EnterGated(QueuedPod& pod, const PreEnqueueResult& verdict, absl::string_view event,
                  absl::Time now);
  void Requeue(const std::vector<Move>& moves, absl::string_view event, absl::Time now);
  void RequeueOne(QueuedPod& pod, Strategy strategy, absl::string_view event, absl::Time now);
  bool IsBackingOff(QueuedPod& pod, absl::Time now) const;
  bool IsOfInterest(const ClusterEvent& event) const;
  bool PluginMatches(const std::string& profile, const std::string& plugin,
                     const ClusterEvent& event) const;
  Strategy WorthRequeuing(const QueuedPod& pod, const ClusterEvent& event, bool about_itself) const;
  Strategy StrategyAfterAttempt(const QueuedPod& pod, bool delegated) const;
  std::vector<QueuedPod*> Candidates(const ClusterEvent& event) const;
  bool AnyProfileMatches(const std::string& plugin, const ClusterEvent& event) const;
  void MoveMatching(std::vector<QueuedPod*> pods, const ClusterEvent& event, absl::Time now);
  void RecordEvent(const ClusterEvent& event);
  void StopRecording(QueuedPod& pod);
  void NoteRejectors(const QueuedPod& pod, int delta);
  void BeginWaiting(QueuedPod& pod, uint64_t delegated_since);
  void EndWaiting(QueuedPod& pod);
  void IndexRejectors(QueuedPod& pod, bool insert);
  void SetPod(QueuedPod& info, kube::PodPtr pod);
  void FlushBackoff(absl::Time now);
  void FlushUnschedulable(absl::Time now);
  void UpdateWaiting(QueuedPod& info, absl::Span<const ClusterEvent> events, absl::Time now);
  void Incoming(absl::string_view queue, absl::string_view event) const;
  void Erase(QueuedPod& info);
  void Reorder(QueuedPod& info);

  const QueueOptions options_;
  PreEnqueueGate* const gate_;
  QueueingHintDelegate* const delegate_;
  QueueObserver* const observer_;

  absl::flat_hash_map<std::string, std::unique_ptr<QueuedPod>> pods_;
  PodHeap<ActiveOrder> active_;
  PodHeap<BackoffOrder> backoff_;
  PodHeap<BackoffOrder> error_backoff_;
  // Pods in kUnschedulable and kGated by rejecting plugin, so that an event costs only the pods it
  // can help; of those that a host evaluates only their number.
  absl::flat_hash_map<std::string, absl::flat_hash_set<QueuedPod*>> by_rejector_;
  absl::flat_hash_map<std::string, size_t> delegated_rejectors_;
  size_t unschedulable_ = 0;
  size_t gated_ = 0;
  size_t in_flight_ = 0;
  absl::flat_hash_map<std::string, absl::flat_hash_set<QueuedPod*>> parked_;
  uint64_t next_sequence_ = 1;

  absl::flat_hash_map<std::string, WakeUpEvents> wake_up_;
  // Events since the oldest recording attempt: the last time of each kind is enough for a replay.
  absl::flat_hash_map<ClusterEvent, uint64_t> recorded_;
  absl::btree_multiset<uint64_t> recording_since_;
  uint64_t event_clock_ = 1;

  absl::Time next_backoff_flush_;
  absl::Time next_unschedulable_flush_;
};

}  // namespace outboard::queue

#endif  // OUTBOARD_SHIM_QUEUE_SCHEDULING_QUEUE_H_
