#include "shim/bind/event_recorder.h"

#include <glog/logging.h>

#include <algorithm>
#include <deque>
#include <list>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/random/random.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shim/bind/api_requests.h"
#include "shim/bind/delays.h"
#include "shim/bind/sender.h"
#include "shim/fail_point.h"
#include "shim/kube/wire/custom_resource_name.h"

namespace outboard::bind {
namespace {

// As in client-go.
constexpr int kMaxTries = 12;
constexpr absl::Duration kRetryDelay = absl::Seconds(10);
constexpr double kRetryJitter = 0.25;
constexpr absl::Duration kFinishTime = absl::Minutes(6);
constexpr absl::Duration kRefreshTime = absl::Minutes(30);

// The fields that all events of a series share.
std::string KeyOf(const EventFields& event) {
  return absl::StrJoin({event.type, event.action, event.reason, event.reporting_controller,
                        event.object_namespace, event.object_name, event.object_uid,
                        event.object_resource_version, event.kind, event.api_version, event.plugin},
                       absl::string_view("\0", 1));
}

std::string FullName(const EventFields& event) {
  return absl::StrCat(NamespaceOf(event), "/", event.name);
}

// One event to be written.
struct WriteOperation {
  EventFields event;
  std::string key;
  bool create = false;       // the next request: POST or PATCH
  bool once = false;         // a refresh: not retried before the next period
  bool ends_series = false;  // forget the series afterwards
  int tries = 0;
  absl::Time ready_since;  // for this try
};
using WritePtr = std::shared_ptr<WriteOperation>;

struct Remembered {
  std::string key;
  EventFields event;  // its times are wall times
  absl::Time last_seen;
};

}  // namespace

struct EventRecorder::State : std::enable_shared_from_this<EventRecorder::State> {
  State(kube::ApiClient* client, Executor executor, EventRecorderOptions given)
      : options(std::move(given)), sender(client, std::move(executor), options.fence) {}

  void Enqueue(WritePtr op, absl::Time now);
  // The event's POST has its last answer: patches that waited for it may follow.
  void OnCreated(const WritePtr& op, absl::Time now);
  void AddReady(WritePtr op, absl::Time now);
  void StartReady(absl::Time now);
  void OnAnswer(const WritePtr& op, const absl::StatusOr<kube::ApiResponse>& answer,
                absl::Time now);
  void Retry(const WritePtr& op, const absl::Status& status, absl::Time now);
  size_t MayBeInFlight(absl::Time now) const;
  void Forget(const std::string& key);
  void FinishSeries(absl::Time now);
  void RefreshSeries(absl::Time now);

