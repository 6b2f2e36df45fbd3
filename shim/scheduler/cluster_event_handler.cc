#include "shim/scheduler/cluster_event_handler.h"

#include <glog/logging.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "shim/cache/cluster_events.h"
#include "shim/clock.h"

namespace outboard::scheduler {
namespace {

using queue::QueuedPod;

// Measures the handling of an informer's event, under each label that kube-scheduler gives it;
// without a label it is not measured.
class EventTimer {
 public:
  explicit EventTimer(Observer* observer) : observer_(observer), began_(SteadyNow()) {}
  ~EventTimer() {
    const absl::Duration elapsed = SteadyNow() - began_;
    for (const std::string& label : labels_) observer_->OnEventHandled(label, elapsed);
  }
  EventTimer(const EventTimer&) = delete;
  EventTimer& operator=(const EventTimer&) = delete;

  void Is(absl::string_view label) { labels_.emplace_back(label); }

 private:
  Observer* const observer_;
  const absl::Time began_;
  absl::InlinedVector<std::string, 2> labels_;
};

// kube-scheduler's label for the meaning of a pod event.
absl::string_view EventLabel(cache::PodOutcome::Kind kind) {
  switch (kind) {
    case cache::PodOutcome::Kind::kAddedPending:
      return queue::kUnscheduledPodAdd;
    case cache::PodOutcome::Kind::kUpdatedPending:
      return queue::kUnscheduledPodUpdate;
    case cache::PodOutcome::Kind::kUpdatedAssigned:
      return "AssignedPodUpdate";
    default:
      return "AssignedPodAdd";
  }
}

// The pod was nominated to a node, and no longer is.
bool NominationEnded(const kube::PodObject& before, const kube::PodObject& after) {
  return !before.pod.nominated_node_name().empty() &&
         before.pod.nominated_node_name() != after.pod.nominated_node_name();
}

}  // namespace

void ClusterEventHandler::OnNodeUpsert(const kube::NodePtr& node, absl::Time now) {
  EventTimer timer(state_.observer);
  const cache::NodeOutcome outcome = state_.cluster.UpsertNode(node);
  switch (outcome.kind) {
    case cache::NodeOutcome::Kind::kAdded:
    case cache::NodeOutcome::Kind::kReplaced:
      timer.Is("NodeAdd");
      hints_.PublishEvent(queue::NodeEvent(queue::kAdd), QueueingHints::AboutNode(node->key()));
      state_.queue.MoveAllToActiveOrBackoff(queue::NodeEvent(queue::kAdd), now);
      break;
    case cache::NodeOutcome::Kind::kUpdated: {
      const std::vector<queue::ClusterEvent> events = cache::NodeUpdateEvents(*outcome.old, *node);
      for (const queue::ClusterEvent& event : events) timer.Is(event.Label());
      for (const queue::ClusterEvent& event : events)
        hints_.PublishEvent(event, QueueingHints::AboutNode(node->key()));
      for (const queue::ClusterEvent& event : events)
        state_.queue.MoveAllToActiveOrBackoff(event, now);
      break;
    }
    default:
      break;
  }
}

void ClusterEventHandler::OnNodeDelete(const std::string& name, absl::Time now) {
  EventTimer timer(state_.observer);
  timer.Is("NodeDelete");
  state_.cluster.RemoveNode(name);
  hints_.PublishEvent(queue::NodeEvent(queue::kDelete), QueueingHints::AboutNode(name));
  state_.queue.MoveAllToActiveOrBackoff(queue::NodeEvent(queue::kDelete), now);
  waits_.OnNodeDelete(name, now);
}

void ClusterEventHandler::OnPodUpsert(const kube::PodPtr& pod, absl::Time now) {
  EventTimer timer(state_.observer);
  const cache::PodOutcome outcome = state_.cluster.UpsertPod(pod);
  preemption_.ReleasePreemptorsOf(pod->uid());
  if (outcome.replaced != nullptr) preemption_.ReleasePreemptorsOf(outcome.replaced->uid());
  if (outcome.kind != cache::PodOutcome::Kind::kIgnored) timer.Is(EventLabel(outcome.kind));
  cache::PodOutcome removed;
  if (outcome.replaced != nullptr) {
    removed.kind = cache::PodOutcome::Kind::kRemoved;
    removed.old = outcome.replaced;
    removed.old_node = outcome.replaced->pod.node_name();
    PublishPodDelete(removed);
  }
  PublishPodUpsert(outcome, *pod);
  if (outcome.replaced != nullptr) OnPodRemoved(removed, outcome.replaced->uid(), now);
  if (outcome.kind == cache::PodOutcome::Kind::kUpdatedPending) UpdateNomination(*pod, outcome);
  switch (outcome.kind) {
    case cache::PodOutcome::Kind::kIgnored:
      break;
    case cache::PodOutcome::Kind::kAddedPending:
      OnPendingPodAdded(outcome, pod, now);
      break;
    case cache::PodOutcome::Kind::kUpdatedPending:
      for (const queue::ClusterEvent& event : cache::PodUpdateEvents(*outcome.old, *pod)) {
        if (event.actions != queue::kUpdate) timer.Is(event.Label());
      }
      OnPendingPodUpdated(outcome, pod, now);
      break;
    case cache::PodOutcome::Kind::kUpdatedAssigned:
      for (const queue::ClusterEvent& event : cache::PodUpdateEvents(*outcome.old, *pod)) {
        timer.Is(event.Label());
        state_.queue.MoveAllToActiveOrBackoff(event, now);
      }
      break;
    case cache::PodOutcome::Kind::kAddedAssigned:
    case cache::PodOutcome::Kind::kBound:
    case cache::PodOutcome::Kind::kConfirmed:
    case cache::PodOutcome::Kind::kMoved:
      OnPodAssigned(pod, now);
      break;
    case cache::PodOutcome::Kind::kRemoved:
      OnPodRemoved(outcome, pod->uid(), now);
      break;
  }
}

void ClusterEventHandler::PublishPodUpsert(const cache::PodOutcome& outcome,
                                           const kube::PodObject& pod) {
  switch (outcome.kind) {
    case cache::PodOutcome::Kind::kIgnored:
    case cache::PodOutcome::Kind::kAddedPending:
      break;
    case cache::PodOutcome::Kind::kUpdatedPending:
      if (!state_.Places(pod) || state_.attempts.FindByPod(pod.uid()) != nullptr) break;
      if (state_.queue.IsEventRelevant(pod.uid())) {
        for (const queue::ClusterEvent& event : cache::PodUpdateEvents(*outcome.old, pod)) {
          hints_.PublishEvent(event, QueueingHints::AboutPod(pod.uid()));
        }
      }
      if (NominationEnded(*outcome.old, pod)) hints_.PublishNominationEnded(*outcome.old);
      break;
    case cache::PodOutcome::Kind::kUpdatedAssigned:
      for (const queue::ClusterEvent& event : cache::PodUpdateEvents(*outcome.old, pod)) {
        hints_.PublishEvent(event, QueueingHints::AboutPod(pod.uid()));
      }
      break;
    case cache::PodOutcome::Kind::kAddedAssigned:
    case cache::PodOutcome::Kind::kBound:
    case cache::PodOutcome::Kind::kConfirmed:
    case cache::PodOutcome::Kind::kMoved:
      hints_.PublishEvent(queue::AssignedPodAdd(), QueueingHints::AboutPod(pod.uid()));
      break;
    case cache::PodOutcome::Kind::kRemoved:
      PublishPodDelete(outcome);
      break;
  }
}

void ClusterEventHandler::PublishPodDelete(const cache::PodOutcome& outcome) {
  if (!outcome.old_node.empty()) {
    hints_.PublishAssumedPodDelete(*outcome.old);
  } else if (!outcome.old->pod.nominated_node_name().empty()) {
    hints_.PublishNominationEnded(*outcome.old);
  }
}

void ClusterEventHandler::UpdateNomination(const kube::PodObject& pod,
                                           const cache::PodOutcome& outcome) {
  // Nominations by other schedulers do not count.
  if (!state_.Places(pod) || state_.cluster.IsAssumed(pod.uid())) return;
  const std::string before = outcome.old == nullptr ? "" : outcome.old->pod.nominated_node_name();
  // Neither names a node: a nomination that the API server does not have yet stays.
  if (before.empty() && pod.pod.nominated_node_name().empty()) return;
  const uint32_t slot = state_.cluster.SlotOf(pod.pod.nominated_node_name());
  // Neither call can fail for a pending pod; an unknown node is not a nomination.
  if (slot == cache::ClusterState::kNoSlot) {
    state_.cluster.Unnominate(pod.uid()).IgnoreError();
  } else {
    state_.cluster.Nominate(pod.uid(), slot).IgnoreError();
  }
}

void ClusterEventHandler::OnPendingPodAdded(const cache::PodOutcome& outcome,
                                            const kube::PodPtr& pod, absl::Time now) {
  if (!state_.Places(*pod)) return;
  VLOG(3) << "Add event for unscheduled pod " << pod->key();
  state_.queue.Add(pod, now);
  // As in kube-scheduler, a new pod's nomination counts once the pod is in the active queue, or
  // changes.
  if (const QueuedPod* info = state_.queue.Find(pod->uid());
      info != nullptr && info->place != queue::Place::kGated) {
    UpdateNomination(*pod, outcome);
  }
  queue_calls_.UpdateSortKeys({&pod, 1}, now);
}

void ClusterEventHandler::OnPendingPodUpdated(const cache::PodOutcome& outcome,
                                              const kube::PodPtr& pod, absl::Time now) {
  if (Attempt* const attempt = state_.attempts.FindByPod(pod->uid())) {
    if (outcome.deletion_started) OnAssumedPodGone(attempt, now);
    return;
  }
  if (!state_.Places(*pod)) return;
  // The pod was bound, and this event is older: the event with its node is still to come.
  if (state_.cluster.IsAssumed(pod->uid())) return;
  // The pod has had its only attempt.
  if (state_.options.single_attempt && state_.queue.Find(pod->uid()) == nullptr) return;
  state_.queue.Update(pod, cache::PodUpdateEvents(*outcome.old, *pod), now);
  queue_calls_.UpdateSortKeys({&pod, 1}, now);
  if (NominationEnded(*outcome.old, *pod)) MoveAfterNomination(*outcome.old, now);
}

void ClusterEventHandler::MoveAfterNomination(const kube::PodObject& pod, absl::Time now) {
  const int32_t priority = pod.pod.priority();
  state_.queue.MoveAllToActiveOrBackoff(
      queue::AssignedPodDelete(),
      [priority](const QueuedPod& other) { return other.pod->pod.priority() <= priority; }, now);
}

void ClusterEventHandler::OnPodAssigned(const kube::PodPtr& pod, absl::Time now) {
  state_.queue.MoveAllToActiveOrBackoff(queue::AssignedPodAdd(), now);
  if (const Attempt* const attempt = state_.attempts.FindByPod(pod->uid())) {
    // While the pod waits at Permit, only another scheduler can have bound it.
    waits_.Reject(attempt->id, "pod was bound by another scheduler", now);
  }
  const QueuedPod* const queued = state_.queue.Find(pod->uid());
  if (queued != nullptr && queued->place != queue::Place::kInFlight)
    state_.observer->OnBoundElsewhere(*pod);
  state_.queue.Delete(pod->uid());
}

void ClusterEventHandler::OnPodDelete(const std::string& uid, absl::Time now) {
  // Until the outcome of an effect is known, hosts keep the pod.
  if (Attempt* const writing = binding_.FindWriting(uid); writing != nullptr) {
    writing->pod_gone = writing->deletion_is_due = true;
    return;
  }
  EventTimer timer(state_.observer);
  const cache::PodOutcome outcome = state_.cluster.RemovePod(uid);
  preemption_.ReleasePreemptorsOf(uid);
  if (outcome.kind == cache::PodOutcome::Kind::kRemoved) PublishPodDelete(outcome);
  timer.Is(outcome.old_node.empty() ? "UnschedulablePodDelete" : "AssignedPodDelete");
  if (outcome.kind == cache::PodOutcome::Kind::kRemoved) OnPodRemoved(outcome, uid, now);
}

void ClusterEventHandler::OnPodRemoved(const cache::PodOutcome& outcome, const std::string& uid,
                                       absl::Time now) {
  state_.queue.Delete(uid);
  if (Attempt* const attempt = state_.attempts.FindByPod(uid))
    return OnAssumedPodGone(attempt, now);
  if (!outcome.old_node.empty()) {
    state_.queue.MoveAllToActiveOrBackoff(queue::AssignedPodDelete(), now);
  } else if (outcome.old != nullptr && !outcome.old->pod.nominated_node_name().empty()) {
    MoveAfterNomination(*outcome.old, now);
  }
}

void ClusterEventHandler::OnAssumedPodGone(Attempt* attempt, absl::Time now) {
  if (!waits_.Reject(attempt->id, "pod is being deleted", now)) {
    // Its bind is under way and will fail. Its room is free as soon as no effect is under way.
    attempt->pod_gone = true;
    if (binding_.FindWriting(attempt->pod->uid()) == nullptr) failures_.Forget(attempt);
  }
  state_.queue.MoveAllToActiveOrBackoff(queue::AssignedPodDelete(), now);
}

void ClusterEventHandler::OnNamespaceUpsert(const kube::NamespacePtr& ns, absl::Time now) {
  state_.cluster.UpsertNamespace(ns);
}

void ClusterEventHandler::OnNamespaceDelete(const std::string& name, absl::Time now) {
  state_.cluster.RemoveNamespace(name);
}

void ClusterEventHandler::OnObjectUpsert(const kube::ClusterObjectPtr& object, absl::Time now) {
  HandleObjectEvent(state_.cluster.UpsertObject(object), *object, now);
}

void ClusterEventHandler::OnObjectDelete(const kube::ClusterObjectPtr& object, absl::Time now) {
  HandleObjectEvent(state_.cluster.RemoveObject(*object), *object, now);
}

// As kube-scheduler's AssumeCache, which reports claims when they are written.
void ClusterEventHandler::OnObjectWritten(const EffectEnd& end, absl::Time now) {
  if (end.object == nullptr) return;
  HandleObjectEvent(state_.cluster.AssumeObject(end.object, now), *end.object, now);
}

void ClusterEventHandler::HandleObjectEvent(const cache::ObjectOutcome& outcome,
                                            const kube::ClusterObject& object, absl::Time now) {
  const auto publish_and_move = [&](const kube::ClusterObject& of, queue::Action action) {
    const std::optional<queue::ClusterEvent> event = cache::ObjectEvent(of, action);
    if (!event.has_value()) return;
    hints_.PublishEvent(*event, QueueingHints::AboutObject(of.object));
    EventTimer timer(state_.observer);
    timer.Is(event->Label());
    state_.queue.MoveAllToActiveOrBackoff(*event, now);
  };
  switch (outcome.kind) {
    case cache::ObjectOutcome::Kind::kIgnored:
      return;
    case cache::ObjectOutcome::Kind::kAdded:
      return publish_and_move(object, queue::kAdd);
    case cache::ObjectOutcome::Kind::kUpdated:
      // As in kube-scheduler, also if nothing changed that hosts see.
      return publish_and_move(object, queue::kUpdate);
    case cache::ObjectOutcome::Kind::kReplaced:
      publish_and_move(*outcome.old, queue::kDelete);
      return publish_and_move(object, queue::kAdd);
    case cache::ObjectOutcome::Kind::kRemoved:
      return publish_and_move(*outcome.old, queue::kDelete);
  }
}

}  // namespace outboard::scheduler
