#include "shim/queue/scheduling_queue.h"

#include <algorithm>
#include <utility>

namespace outboard::queue {
namespace {

// Backoffs end on whole seconds, and all of one second end together: the pods of one second are
// then in the order of the active queue.
constexpr absl::Duration kWindow = absl::Seconds(1);
constexpr absl::Duration kUnschedulableScan = absl::Seconds(30);

absl::Time AlignToWindow(absl::Time t) { return absl::FromUnixSeconds(absl::ToUnixSeconds(t)); }

absl::Duration BackoffOf(int count, const QueueOptions& options) {
  absl::Duration backoff = options.initial_backoff;
  for (int i = 1; i < count && backoff < options.max_backoff; ++i) backoff *= 2;
  return std::min(backoff, options.max_backoff);
}

}  // namespace

SchedulingQueue::SchedulingQueue(QueueOptions options, absl::Time now, PreEnqueueGate* gate,
                                 QueueingHintDelegate* delegate, QueueObserver* observer)
    : options_(options),
      gate_(gate),
      delegate_(delegate),
      observer_(observer),
      next_backoff_flush_(AlignToWindow(now) + kWindow),
      next_unschedulable_flush_(now + kUnschedulableScan) {}

SchedulingQueue::~SchedulingQueue() = default;

std::string SchedulingQueue::DefaultSortKey(int32_t priority) {
  // Order-preserving: flipping the sign bit makes signed order unsigned order, the complement
  // reverses it.
  const uint32_t rank = ~(static_cast<uint32_t>(priority) ^ 0x80000000u);
  std::string key(4, '\0');
  for (int i = 0; i < 4; ++i) key[i] = static_cast<char>((rank >> (24 - 8 * i)) & 0xff);
  return key;
}

void SchedulingQueue::AddAll(absl::Span<const kube::PodPtr> pods, absl::Time now) {
  std::vector<Move> moves;
  moves.reserve(pods.size());
  for (const kube::PodPtr& pod : pods) {
    auto [it, inserted] = pods_.try_emplace(pod->uid());
    if (!inserted) {
      it->second->deleted = false;
      Update(pod, {}, now);
      continue;
    }
    it->second = std::make_unique<QueuedPod>();
    QueuedPod& info = *it->second;
    SetPod(info, pod);
    info.timestamp = now;
    info.sequence = next_sequence_++;
    moves.push_back({&info, /*to_backoff=*/false});
  }
  Requeue(moves, kUnscheduledPodAdd, now);
}

void SchedulingQueue::SetPod(QueuedPod& info, kube::PodPtr pod) {
  info.pod = std::move(pod);
  if (observer_ != nullptr) observer_->OnPod(*info.pod);
  if (info.has_custom_key) return;
  std::string key = DefaultSortKey(info.pod->pod.priority());
  if (key == info.sort_key) return;
  info.sort_key = std::move(key);
  Reorder(info);
}

void SchedulingQueue::Reorder(QueuedPod& info) {
  switch (info.place) {
    case Place::kActive:
      active_.Reorder(info);
      break;
    case Place::kBackoff:
      backoff_.Reorder(info);
      break;
    case Place::kErrorBackoff:
      error_backoff_.Reorder(info);
      break;
    default:
      break;
  }
}

void SchedulingQueue::Update(kube::PodPtr pod, absl::Span<const ClusterEvent> events,
                             absl::Time now) {
  QueuedPod* info = FindMutable(pod->uid());
  if (info == nullptr) {
    auto owned = std::make_unique<QueuedPod>();
    info = owned.get();
    SetPod(*info, pod);
    info->timestamp = now;
    info->sequence = next_sequence_++;
    pods_.emplace(pod->uid(), std::move(owned));
    Requeue({{info, /*to_backoff=*/false}}, kUnscheduledPodUpdate, now);
    return;
  }
  if (!pod->resource_version.empty() && pod->resource_version == info->pod->resource_version)
    return;
  SetPod(*info, std::move(pod));
  if (info->place == Place::kInFlight) {
    if (!info->recording) return;
    for (const ClusterEvent& event : events) {
      if (std::find(info->own_events.begin(), info->own_events.end(), event) ==
          info->own_events.end()) {
        info->own_events.push_back(event);
      }
    }
  } else if ((info->place == Place::kUnschedulable || info->place == Place::kGated) &&
             !info->delegated) {
    UpdateWaiting(*info, events, now);
  }
}

void SchedulingQueue::UpdateWaiting(QueuedPod& info, absl::Span<const ClusterEvent> events,
                                    absl::Time now) {
  for (const ClusterEvent& event : events) {
    // The gate is called again for every change of a gated pod.
    const Strategy strategy = info.place == Place::kGated
                                  ? Strategy::kAfterBackoff
                                  : WorthRequeuing(info, event, /*about_itself=*/true);
    if (strategy == Strategy::kSkip) continue;
    RequeueOne(info, strategy, event.Label(), now);
    return;
  }
}

void SchedulingQueue::Delete(const std::string& uid) {
  QueuedPod* info = FindMutable(uid);
  if (info == nullptr) return;
  if (info->place == Place::kInFlight) {
    info->deleted = true;
    return;
  }
  NoteRejectors(*info, -1);
  Erase(*info);
}

void SchedulingQueue::Forget(const std::string& uid) {
  QueuedPod* info = FindMutable(uid);
  if (info == nullptr) return;
  if (info->place != Place::kInFlight) NoteRejectors(*info, -1);
  Erase(*info);
}

void SchedulingQueue::Erase(QueuedPod& info) {
  StopRecording(info);
  Leave(info);
  if (observer_ != nullptr) observer_->OnPodLeft(*info.pod);
  pods_.erase(std::string(info.uid()));
}

QueuedPod* SchedulingQueue::Pop(absl::Time now) {
  if (!HasNext()) return nullptr;
  QueuedPod& info = active_.empty() ? backoff_.top() : active_.top();
  if (info.place == Place::kBackoff) Incoming("active", kPopFromBackoffQ);
  return BeginAttempt(info, now);
}

QueuedPod* SchedulingQueue::Take(const std::string& uid, absl::Time now) {
  QueuedPod* const info = FindMutable(uid);
  if (info == nullptr || info->deleted) return nullptr;
  switch (info->place) {
    case Place::kActive:
    case Place::kBackoff:
    case Place::kErrorBackoff:
    case Place::kUnschedulable:
      return BeginAttempt(*info, now);
    default:
      return nullptr;
  }
}

QueuedPod* SchedulingQueue::BeginAttempt(QueuedPod& info, absl::Time now) {
  Leave(info);
  info.place = Place::kInFlight;
  info.last_transition = now;
  ++in_flight_;
  ++info.attempts;
  if (!info.initial_attempt_time.has_value()) info.initial_attempt_time = now;
  info.recording = true;
  info.recording_since = event_clock_;
  recording_since_.insert(event_clock_);
  NoteRejectors(info, -1);
  return &info;
}

void SchedulingQueue::Done(const std::string& uid) {
  QueuedPod* info = FindMutable(uid);
  if (info != nullptr) StopRecording(*info);
}

bool SchedulingQueue::AddUnschedulable(const std::string& uid, Rejectors rejectors,
                                       absl::Time now) {
  QueuedPod* info = FindMutable(uid);
  if (info == nullptr || info->place != Place::kInFlight) return false;
  if (info->deleted) {
    Erase(*info);
    return false;
  }
  info->unschedulable_plugins = std::move(rejectors.unschedulable);
  info->pending_plugins = std::move(rejectors.pending);
  info->post_filter_plugins = std::move(rejectors.post_filter);
  if (info->has_rejectors()) {
    ++info->unschedulable_count;
    info->consecutive_errors = 0;
  } else {
    ++info->consecutive_errors;
  }
  info->timestamp = now;
  info->sequence = next_sequence_++;
  info->backoff_expiration.reset();
  info->was_flushed = false;
  NoteRejectors(*info, +1);
  // A delegate evaluates what happened during the attempt; events evaluated here it does not need.
  const bool delegated =
      delegate_ != nullptr && delegate_->EvaluatesEvents(*info->pod, info->recording_since);
  const Strategy strategy = StrategyAfterAttempt(*info, delegated);
  StopRecording(*info);
  if (strategy == Strategy::kSkip) {
    Leave(*info);
    EnterUnschedulable(*info, kScheduleAttemptFailure,
                       delegated ? info->recording_since : event_clock_, now);
  } else {
    RequeueOne(*info, strategy, kScheduleAttemptFailure, now);
  }
  return true;
}

bool SchedulingQueue::Park(const std::string& uid, const std::string& host, absl::Time now) {
  QueuedPod* info = FindMutable(uid);
  if (info == nullptr || info->place != Place::kInFlight) return false;
  if (info->deleted) {
    Erase(*info);
    return false;
  }
  --info->attempts;
  NoteRejectors(*info, +1);
  StopRecording(*info);
  Leave(*info);
  EnterParked(*info, host, kHostUnavailable, now);
  return true;
}

void SchedulingQueue::SetSortKey(const std::string& uid, std::string key) {
  QueuedPod* info = FindMutable(uid);
  if (info == nullptr) return;
  info->has_custom_key = !key.empty();
  info->sort_key =
      info->has_custom_key ? std::move(key) : DefaultSortKey(info->pod->pod.priority());
  Reorder(*info);
}

absl::Time SchedulingQueue::BackoffEnd(QueuedPod& pod) const {
  if (options_.max_backoff == absl::ZeroDuration()) return absl::InfinitePast();
  const int count = pod.consecutive_errors > 0 ? pod.consecutive_errors : pod.unschedulable_count;
  if (count == 0) return absl::InfinitePast();
  if (!pod.backoff_expiration.has_value()) {
    pod.backoff_expiration = AlignToWindow(pod.timestamp + BackoffOf(count, options_));
  }
  return *pod.backoff_expiration;
}

bool SchedulingQueue::IsBackingOff(QueuedPod& pod, absl::Time now) const {
  // A backoff that ends within the current second is not over yet.
  return BackoffEnd(pod) >= AlignToWindow(now);
}

void SchedulingQueue::FlushDue(absl::Time now) {
  if (now >= next_backoff_flush_) {
    FlushBackoff(now);
    next_backoff_flush_ = AlignToWindow(now) + kWindow;
  }
  if (now >= next_unschedulable_flush_) {
    FlushUnschedulable(now);
    next_unschedulable_flush_ += kUnschedulableScan;
    if (next_unschedulable_flush_ <= now) next_unschedulable_flush_ = now + kUnschedulableScan;
  }
}

absl::Time SchedulingQueue::NextWakeup() const {
  absl::Time next = absl::InfiniteFuture();
  for (const auto* heap : {&backoff_, &error_backoff_}) {
    if (heap->empty()) continue;
    const absl::Time end = heap->top().backoff_expiration.value_or(absl::InfinitePast());
    next = std::min(next, std::max(next_backoff_flush_, end + kWindow));
  }
  if (unschedulable_ + gated_ > 0 || !parked_.empty()) {
    next = std::min(next, next_unschedulable_flush_);
  }
  return next;
}

void SchedulingQueue::FlushBackoff(absl::Time now) {
  for (auto* heap : {&backoff_, &error_backoff_}) {
    while (!heap->empty() && !IsBackingOff(heap->top(), now)) {
      QueuedPod& info = heap->top();
      Leave(info);
      // The gate was called when the pod entered backoff.
      EnterActive(info, kBackoffComplete, now);
    }
  }
}

void SchedulingQueue::FlushUnschedulable(absl::Time now) {
  std::vector<QueuedPod*> stale;
  std::vector<Move> parked;
  for (const auto& [uid, info] : pods_) {
    if (info->place == Place::kParked) {
      if (now - info->parked_since > options_.max_in_unschedulable) {
        parked.push_back({info.get(), IsBackingOff(*info, now)});
      }
    } else if (info->place == Place::kUnschedulable || info->place == Place::kGated) {
      if (now - info->timestamp > options_.max_in_unschedulable) {
        info->was_flushed = true;
        stale.push_back(info.get());
      }
    }
  }
  if (!stale.empty()) {
    MoveMatching(std::move(stale),
                 {.resource = std::string(kAnyResource),
                  .actions = kAllActions,
                  .custom_label = std::string(kUnschedulableTimeout)},
                 now);
  }
  std::sort(parked.begin(), parked.end(),
            [](const Move& a, const Move& b) { return a.pod->sequence < b.pod->sequence; });
  Requeue(parked, kUnschedulableTimeout, now);
}

QueuedPod* SchedulingQueue::FindMutable(const std::string& uid) {
  const auto it = pods_.find(uid);
  return it == pods_.end() ? nullptr : it->second.get();
}

const QueuedPod* SchedulingQueue::Find(const std::string& uid) const {
  const auto it = pods_.find(uid);
  return it == pods_.end() ? nullptr : it->second.get();
}

QueueCounts SchedulingQueue::counts() const {
  QueueCounts counts;
  counts.active = active_.size();
  counts.backoff = backoff_.size() + error_backoff_.size();
  counts.unschedulable = unschedulable_;
  counts.gated = gated_;
  for (const auto& [host, pods] : parked_) counts.parked += pods.size();
  counts.in_flight = in_flight_;
  counts.recording = recording_since_.size();
  return counts;
}

void SchedulingQueue::ForEach(absl::FunctionRef<void(const QueuedPod&)> visit) const {
  for (const auto& [uid, info] : pods_) visit(*info);
}

void SchedulingQueue::ForEachRecordedEvent(
    absl::FunctionRef<void(const ClusterEvent&)> visit) const {
  for (const auto& [event, number] : recorded_) visit(event);
}

}  // namespace outboard::queue
