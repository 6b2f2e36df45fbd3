// The scheduler's ears: what informers tell.
#include <glog/logging.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "shim/cycle/cluster_events.h"
#include "shim/cycle/scheduler.h"
#include "shim/cycle/scheduler_attempt.h"

namespace outboard::cycle {
namespace {

using queue::QueuedPod;

// Measures how long what an informer told takes to be taken in, under each label that
// kube-scheduler gives it; without any it is not measured.
class EventTimer {
 public:
  explicit EventTimer(Observer* observer) : observer_(observer), began_(absl::Now()) {}
  ~EventTimer() {
    const absl::Duration elapsed = absl::Now() - began_;
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

// kube-scheduler's labels of what an informer's word about a pod meant.
absl::string_view EventLabel(PodOutcome::Kind kind) {
  switch (kind) {
    case PodOutcome::Kind::kAddedPending:
      return queue::kUnscheduledPodAdd;
    case PodOutcome::Kind::kUpdatedPending:
      return queue::kUnscheduledPodUpdate;
    case PodOutcome::Kind::kUpdatedAssigned:
      return "AssignedPodUpdate";
    default:
      return "AssignedPodAdd";
  }
}

// A node was kept in mind for the pod, and is no more.
bool NominationEnded(const kube::PodObject& before, const kube::PodObject& after) {
  return !before.pod.nominated_node_name().empty() &&
         before.pod.nominated_node_name() != after.pod.nominated_node_name();
}

}  // namespace

void Scheduler::OnNodeUpsert(const kube::NodePtr& node, absl::Time now) {
  EventTimer timer(observer_);
  const NodeOutcome outcome = cluster_.UpsertNode(node);
  switch (outcome.kind) {
    case NodeOutcome::Kind::kAdded:
    case NodeOutcome::Kind::kReplaced:
      timer.Is("NodeAdd");
      Announce(queue::NodeEvent(queue::kAdd), AboutNode(node->key()));
      queue_.MoveAllToActiveOrBackoff(queue::NodeEvent(queue::kAdd), now);
      break;
    case NodeOutcome::Kind::kUpdated: {
      const std::vector<queue::ClusterEvent> events = NodeUpdateEvents(*outcome.old, *node);
      for (const queue::ClusterEvent& event : events) timer.Is(event.Label());
      for (const queue::ClusterEvent& event : events) Announce(event, AboutNode(node->key()));
      for (const queue::ClusterEvent& event : events) queue_.MoveAllToActiveOrBackoff(event, now);
      break;
    }
    default:
      break;
  }
}

void Scheduler::OnNodeDelete(const std::string& name, absl::Time now) {
  EventTimer timer(observer_);
  timer.Is("NodeDelete");
  cluster_.RemoveNode(name);
  Announce(queue::NodeEvent(queue::kDelete), AboutNode(name));
  queue_.MoveAllToActiveOrBackoff(queue::NodeEvent(queue::kDelete), now);
  if (waiting_.size() == 0) return;
  // Pods that wait on it would be refused when their waits end well; by then others, who wait for
  // them, would have waited in vain, or be bound without them.
  std::vector<uint64_t> lost;
  for (const auto& [id, attempt] : attempts_) {
    if (attempt->node_name == name && waiting_.Waits(id)) lost.push_back(id);
  }
  absl::c_sort(lost);
  for (const uint64_t id : lost) {
    // One of them may have been given up with another.
    std::optional<WaitEnd> end = waiting_.Preempt(id, "", now);
    if (!end.has_value()) continue;
    end->message = absl::StrCat("node ", name, " is gone");
    EndWait(*end, now);
  }
}

void Scheduler::OnPodUpsert(const kube::PodPtr& pod, absl::Time now) {
  EventTimer timer(observer_);
  const PodOutcome outcome = cluster_.UpsertPod(pod);
  ReleasePreemptorsOf(pod->uid());
  if (outcome.replaced != nullptr) ReleasePreemptorsOf(outcome.replaced->uid());
  if (outcome.kind != PodOutcome::Kind::kIgnored) timer.Is(EventLabel(outcome.kind));
  PodOutcome removed;
  if (outcome.replaced != nullptr) {
    removed.kind = PodOutcome::Kind::kRemoved;
    removed.old = outcome.replaced;
    removed.old_node = outcome.replaced->pod.node_name();
    AnnounceRemoval(removed);
  }
  AnnounceUpsert(outcome, *pod);
  if (outcome.replaced != nullptr) OnPodRemoved(removed, outcome.replaced->uid(), now);
  if (outcome.kind == PodOutcome::Kind::kUpdatedPending) UpdateNomination(*pod, outcome);
  switch (outcome.kind) {
    case PodOutcome::Kind::kIgnored:
      break;
    case PodOutcome::Kind::kAddedPending:
      if (!HandlesProfile(pod->pod.scheduler_name())) break;
      VLOG(3) << "Add event for unscheduled pod " << pod->key();
      queue_.Add(pod, now);
      // As in kube-scheduler, a new pod's nomination counts once it is in the active queue, or
      // changes.
      if (const QueuedPod* info = queue_.Find(pod->uid());
          info != nullptr && info->place != queue::Place::kGated) {
        UpdateNomination(*pod, outcome);
      }
      UpdateSortKeys({&pod, 1}, now);
      break;
    case PodOutcome::Kind::kUpdatedPending:
      for (const queue::ClusterEvent& event : PodUpdateEvents(*outcome.old, *pod)) {
        if (event.actions != queue::kUpdate) timer.Is(event.Label());
      }
      OnPendingPodUpdated(outcome, pod, now);
      break;
    case PodOutcome::Kind::kUpdatedAssigned:
      for (const queue::ClusterEvent& event : PodUpdateEvents(*outcome.old, *pod)) {
        timer.Is(event.Label());
        queue_.MoveAllToActiveOrBackoff(event, now);
      }
      break;
    case PodOutcome::Kind::kAddedAssigned:
    case PodOutcome::Kind::kBound:
    case PodOutcome::Kind::kConfirmed:
    case PodOutcome::Kind::kMoved:
      OnPodAssigned(pod, now);
      break;
    case PodOutcome::Kind::kRemoved:
      OnPodRemoved(outcome, pod->uid(), now);
      break;
  }
}

void Scheduler::AnnounceUpsert(const PodOutcome& outcome, const kube::PodObject& pod) {
  switch (outcome.kind) {
    case PodOutcome::Kind::kIgnored:
    case PodOutcome::Kind::kAddedPending:
      break;
    case PodOutcome::Kind::kUpdatedPending:
      if (!HandlesProfile(pod.pod.scheduler_name()) || attempt_of_pod_.contains(pod.uid())) break;
      if (queue_.MustTell(pod.uid())) {
        for (const queue::ClusterEvent& event : PodUpdateEvents(*outcome.old, pod)) {
          Announce(event, AboutPod(pod.uid()));
        }
      }
      if (NominationEnded(*outcome.old, pod)) AnnounceNominationEnded(*outcome.old);
      break;
    case PodOutcome::Kind::kUpdatedAssigned:
      for (const queue::ClusterEvent& event : PodUpdateEvents(*outcome.old, pod)) {
        Announce(event, AboutPod(pod.uid()));
      }
      break;
    case PodOutcome::Kind::kAddedAssigned:
    case PodOutcome::Kind::kBound:
    case PodOutcome::Kind::kConfirmed:
    case PodOutcome::Kind::kMoved:
      Announce(queue::AssignedPodAdd(), AboutPod(pod.uid()));
      break;
    case PodOutcome::Kind::kRemoved:
      AnnounceRemoval(outcome);
      break;
  }
}

void Scheduler::AnnounceRemoval(const PodOutcome& outcome) {
  if (!outcome.old_node.empty()) {
    AnnouncePlaceGivenBack(*outcome.old);
  } else if (!outcome.old->pod.nominated_node_name().empty()) {
    AnnounceNominationEnded(*outcome.old);
  }
}

void Scheduler::UpdateNomination(const kube::PodObject& pod, const PodOutcome& outcome) {
  // Other schedulers keep their nominations to themselves.
  if (!HandlesProfile(pod.pod.scheduler_name()) || cluster_.IsAssumed(pod.uid())) return;
  const std::string before = outcome.old == nullptr ? "" : outcome.old->pod.nominated_node_name();
  // Neither names one: a nomination that the API server has not heard of yet stays.
  if (before.empty() && pod.pod.nominated_node_name().empty()) return;
  const uint32_t slot = cluster_.SlotOf(pod.pod.nominated_node_name());
  // Neither can fail on a pending pod; a node that is not there is nobody's nomination.
  if (slot == ClusterState::kNoSlot) {
    cluster_.Unnominate(pod.uid()).IgnoreError();
  } else {
    cluster_.Nominate(pod.uid(), slot).IgnoreError();
  }
}

void Scheduler::OnPodAssigned(const kube::PodPtr& pod, absl::Time now) {
  queue_.MoveAllToActiveOrBackoff(queue::AssignedPodAdd(), now);
  if (const auto it = attempt_of_pod_.find(pod->uid()); it != attempt_of_pod_.end()) {
    // While it waits at Permit, only somebody else can have bound it.
    if (auto end = waiting_.Reject(it->second, "", "pod was bound by another scheduler", now))
      EndWait(*end, now);
  }
  queue_.Delete(pod->uid());
}

void Scheduler::OnPendingPodUpdated(const PodOutcome& outcome, const kube::PodPtr& pod,
                                    absl::Time now) {
  if (!HandlesProfile(pod->pod.scheduler_name())) return;
  if (attempt_of_pod_.contains(pod->uid())) {
    if (outcome.deletion_started) OnAssumedPodGone(pod->uid(), now);
    return;
  }
  // It was bound, and this is older: the news of its node is still to come.
  if (cluster_.IsAssumed(pod->uid())) return;
  // One that had its only attempt is not tried again.
  if (options_.single_attempt && queue_.Find(pod->uid()) == nullptr) return;
  queue_.Update(pod, PodUpdateEvents(*outcome.old, *pod), now);
  UpdateSortKeys({&pod, 1}, now);
  if (NominationEnded(*outcome.old, *pod)) {
    // The node it was kept in mind for is free for pods that had to count it.
    const int32_t priority = outcome.old->pod.priority();
    queue_.MoveAllToActiveOrBackoff(
        queue::AssignedPodDelete(),
        [priority](const QueuedPod& other) { return other.pod->pod.priority() <= priority; }, now);
  }
}

void Scheduler::OnPodDelete(const std::string& uid, absl::Time now) {
  // Until it is known what became of an effect, hosts go on to count with it.
  if (Attempt* const writing = FindWriting(uid); writing != nullptr) {
    writing->pod_gone = writing->deletion_is_due = true;
    return;
  }
  EventTimer timer(observer_);
  const PodOutcome outcome = cluster_.RemovePod(uid);
  ReleasePreemptorsOf(uid);
  if (outcome.kind == PodOutcome::Kind::kRemoved) AnnounceRemoval(outcome);
  timer.Is(outcome.old_node.empty() ? "UnschedulablePodDelete" : "AssignedPodDelete");
  if (outcome.kind == PodOutcome::Kind::kRemoved) OnPodRemoved(outcome, uid, now);
}

void Scheduler::OnPodRemoved(const PodOutcome& outcome, const std::string& uid, absl::Time now) {
  queue_.Delete(uid);
  if (attempt_of_pod_.contains(uid)) return OnAssumedPodGone(uid, now);
  if (!outcome.old_node.empty()) {
    queue_.MoveAllToActiveOrBackoff(queue::AssignedPodDelete(), now);
  } else if (outcome.old != nullptr && !outcome.old->pod.nominated_node_name().empty()) {
    const int32_t priority = outcome.old->pod.priority();
    queue_.MoveAllToActiveOrBackoff(
        queue::AssignedPodDelete(),
        [priority](const QueuedPod& other) { return other.pod->pod.priority() <= priority; }, now);
  }
}

void Scheduler::OnAssumedPodGone(const std::string& uid, absl::Time now) {
  Attempt& attempt = *attempts_[attempt_of_pod_[uid]];
  if (auto end = waiting_.Reject(attempt.id, "", "pod is being deleted", now)) {
    EndWait(*end, now);
  } else {
    // Its bind is under way and will fail; its room is free as soon as no effect is under way.
    attempt.pod_gone = true;
    if (FindWriting(uid) == nullptr) Forget(&attempt);
  }
  queue_.MoveAllToActiveOrBackoff(queue::AssignedPodDelete(), now);
}

void Scheduler::OnNamespaceUpsert(const kube::NamespacePtr& ns, absl::Time now) {
  cluster_.UpsertNamespace(ns);
}
void Scheduler::OnNamespaceDelete(const std::string& name, absl::Time now) {
  cluster_.RemoveNamespace(name);
}

void Scheduler::OnObjectUpsert(const kube::ClusterObjectPtr& object, absl::Time now) {
  TellOfObject(cluster_.UpsertObject(object), *object, now);
}

void Scheduler::OnObjectDelete(const kube::ClusterObjectPtr& object, absl::Time now) {
  TellOfObject(cluster_.RemoveObject(*object), *object, now);
}

// As kube-scheduler's AssumeCache, whose news of claims come when they were written.
void Scheduler::TakeWritten(const EffectEnd& end, absl::Time now) {
  if (end.object == nullptr) return;
  TellOfObject(cluster_.UpsertWritten(end.object, now), *end.object, now);
}

void Scheduler::TellOfObject(const ObjectOutcome& outcome, const kube::ClusterObject& object,
                             absl::Time now) {
  const auto tell = [&](const kube::ClusterObject& of, queue::Action action) {
    const std::optional<queue::ClusterEvent> event = ObjectEvent(of, action);
    if (!event.has_value()) return;
    Announce(*event, AboutObject(of.object));
    EventTimer timer(observer_);
    timer.Is(event->Label());
    queue_.MoveAllToActiveOrBackoff(*event, now);
  };
  switch (outcome.kind) {
    case ObjectOutcome::Kind::kIgnored:
      return;
    case ObjectOutcome::Kind::kAdded:
      return tell(object, queue::kAdd);
    case ObjectOutcome::Kind::kUpdated:
      // Also where nothing changed that hosts see, as kube-scheduler does.
      return tell(object, queue::kUpdate);
    case ObjectOutcome::Kind::kReplaced:
      tell(*outcome.old, queue::kDelete);
      return tell(object, queue::kAdd);
    case ObjectOutcome::Kind::kRemoved:
      return tell(*outcome.old, queue::kDelete);
  }
}

}  // namespace outboard::cycle
