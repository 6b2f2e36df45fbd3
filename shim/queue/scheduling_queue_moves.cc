// How pods move from one place of the queue to another, and which events move them.
#include <algorithm>
#include <utility>

#include "shim/queue/scheduling_queue.h"

namespace outboard::queue {
namespace {

bool AnyMatches(const std::vector<ClusterEvent>& registered, const ClusterEvent& event) {
  return std::any_of(registered.begin(), registered.end(),
                     [&](const ClusterEvent& r) { return Matches(r, event); });
}

}  // namespace

void SchedulingQueue::SetWakeUpEvents(const std::string& profile, WakeUpEvents events) {
  wake_up_[profile] = std::move(events);
}

void SchedulingQueue::Leave(QueuedPod& pod) {
  switch (pod.place) {
    case Place::kNone:
      break;
    case Place::kActive:
      active_.Remove(pod);
      break;
    case Place::kBackoff:
      backoff_.Remove(pod);
      break;
    case Place::kErrorBackoff:
      error_backoff_.Remove(pod);
      break;
    case Place::kUnschedulable:
      --unschedulable_;
      EndWaiting(pod);
      break;
    case Place::kGated:
      --gated_;
      EndWaiting(pod);
      break;
    case Place::kParked: {
      const auto it = parked_.find(pod.parked_host);
      it->second.erase(&pod);
      if (it->second.empty()) parked_.erase(it);
      pod.parked_host.clear();
      break;
    }
    case Place::kInFlight:
      --in_flight_;
      break;
  }
  pod.place = Place::kNone;
}

void SchedulingQueue::EnterActive(QueuedPod& pod, absl::string_view event, absl::Time now) {
  pod.place = Place::kActive;
  pod.last_transition = now;
  if (!pod.initial_attempt_time.has_value()) pod.initial_attempt_time = now;
  active_.Add(pod);
  Incoming("active", event);
}

void SchedulingQueue::EnterBackoff(QueuedPod& pod, absl::string_view event, absl::Time now) {
  BackoffEnd(pod);
  pod.last_transition = now;
  if (pod.has_rejectors()) {
    pod.place = Place::kBackoff;
    backoff_.Add(pod);
  } else {
    pod.place = Place::kErrorBackoff;
    error_backoff_.Add(pod);
  }
  Incoming("backoff", event);
}

void SchedulingQueue::EnterUnschedulable(QueuedPod& pod, absl::string_view event,
                                         uint64_t delegated_since, absl::Time now) {
  pod.place = Place::kUnschedulable;
  pod.last_transition = now;
  ++unschedulable_;
  BeginWaiting(pod, delegated_since);
  Incoming("unschedulable", event);
}

void SchedulingQueue::EnterGated(QueuedPod& pod, const PreEnqueueResult& verdict,
                                 absl::string_view event, absl::Time now) {
  // A pod that stays gated is not counted as incoming again.
  const bool was_here = pod.place == Place::kGated || pod.place == Place::kUnschedulable;
  Leave(pod);
  if (pod.unschedulable_plugins.insert(verdict.plugin).second &&
      pod.pending_plugins.count(verdict.plugin) == 0 && observer_ != nullptr) {
    observer_->OnUnschedulableReason(verdict.plugin, pod.pod->pod.scheduler_name(), +1);
  }
  pod.gating_plugin = verdict.plugin;
  pod.gate_message = verdict.message;
  pod.place = Place::kGated;
  if (!was_here) pod.last_transition = now;
  ++gated_;
  BeginWaiting(pod, event_clock_);
  if (!was_here) Incoming("unschedulable", event);
}

void SchedulingQueue::EnterParked(QueuedPod& pod, const std::string& host, absl::string_view event,
                                  absl::Time now) {
  pod.place = Place::kParked;
  pod.parked_host = host;
  pod.parked_since = now;
  pod.last_transition = now;
  parked_[host].insert(&pod);
  Incoming("parked", event);
}

void SchedulingQueue::BeginWaiting(QueuedPod& pod, uint64_t delegated_since) {
  pod.waiting_since = event_clock_;
  pod.delegated_since = delegated_since;
  pod.delegated = delegate_ != nullptr && delegate_->EvaluatesEvents(*pod.pod, delegated_since);
  pod.held = pod.delegated && gate_ != nullptr && gate_->IgnoresEvents(pod);
  if (pod.held) pod.delegated = false;
  IndexRejectors(pod, /*insert=*/true);
  if (pod.delegated) delegate_->OnWaiting(pod);
}

void SchedulingQueue::EndWaiting(QueuedPod& pod) {
  IndexRejectors(pod, /*insert=*/false);
  if (pod.delegated) delegate_->OnNotWaiting(pod);
  pod.delegated = pod.held = false;
}

void SchedulingQueue::IndexRejectors(QueuedPod& pod, bool insert) {
  if (pod.held) return;
  const auto index = [&](const std::string& plugin) {
    if (pod.delegated) {
      size_t& count = delegated_rejectors_[plugin];
      count += insert ? 1 : -1;
      if (count == 0) delegated_rejectors_.erase(plugin);
      return;
    }
    if (insert) {
      by_rejector_[plugin].insert(&pod);
      return;
    }
    const auto it = by_rejector_.find(plugin);
    if (it == by_rejector_.end()) return;
    it->second.erase(&pod);
    if (it->second.empty()) by_rejector_.erase(it);
  };
  for (const std::string& plugin : pod.unschedulable_plugins) index(plugin);
  for (const std::string& plugin : pod.pending_plugins) index(plugin);
}

std::vector<PreEnqueueResult> SchedulingQueue::RunPreEnqueue(const std::vector<Move>& moves,
                                                             absl::Time now) const {
  std::vector<PreEnqueueResult> verdicts;
  if (gate_ == nullptr) {
    verdicts.resize(moves.size());
    return verdicts;
  }
  std::vector<const QueuedPod*> pods;
  pods.reserve(moves.size());
  for (const Move& move : moves) pods.push_back(move.pod);
  verdicts = gate_->PreEnqueue(pods, now);
  // A missing result means no answer: the pod waits for the flush.
  verdicts.resize(
      moves.size(),
      PreEnqueueResult{
          .kind = PreEnqueueResult::Kind::kUnavailable, .plugin = "", .message = "", .host = ""});
  return verdicts;
}

void SchedulingQueue::Requeue(const std::vector<Move>& moves, absl::string_view event,
                              absl::Time now) {
  if (moves.empty()) return;
  const std::vector<PreEnqueueResult> verdicts = RunPreEnqueue(moves, now);
  for (size_t i = 0; i < moves.size(); ++i) {
    QueuedPod& pod = *moves[i].pod;
    switch (verdicts[i].kind) {
      case PreEnqueueResult::Kind::kPass:
        Leave(pod);
        pod.gating_plugin.clear();
        pod.gate_message.clear();
        if (pod.last_transition != absl::InfinitePast()) ++pod.requeues;
        pod.last_event.assign(event.data(), event.size());
        if (moves[i].to_backoff) {
          EnterBackoff(pod, event, now);
        } else {
          EnterActive(pod, event, now);
        }
        break;
      case PreEnqueueResult::Kind::kGated:
        EnterGated(pod, verdicts[i], event, now);
        break;
      case PreEnqueueResult::Kind::kUnavailable:
        Leave(pod);
        EnterParked(pod, verdicts[i].host, event, now);
        break;
    }
  }
}

void SchedulingQueue::RequeueOne(QueuedPod& pod, Strategy strategy, absl::string_view event,
                                 absl::Time now) {
  Requeue({{&pod, strategy == Strategy::kAfterBackoff && IsBackingOff(pod, now)}}, event, now);
}

void SchedulingQueue::HostReturned(const std::string& host, absl::Time now) {
  const auto it = parked_.find(host);
  if (it == parked_.end()) return;
  std::vector<Move> moves;
  for (QueuedPod* pod : it->second) moves.push_back({pod, IsBackingOff(*pod, now)});
  std::sort(moves.begin(), moves.end(),
            [](const Move& a, const Move& b) { return a.pod->sequence < b.pod->sequence; });
  Requeue(moves, kHostReturned, now);
}

bool SchedulingQueue::AnyProfileMatches(const std::string& plugin,
                                        const ClusterEvent& event) const {
  return std::any_of(wake_up_.begin(), wake_up_.end(), [&](const auto& profile) {
    const auto it = profile.second.find(plugin);
    return it != profile.second.end() && AnyMatches(it->second, event);
  });
}

bool SchedulingQueue::IsOfInterest(const ClusterEvent& event) const {
  if (event.is_wildcard()) return true;
  for (const auto& [profile, plugins] : wake_up_) {
    for (const auto& [plugin, registered] : plugins) {
      if (AnyMatches(registered, event)) return true;
    }
  }
  return false;
}

bool SchedulingQueue::PluginMatches(const std::string& profile, const std::string& plugin,
                                    const ClusterEvent& event) const {
  const auto plugins = wake_up_.find(profile);
  if (plugins == wake_up_.end()) return false;
  const auto it = plugins->second.find(plugin);
  return it != plugins->second.end() && AnyMatches(it->second, event);
}

SchedulingQueue::Strategy SchedulingQueue::WorthRequeuing(const QueuedPod& pod,
                                                          const ClusterEvent& event,
                                                          bool about_itself) const {
  if (!pod.has_rejectors() || event.is_wildcard()) return Strategy::kAfterBackoff;
  const auto plugins = wake_up_.find(pod.pod->pod.scheduler_name());
  // An unknown profile: one try too many is better than a stuck pod.
  if (plugins == wake_up_.end()) return Strategy::kAfterBackoff;
  const auto helped = [&](const std::string& plugin) {
    const auto it = plugins->second.find(plugin);
    if (it == plugins->second.end() || it->second.empty()) return about_itself;
    return AnyMatches(it->second, event);
  };
  if (std::any_of(pod.pending_plugins.begin(), pod.pending_plugins.end(), helped)) {
    return Strategy::kImmediately;
  }
  if (std::any_of(pod.unschedulable_plugins.begin(), pod.unschedulable_plugins.end(), helped)) {
    return Strategy::kAfterBackoff;
  }
  return Strategy::kSkip;
}

SchedulingQueue::Strategy SchedulingQueue::StrategyAfterAttempt(const QueuedPod& pod,
                                                                bool delegated) const {
  // No plugin rejected it: something unusual happened. Or it failed after Permit, and later events
  // were not recorded.
  if (!pod.has_rejectors() || !pod.recording || pod.activate_requested) {
    return Strategy::kAfterBackoff;
  }
  if (delegated) return Strategy::kSkip;
  Strategy best = Strategy::kSkip;
  const auto consider = [&](const ClusterEvent& event, bool about_itself) {
    best = std::max(best, WorthRequeuing(pod, event, about_itself));
  };
  for (const auto& [event, time] : recorded_) {
    if (time >= pod.recording_since) consider(event, /*about_itself=*/false);
  }
  for (const ClusterEvent& event : pod.own_events) consider(event, /*about_itself=*/true);
  return best;
}

std::vector<QueuedPod*> SchedulingQueue::Candidates(const ClusterEvent& event) const {
  std::vector<QueuedPod*> pods;
  if (event.is_wildcard()) {
    for (const auto& [uid, info] : pods_) {
      if (info->place == Place::kUnschedulable || info->place == Place::kGated) {
        pods.push_back(info.get());
      }
    }
    return pods;
  }
  for (const auto& [plugin, rejected] : by_rejector_) {
    if (!AnyProfileMatches(plugin, event)) continue;
    pods.insert(pods.end(), rejected.begin(), rejected.end());
  }
  return pods;
}

void SchedulingQueue::MoveAllToActiveOrBackoff(const ClusterEvent& event, absl::Time now) {
  if (!IsOfInterest(event)) return;
  MoveMatching(Candidates(event), event, now);
}

void SchedulingQueue::MoveAllToActiveOrBackoff(const ClusterEvent& event, PodFilter precheck,
                                               absl::Time now) {
  if (!IsOfInterest(event)) return;
  std::vector<QueuedPod*> pods = Candidates(event);
  pods.erase(
      std::remove_if(pods.begin(), pods.end(), [&](QueuedPod* pod) { return !precheck(*pod); }),
      pods.end());
  MoveMatching(std::move(pods), event, now);
}

void SchedulingQueue::MoveMatching(std::vector<QueuedPod*> pods, const ClusterEvent& event,
                                   absl::Time now) {
  // In order of arrival, each once: calls of the gate must not depend on a hash.
  std::sort(pods.begin(), pods.end(),
            [](const QueuedPod* a, const QueuedPod* b) { return a->sequence < b->sequence; });
  pods.erase(std::unique(pods.begin(), pods.end()), pods.end());
  std::vector<Move> moves;
  for (QueuedPod* pod : pods) {
    if (pod->place == Place::kGated &&
        !PluginMatches(pod->pod->pod.scheduler_name(), pod->gating_plugin, event)) {
      continue;
    }
    const Strategy strategy = WorthRequeuing(*pod, event, /*about_itself=*/false);
    if (strategy == Strategy::kSkip) continue;
    moves.push_back({pod, strategy == Strategy::kAfterBackoff && IsBackingOff(*pod, now)});
    // Counted as incoming again if the gate rejects it, as in kube-scheduler.
    Leave(*pod);
  }
  Requeue(moves, event.Label(), now);
  RecordEvent(event);
}

void SchedulingQueue::ApplyHints(absl::Span<const Hint> hints, absl::Time now) {
  std::vector<Move> moves;
  std::string label;
  const auto flush = [&] {
    Requeue(moves, label, now);
    moves.clear();
  };
  for (const Hint& hint : hints) {
    QueuedPod* pod = FindMutable(hint.uid);
    if (pod == nullptr || !pod->delegated) continue;
    if (hint.number != 0 && hint.number < pod->delegated_since) continue;
    const bool pending = pod->pending_plugins.count(hint.plugin) > 0;
    if (!pending && pod->unschedulable_plugins.count(hint.plugin) == 0) continue;
    // kube-scheduler evaluates what happened during an attempt when the attempt ends.
    std::string its_label = hint.number < pod->waiting_since ? std::string(kScheduleAttemptFailure)
                                                             : hint.event.Label();
    if (its_label != label) {
      flush();
      label = std::move(its_label);
    }
    moves.push_back({pod, !pending && IsBackingOff(*pod, now)});
    // As with every event: counted as incoming again if the gate rejects it. kube-scheduler counts
    // an update of the pod itself differently.
    if (hint.event.resource != kUnscheduledPod) Leave(*pod);
  }
  flush();
}

void SchedulingQueue::Release(const std::string& uid) {
  QueuedPod* pod = FindMutable(uid);
  if (pod == nullptr || !pod->held) return;
  EndWaiting(*pod);
  BeginWaiting(*pod, event_clock_);
}

void SchedulingQueue::DelegateReset(const std::string& profile, absl::Time now) {
  std::vector<Move> moves;
  for (const auto& [uid, pod] : pods_) {
    if (!pod->delegated || pod->pod->pod.scheduler_name() != profile) continue;
    moves.push_back({pod.get(), IsBackingOff(*pod, now)});
  }
  std::sort(moves.begin(), moves.end(),
            [](const Move& a, const Move& b) { return a.pod->sequence < b.pod->sequence; });
  Requeue(moves, kHostReturned, now);
}

bool SchedulingQueue::IsEventRelevant(const ClusterEvent& event) const {
  if (!recording_since_.empty()) return IsOfInterest(event);
  return std::any_of(delegated_rejectors_.begin(), delegated_rejectors_.end(),
                     [&](const auto& entry) { return AnyProfileMatches(entry.first, event); });
}

bool SchedulingQueue::IsEventRelevant(const std::string& uid) const {
  const QueuedPod* pod = Find(uid);
  return pod != nullptr && (pod->delegated || pod->recording);
}

uint64_t SchedulingQueue::EventsNeededFrom() const {
  return recording_since_.empty() ? event_clock_ : *recording_since_.begin();
}

void SchedulingQueue::TryAgain(absl::Span<const std::string> uids, absl::Time now) {
  std::vector<Move> moves;
  for (const std::string& uid : uids) {
    QueuedPod* pod = FindMutable(uid);
    if (pod != nullptr && pod->place == Place::kUnschedulable)
      moves.push_back({pod, IsBackingOff(*pod, now)});
  }
  Requeue(moves, AssignedPodDelete().Label(), now);
}

void SchedulingQueue::Activate(absl::Span<const std::string> uids, absl::Time now,
                               absl::string_view plugin) {
  std::vector<Move> moves;
  for (const std::string& uid : uids) {
    QueuedPod* pod = FindMutable(uid);
    if (pod == nullptr) continue;
    if (!plugin.empty() && pod->unschedulable_plugins.count(plugin) == 0 &&
        pod->pending_plugins.count(plugin) == 0 && pod->post_filter_plugins.count(plugin) == 0) {
      continue;
    }
    switch (pod->place) {
      case Place::kUnschedulable:
      case Place::kGated:
        moves.push_back({pod, /*to_backoff=*/false});
        break;
      case Place::kBackoff:
      case Place::kErrorBackoff:
        Leave(*pod);
        EnterActive(*pod, kForceActivate, now);
        break;
      case Place::kInFlight:
        if (pod->recording) pod->activate_requested = true;
        break;
      default:
        break;
    }
  }
  Requeue(moves, kForceActivate, now);
}

void SchedulingQueue::RecheckGates(absl::Span<const std::string> uids, absl::Time now) {
  std::vector<Move> moves;
  for (const std::string& uid : uids) {
    QueuedPod* pod = FindMutable(uid);
    if (pod == nullptr || pod->place != Place::kGated) continue;
    moves.push_back({pod, IsBackingOff(*pod, now)});
  }
  Requeue(moves, kGateChanged, now);
}

void SchedulingQueue::RecheckGates(PodFilter which, absl::Time now) {
  std::vector<const QueuedPod*> gated;
  for (const auto& [uid, info] : pods_) {
    if (info->place == Place::kGated && which(*info)) gated.push_back(info.get());
  }
  std::sort(gated.begin(), gated.end(),
            [](const QueuedPod* a, const QueuedPod* b) { return a->sequence < b->sequence; });
  std::vector<std::string> uids;
  uids.reserve(gated.size());
  for (const QueuedPod* pod : gated) uids.push_back(pod->uid());
  RecheckGates(uids, now);
}

void SchedulingQueue::RecordEvent(const ClusterEvent& event) {
  if (recording_since_.empty()) return;
  recorded_[event] = event_clock_++;
}

void SchedulingQueue::StopRecording(QueuedPod& pod) {
  if (!pod.recording) return;
  pod.recording = false;
  pod.own_events.clear();
  pod.activate_requested = false;
  recording_since_.erase(recording_since_.find(pod.recording_since));
  if (recording_since_.empty()) {
    recorded_.clear();
    return;
  }
  const uint64_t oldest = *recording_since_.begin();
  absl::erase_if(recorded_, [&](const auto& entry) { return entry.second < oldest; });
}

void SchedulingQueue::NoteRejectors(const QueuedPod& pod, int delta) {
  if (observer_ == nullptr) return;
  const std::string& profile = pod.pod->pod.scheduler_name();
  for (const std::string& plugin : pod.unschedulable_plugins) {
    observer_->OnUnschedulableReason(plugin, profile, delta);
  }
  for (const std::string& plugin : pod.pending_plugins) {
    if (pod.unschedulable_plugins.count(plugin) == 0) {
      observer_->OnUnschedulableReason(plugin, profile, delta);
    }
  }
}

void SchedulingQueue::Incoming(absl::string_view queue, absl::string_view event) const {
  if (observer_ != nullptr) observer_->OnIncoming(queue, event);
}

}  // namespace outboard::queue