  EventRecorderOptions options;
  Sender sender;
  Delays delays;
  EventRecorderStats stats;
  absl::BitGen random;
  std::deque<WritePtr> ready;
  size_t delayed = 0;
  // Events whose POST has no last answer yet, by namespace and name, with the patches that wait for
  // it: a patch that arrives first would create the event, and the POST would then fail.
  absl::flat_hash_map<std::string, std::vector<WritePtr>> creating;
  size_t waiting_for_post = 0;
  std::list<Remembered> remembered;  // oldest first
  absl::flat_hash_map<std::string, std::list<Remembered>::iterator> by_key;
  absl::Time last_name = absl::InfinitePast();
  absl::Time next_finish = absl::InfiniteFuture();
  absl::Time next_refresh = absl::InfiniteFuture();
};

void EventRecorder::State::Enqueue(WritePtr op, absl::Time now) {
  if (ready.size() >= options.max_queued) {
    ++stats.dropped;
    LOG_EVERY_N(WARNING, 1000) << "Event dropped: queue full with " << ready.size() << " events";
    return;
  }
  if (!op->create) {
    if (const auto post = creating.find(FullName(op->event)); post != creating.end()) {
      ++waiting_for_post;
      post->second.push_back(std::move(op));
      return;
    }
  } else if (!op->key.empty()) {
    creating.try_emplace(FullName(op->event));
  }
  AddReady(std::move(op), now);
  StartReady(now);
}

void EventRecorder::State::AddReady(WritePtr op, absl::Time now) {
  op->ready_since = now;
  ready.push_back(std::move(op));
}

void EventRecorder::State::OnCreated(const WritePtr& op, absl::Time now) {
  const auto post = creating.find(FullName(op->event));
  if (op->event.series_count > 0 || post == creating.end()) return;
  for (WritePtr& patch : post->second) {
    --waiting_for_post;
    // The series may have grown meanwhile.
    const auto known = by_key.find(patch->key);
    if (known != by_key.end() && known->second->event.name == patch->event.name)
      patch->event = known->second->event;
    AddReady(std::move(patch), now);
  }
  creating.erase(post);
}

size_t EventRecorder::State::MayBeInFlight(absl::Time now) const {
  const size_t for_number = ready.size() / options.waiting_per_more_in_flight;
  const double for_age =
      absl::FDivDuration(now - ready.front()->ready_since, options.age_per_more_in_flight);
  const double more = std::max<double>(for_number, for_age);
  return static_cast<size_t>(
      std::min<double>(options.max_in_flight, options.min_in_flight + std::max(more, 0.0)));
}

void EventRecorder::State::StartReady(absl::Time now) {
  while (!ready.empty() && stats.in_flight < MayBeInFlight(now)) {
    WritePtr op = std::move(ready.front());
    ready.pop_front();
    ++stats.in_flight;
    ++op->tries;
    kube::ApiRequest request;
    if (op->create) {
      request.method = kube::Method::kPost;
      request.accept = std::string(kube::kMetadataOnly);
      request.path = EventsPath(NamespaceOf(op->event));
      request.body = EventBody(op->event);
    } else {
      request.method = kube::Method::kPatch;
      request.accept = std::string(kube::kMetadataOnly);
      request.path = EventPath(NamespaceOf(op->event), op->event.name);
      request.content_type = std::string(kube::kStrategicMergePatch);
      request.body = EventSeriesPatchBody(op->event);
    }
    sender.Start(std::move(request), weak_from_this(), &State::OnAnswer, op);
  }
}

void EventRecorder::State::OnAnswer(const WritePtr& op,
                                    const absl::StatusOr<kube::ApiResponse>& answer,
                                    absl::Time now) {
  --stats.in_flight;
  const bool is_series = op->event.series_count > 0;
  const int code = answer.ok() ? answer->http_status : 0;
  if (answer.ok() && answer->ok()) {
    ++stats.written;
    OUTBOARD_FAIL_POINT(event_written);
    if (op->ends_series) Forget(op->key);
    OnCreated(op, now);
  } else if (is_series && !op->create && code == 404) {
    // The event expired on the server or was never created: create it again, with its series.
    op->create = true;
    --op->tries;
    ready.push_front(op);
  } else if (answer.ok() && !(is_series && op->create && code == 409)) {
    ++stats.rejected;
    if (op->ends_series) Forget(op->key);
    OnCreated(op, now);
    LOG_EVERY_N(WARNING, 100) << "Event about " << op->event.kind << " "
                              << op->event.object_namespace << "/" << op->event.object_name
                              << " rejected: " << kube::ToStatus(*answer);
  } else {
    Retry(op, answer.ok() ? kube::ToStatus(*answer) : answer.status(), now);
  }
  StartReady(now);
}

void EventRecorder::State::Retry(const WritePtr& op, const absl::Status& status, absl::Time now) {
  if (op->once) return;
  if (op->tries >= kMaxTries || options.fence.Passed()) {
    ++stats.rejected;
    OnCreated(op, now);
    LOG_EVERY_N(WARNING, 100) << "Event about " << op->event.kind << " "
                              << op->event.object_namespace << "/" << op->event.object_name
                              << " not written: " << status << "; not retrying";
    return;
  }
  // An event whose series could not be patched may have been created meanwhile.
  op->create = op->event.series_count == 0;
  const absl::Duration delay =
      kRetryDelay * (1 + kRetryJitter * absl::Uniform<double>(random, 0, 1));
  ++delayed;
  delays.Add(now + delay, [this, op](absl::Time due) {
    --delayed;
    AddReady(op, due);
  });
}

void EventRecorder::State::Forget(const std::string& key) {
  auto it = by_key.find(key);
  if (it == by_key.end()) return;
  remembered.erase(it->second);
  by_key.erase(it);
}

void EventRecorder::State::FinishSeries(absl::Time now) {
  for (auto it = remembered.begin(); it != remembered.end();) {
    auto current = it++;
    const EventFields& event = current->event;
    if (event.series_count == 0) {
      if (current->last_seen < now - kFinishTime) Forget(std::string(current->key));
    } else if (current->last_seen < now - kFinishTime) {
      auto op = std::make_shared<WriteOperation>();
      op->event = event;
      op->key = current->key;
      op->once = true;
      op->ends_series = true;
      Enqueue(std::move(op), now);
    }
  }
}

void EventRecorder::State::RefreshSeries(absl::Time now) {
  for (const Remembered& entry : remembered) {
    if (entry.event.series_count == 0) continue;
    auto op = std::make_shared<WriteOperation>();
    op->event = entry.event;
    op->key = entry.key;
    op->once = true;
    Enqueue(std::move(op), now);
  }
}

namespace {

ObjectEvent AboutPod(const kube::PodObject& pod, absl::string_view profile) {
  ObjectEvent event;
  event.object_namespace = pod.pod.namespace_();
  event.object_name = pod.pod.name();
  event.object_uid = pod.pod.uid();
  event.object_resource_version = pod.resource_version;
  event.profile = std::string(profile);
  return event;
}

}  // namespace

ObjectEvent ScheduledEvent(const kube::PodObject& pod, absl::string_view profile,
                           absl::string_view node) {
  ObjectEvent event = AboutPod(pod, profile);
  event.type = "Normal";
  event.reason = "Scheduled";
  event.action = "Binding";
  event.note = AssignedNote(
      BindRequest{event.object_namespace, event.object_name, event.object_uid, std::string(node)});
  return event;
}

ObjectEvent FailedSchedulingEvent(const kube::PodObject& pod, absl::string_view profile,
                                  absl::string_view message) {
  ObjectEvent event = AboutPod(pod, profile);
  event.type = "Warning";
  event.reason = "FailedScheduling";
  event.action = "Scheduling";
  event.note = TruncateNote(message);
  return event;
}

ObjectEvent PreemptedEvent(const kube::PodObject& victim, absl::string_view profile,
                           absl::string_view preemptor_uid, absl::string_view node,
                           bool in_memory) {
  ObjectEvent event = AboutPod(victim, profile);
  event.type = "Normal";
  event.reason = "Preempted";
  event.action = "Preempting";
  event.note = absl::StrCat("Preempted by pod ", preemptor_uid, " on node ", node,
                            in_memory ? " (in kube-scheduler memory)." : "");
  return event;
}

absl::StatusOr<ObjectEvent> PluginEvent(const v1beta1::Effect& effect, const kube::PodObject* pod,
                                        absl::string_view profile) {
  const v1beta1::RecordEvent& wanted = effect.record_event();
  ObjectEvent event;
  if (!wanted.resource().empty()) {
    const auto resource = kube::ParseCustomResourceName(wanted.resource());
    if (!resource.ok()) return resource.status();
    event.profile = std::string(profile);
    event.object_namespace = wanted.namespace_();
    event.object_name = wanted.name();
    event.object_uid = wanted.uid();
    event.kind = wanted.kind();
    event.api_version = resource->api_version();
  } else if (pod != nullptr) {
    event = AboutPod(*pod, profile);
  } else {
    return absl::InvalidArgumentError("the event requires a pod or an object");
  }
  event.plugin = effect.plugin();
  event.type = wanted.type() == v1beta1::RecordEvent::TYPE_WARNING ? "Warning" : "Normal";
  event.reason = wanted.reason();
  event.action = wanted.action();
  event.note = TruncateNote(wanted.note());
  return event;
}

EventRecorder::EventRecorder(kube::ApiClient* client, Executor executor,
                             EventRecorderOptions options)
    : state_(std::make_shared<State>(client, std::move(executor), std::move(options))) {}
EventRecorder::~EventRecorder() = default;

void EventRecorder::Record(ObjectEvent event, absl::Time now) {
  State& state = *state_;
  if (state.next_finish == absl::InfiniteFuture()) {
    state.next_finish = now + kFinishTime;
    state.next_refresh = now + kRefreshTime;
  }
  auto op = std::make_shared<WriteOperation>();
  op->create = true;
  EventFields& fields = op->event;
  // Two events at the same time need two names.
  const absl::Time wall = state.options.wall();
  state.last_name = std::max(wall, state.last_name + absl::Nanoseconds(1));
  fields.name = EventName(event.object_name, state.last_name);
  fields.object_namespace = std::move(event.object_namespace);
  fields.object_name = std::move(event.object_name);
  fields.object_uid = std::move(event.object_uid);
  fields.object_resource_version = std::move(event.object_resource_version);
  fields.event_time = wall;
  fields.reporting_instance = absl::StrCat(event.profile, "-", state.options.hostname);
  fields.reporting_controller = std::move(event.profile);
  fields.action = std::move(event.action);
  fields.reason = std::move(event.reason);
  fields.note = std::move(event.note);
  fields.type = std::move(event.type);
  fields.kind = std::move(event.kind);
  fields.api_version = std::move(event.api_version);
  fields.plugin = std::move(event.plugin);
  if (fields.reason != "Scheduled" || !fields.plugin.empty()) {
    op->key = KeyOf(fields);
    auto it = state.by_key.find(op->key);
    if (it != state.by_key.end()) {
      EventFields& first = it->second->event;
      first.series_last_observed = wall;
      it->second->last_seen = now;
      if (first.series_count > 0) {
        ++first.series_count;
        ++state.stats.merged;
        return;
      }
      first.series_count = 2;
      op->event = first;
      op->create = false;
    } else if (state.ready.size() < state.options.max_queued) {
      state.remembered.push_back(Remembered{op->key, fields, now});
      state.by_key.emplace(op->key, std::prev(state.remembered.end()));
      if (state.remembered.size() > state.options.max_series) {
        state.Forget(std::string(state.remembered.front().key));
      }
    }
  }
  state.Enqueue(std::move(op), now);
}

void EventRecorder::Tick(absl::Time now) {
  State& state = *state_;
  state.delays.RunDue(now);
  if (now >= state.next_finish) {
    state.FinishSeries(now);
    state.next_finish = now + kFinishTime;
  }
  if (now >= state.next_refresh) {
    state.RefreshSeries(now);
    state.next_refresh = now + kRefreshTime;
  }
  state.StartReady(now);
}

absl::Time EventRecorder::NextTick() const {
  return std::min({state_->delays.next(), state_->next_finish, state_->next_refresh});
}

size_t EventRecorder::pending() const {
  return state_->ready.size() + state_->stats.in_flight + state_->delayed +
         state_->waiting_for_post;
}

void EventRecorder::UseAllRequests(absl::Time now) {
  state_->options.min_in_flight = state_->options.max_in_flight;
  state_->StartReady(now);
}

size_t EventRecorder::under_way() const { return state_->ready.size() + state_->stats.in_flight; }

EventRecorderStats EventRecorder::stats() const {
  EventRecorderStats stats = state_->stats;
  stats.queued = state_->ready.size() + state_->delayed + state_->waiting_for_post;
  return stats;
}

}  // namespace outboard::bind
