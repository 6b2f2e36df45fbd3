#include "shim/bind/api_writer.h"

#include <glog/logging.h>

#include <algorithm>
#include <deque>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "shim/bind/delays.h"
#include "shim/bind/sender.h"
#include "shim/fail_point.h"
#include "shim/kube/wire/document.h"
#include "shim/kube/wire/json_decode.h"

namespace outboard::bind {
namespace {

// A bind is sent at most this often; afterwards the pod returns to the queue.
constexpr int kMaxSendings = 3;
constexpr absl::Duration kFirstDelay = absl::Milliseconds(100);
constexpr absl::Duration kMaxDelay = absl::Seconds(5);

// client-go's retry.DefaultBackoff, used by kube-scheduler for status patches, without jitter.
constexpr int kStatusTries = 4;
constexpr absl::Duration kStatusFirstDelay = absl::Milliseconds(10);
constexpr int kStatusDelayFactor = 5;

constexpr char kFencedMessage[] = "not sent: the renew deadline of the leader's lease has passed";

struct BindOperation {
  BindRequest request;
  BindDone done;
  absl::Time started;
  int sendings = 0;
  int reads = 0;
  // An earlier send may have been executed, or may still be.
  bool ambiguous = false;
  bool reading = false;  // the next request is a read
  bool was_read = false;
  // Why the pod is being read, or the last rejection.
  std::string message;
  int http_status = 0;
};
using BindPtr = std::shared_ptr<BindOperation>;

struct WriteOperation {
  EffectRequest request;
  WriteDone done;
  int sendings = 0;
  // Not OK: the outcome is unknown, and the object is being read.
  absl::Status failure;
  int reads = 0;
};
using WritePtr = std::shared_ptr<WriteOperation>;

struct StatusOperation {
  PodFacts pod;
  StatusChange change;
  int tries = 0;
};
using StatusPtr = std::shared_ptr<StatusOperation>;

absl::Duration Backoff(int step) {
  absl::Duration delay = kFirstDelay;
  for (int i = 1; i < step && delay < kMaxDelay; ++i) delay *= 2;
  return std::min(delay, kMaxDelay);
}

// The pod's identity and node according to the API server.
struct PodPlace {
  std::string uid;
  std::string node_name;
};

bool ReadPlace(const std::string& body, PodPlace* out) {
  const nlohmann::json pod = nlohmann::json::parse(body, nullptr, /*allow_exceptions=*/false);
  if (!pod.is_object()) return false;
  const auto metadata = pod.find("metadata");
  const auto spec = pod.find("spec");
  if (metadata == pod.end() || !metadata->is_object() || spec == pod.end() || !spec->is_object())
    return false;
  const auto uid = metadata->find("uid");
  if (uid == metadata->end() || !uid->is_string()) return false;
  out->uid = uid->get<std::string>();
  const auto node = spec->find("nodeName");
  if (node == spec->end() || node->is_null()) return true;
  if (!node->is_string()) return false;
  out->node_name = node->get<std::string>();
  return true;
}

// Extracts the written object from an answer; leaves `result` unchanged if it cannot be parsed.
void ReadWritten(const std::string& body, const std::string& resource, WriteResult* result) {
  const absl::StatusOr<kube::DocNode> object = kube::ParseJson("the answer", body);
  const kube::DocNode* const metadata = object.ok() ? object->Find("metadata") : nullptr;
  if (metadata == nullptr) return;
  result->resource_version = std::string(metadata->FindString("resourceVersion"));
  result->uid = std::string(metadata->FindString("uid"));
  if (resource.empty() || metadata->Find("deletionTimestamp") != nullptr) return;
  auto decoded = kube::DecodeCustomObject(resource, *object);
  if (decoded.ok()) result->object = *std::move(decoded);
}

// Only the API server's message, as kube-scheduler reports it.
absl::Status WithoutCode(const absl::Status& status, const kube::ApiResponse& answer) {
  absl::string_view message = status.message();
  absl::ConsumeSuffix(&message, absl::StrCat(" (HTTP ", answer.http_status, ")"));
  return absl::Status(status.code(), message);
}

// The server understood the request and rejected it: a retry would not help.
bool IsRefusal(int status) {
  return status >= 400 && status < 500 && status != 408 && status != 409 && status != 429;
}

}  // namespace

struct ApiWriter::State : std::enable_shared_from_this<ApiWriter::State> {
  State(kube::ApiClient* client, Executor executor, ApiWriterOptions given)
      : options(std::move(given)), sender(client, std::move(executor), options.fence) {}

  // Binds.
  void StartReady(absl::Time now);
  absl::Status StillFits(const BindOperation& op) const;
  void Send(const BindPtr& op);
  void Read(const BindPtr& op);
  void OnSent(const BindPtr& op, const absl::StatusOr<kube::ApiResponse>& answer, absl::Time now);
  void OnRead(const BindPtr& op, const absl::StatusOr<kube::ApiResponse>& answer, absl::Time now);
  void Settle(const BindPtr& op, absl::Time now);
  void Later(const BindPtr& op, absl::Duration delay, absl::Time now);
  void End(const BindPtr& op, BindOutcome outcome, absl::Time now);
  void EndFenced(const BindPtr& op, absl::Time now);

  // Effects.
  void StartWrites(absl::Time now);
  void OnWritten(const WritePtr& op, const absl::StatusOr<kube::ApiResponse>& answer,
                 absl::Time now);
  void OnReadBack(const WritePtr& op, const absl::StatusOr<kube::ApiResponse>& answer,
                  absl::Time now);

  // Status.
  void StartStatus(absl::Time now);
  void OnStatus(const StatusPtr& op, const absl::StatusOr<kube::ApiResponse>& answer,
                absl::Time now);
  void EndStatus(const StatusPtr& op);

  ApiWriterOptions options;
  Sender sender;
  Delays delays;
  ApiWriterStats stats;

  std::deque<BindPtr> ready;
  int bind_requests = 0;

  std::deque<WritePtr> writes_ready;
  int write_requests = 0;

  std::deque<StatusPtr> status_ready;
  absl::flat_hash_map<std::string, StatusPtr>
      status_waiting;                            // by UID; a newer change merges into an unsent one
  absl::flat_hash_set<std::string> status_busy;  // UIDs with a patch in flight
  int status_requests = 0;
};

void ApiWriter::State::StartReady(absl::Time now) {
  while (!ready.empty() && bind_requests < options.max_binds_in_flight) {
    BindPtr op = std::move(ready.front());
    ready.pop_front();
    if (options.fence.Passed()) {
      EndFenced(op, now);
    } else if (op->reading) {
      Read(op);
    } else if (absl::Status fits = StillFits(*op); !fits.ok()) {
      op->message = std::string(fits.message());
      End(op, BindOutcome::kNoRoom, now);
    } else {
      Send(op);
    }
  }
}

absl::Status ApiWriter::State::StillFits(const BindOperation& op) const {
  // A bind that may have been executed keeps its room, whatever else was placed on the node.
  return op.ambiguous ? absl::OkStatus() : options.still_fits(op.request);
}

void ApiWriter::State::Send(const BindPtr& op) {
  ++bind_requests;
  ++op->sendings;
  kube::ApiRequest request;
  request.method = kube::Method::kPost;
  request.accept = std::string(kube::kMetadataOnly);
  request.path = BindingPath(op->request);
  request.body = BindingBody(op->request);
  OUTBOARD_FAIL_POINT(before_bind_request);
  sender.Start(std::move(request), weak_from_this(), &State::OnSent, op);
}

void ApiWriter::State::Read(const BindPtr& op) {
  ++bind_requests;
  ++op->reads;
  kube::ApiRequest request;
  // Without resourceVersion: the answer is at least as new as all earlier acknowledged writes.
  request.path = PodPath(op->request.pod_namespace, op->request.pod_name);
  sender.Start(std::move(request), weak_from_this(), &State::OnRead, op);
}

void ApiWriter::State::OnSent(const BindPtr& op, const absl::StatusOr<kube::ApiResponse>& answer,
                              absl::Time now) {
  --bind_requests;
  const absl::Status status = answer.ok() ? kube::ToStatus(*answer) : answer.status();
  op->message = std::string(status.message());
  op->http_status = answer.ok() ? answer->http_status : 0;
  const bool not_done =
      answer.ok() ? op->http_status == 429 : kube::DeliveryOf(status) == kube::Delivery::kNotSent;
  if (answer.ok() && answer->ok()) {
    OUTBOARD_FAIL_POINT(bind_answered);
    End(op, BindOutcome::kBound, now);
  } else if (op->http_status == 404) {
    End(op, BindOutcome::kGone, now);
  } else if (!answer.ok() && options.fence.Passed()) {
    if (!not_done) op->ambiguous = true;
    EndFenced(op, now);
  } else if (not_done && !op->ambiguous) {
    if (op->sendings >= kMaxSendings) {
      End(op, BindOutcome::kNotBound, now);
    } else {
      Later(
          op,
          std::max(Backoff(op->sendings), answer.ok() ? answer->retry_after : absl::ZeroDuration()),
          now);
    }
  } else if (IsRefusal(op->http_status) && !op->ambiguous) {
    End(op, BindOutcome::kNotBound, now);
  } else {
    // A conflict means that this send had no effect, but the client may have sent it before.
    if (op->http_status != 409 && !op->ambiguous) {
      op->ambiguous = true;
      ++stats.binds_ambiguous;
    }
    op->reading = true;
    op->was_read = true;
    op->reads = 0;
    ready.push_front(op);
  }
  StartReady(now);
}

void ApiWriter::State::OnRead(const BindPtr& op, const absl::StatusOr<kube::ApiResponse>& answer,
                              absl::Time now) {
  --bind_requests;
  PodPlace place;
  if (answer.ok() && answer->http_status == 404) {
    End(op, BindOutcome::kGone, now);
  } else if (!answer.ok() || !answer->ok() || !ReadPlace(answer->body, &place)) {
    // Only a valid answer settles it. Until then the room stays reserved.
    if (options.fence.Passed()) {
      EndFenced(op, now);
    } else {
      Later(op, Backoff(op->reads), now);
    }
  } else if (place.uid != op->request.pod_uid) {
    op->message = absl::StrCat("the pod was recreated with UID ", place.uid);
    End(op, BindOutcome::kGone, now);
  } else if (place.node_name == op->request.node_name) {
    End(op, BindOutcome::kBound, now);
  } else if (!place.node_name.empty()) {
    op->message = absl::StrCat("pod ", op->request.pod_name, " is already assigned to node \"",
                               place.node_name, "\"");
    End(op, BindOutcome::kNotBound, now);
  } else if (!op->ambiguous || op->sendings >= kMaxSendings) {
    End(op, BindOutcome::kNotBound, now);
  } else {
    op->reading = false;
    Later(op, Backoff(op->sendings), now);
  }
  StartReady(now);
}

void ApiWriter::State::Later(const BindPtr& op, absl::Duration delay, absl::Time now) {
  delays.Add(now + delay, [this, op](absl::Time) { ready.push_back(op); });
}

void ApiWriter::State::EndFenced(const BindPtr& op, absl::Time now) {
  const bool may_be_bound = op->ambiguous || op->reading;
  if (op->message.empty() || !may_be_bound) op->message = kFencedMessage;
  End(op, may_be_bound ? BindOutcome::kUnknown : BindOutcome::kFenced, now);
}

void ApiWriter::State::End(const BindPtr& op, BindOutcome outcome, absl::Time now) {
  --stats.binds_in_flight;
  BindResult result;
  result.outcome = outcome;
  if (outcome == BindOutcome::kBound) {
    ++stats.binds_bound;
  } else {
    ++stats.binds_not_bound;
    result.message = op->message;
  }
  result.http_status = op->http_status;
  result.attempts = op->sendings;
  result.settled_by_read = op->was_read;
  result.elapsed = now - op->started;
  BindDone done = std::move(op->done);
  done(result, now);
}

void ApiWriter::State::StartWrites(absl::Time now) {
  while (!writes_ready.empty() && write_requests < options.max_writes_in_flight) {
    WritePtr op = std::move(writes_ready.front());
    writes_ready.pop_front();
    if (options.fence.Passed()) {
      op->done({absl::FailedPreconditionError(kFencedMessage), ""}, now);
      continue;
    }
    ++write_requests;
    kube::ApiRequest request;
    if (!op->failure.ok()) {
      ++op->reads;
      request.path = op->request.object_path;
      sender.Start(std::move(request), weak_from_this(), &State::OnReadBack, op);
      continue;
    }
    ++op->sendings;
    request.method = op->request.method;
    request.path = op->request.path;
    request.content_type = op->request.content_type;
    request.body = op->request.body;
    sender.Start(std::move(request), weak_from_this(), &State::OnWritten, op);
  }
}

void ApiWriter::State::OnWritten(const WritePtr& op,
                                 const absl::StatusOr<kube::ApiResponse>& answer, absl::Time now) {
  --write_requests;
  const bool not_done = answer.ok() ? answer->http_status == 429
                                    : kube::DeliveryOf(answer.status()) == kube::Delivery::kNotSent;
  if (not_done && op->sendings < kMaxSendings && !options.fence.Passed()) {
    const absl::Duration wanted = answer.ok() ? answer->retry_after : absl::ZeroDuration();
    delays.Add(now + std::max(Backoff(op->sendings), wanted),
               [this, op](absl::Time) { writes_ready.push_back(op); });
  } else {
    // An effect with unknown outcome counts as failed. If it is repeated, its preconditions detect
    // whether it was executed. The pod's next attempt sees the current object.
    const bool is_open = answer.ok() ? answer->http_status >= 500 : !not_done;
    if (is_open && !op->request.object_path.empty()) {
      op->failure = answer.ok() ? kube::ToStatus(*answer) : answer.status();
      writes_ready.push_front(op);
      return StartWrites(now);
    }
    WriteResult result;
    result.status = answer.ok() ? WithoutCode(kube::ToStatus(*answer), *answer) : answer.status();
    if (result.status.ok()) ReadWritten(answer->body, op->request.resource, &result);
    op->done(result, now);
  }
  StartWrites(now);
}

void ApiWriter::State::OnReadBack(const WritePtr& op,
                                  const absl::StatusOr<kube::ApiResponse>& answer, absl::Time now) {
  --write_requests;
  const bool is_read = answer.ok() && answer->ok();
  // The object is gone, or the shim may not read it.
  const bool is_refused = answer.ok() && IsRefusal(answer->http_status);
  if (!is_read && !is_refused && !options.fence.Passed()) {
    // As with binds, only a valid answer settles it. Until then the pod keeps its node.
    delays.Add(now + Backoff(op->reads), [this, op](absl::Time) { writes_ready.push_back(op); });
  } else {
    WriteResult result;
    result.status = op->failure;
    if (is_read) ReadWritten(answer->body, op->request.resource, &result);
    op->done(result, now);
  }
  StartWrites(now);
}

void ApiWriter::State::StartStatus(absl::Time now) {
  size_t held_back = 0;  // patches of pods with another patch in flight
  while (status_ready.size() > held_back && status_requests < options.max_status_in_flight) {
    StatusPtr op = std::move(status_ready.front());
    status_ready.pop_front();
    if (op->tries == 0 && status_busy.count(op->pod.pod_uid) > 0) {
      status_ready.push_back(std::move(op));
      ++held_back;
      continue;
    }
    if (op->tries == 0) status_waiting.erase(op->pod.pod_uid);
    std::optional<std::string> body = PodStatusPatchBody(op->pod, op->change, options.wall());
    if (!body.has_value()) continue;
    status_busy.insert(op->pod.pod_uid);
    ++status_requests;
    ++op->tries;
    kube::ApiRequest request;
    request.method = kube::Method::kPatch;
    request.accept = std::string(kube::kMetadataOnly);
    request.path = PodStatusPath(op->pod.pod_namespace, op->pod.pod_name);
    request.content_type = std::string(kube::kStrategicMergePatch);
    request.body = *std::move(body);
    OUTBOARD_FAIL_POINT(before_status_patch);
    sender.Start(std::move(request), weak_from_this(), &State::OnStatus, op);
  }
}

void ApiWriter::State::OnStatus(const StatusPtr& op,
                                const absl::StatusOr<kube::ApiResponse>& answer, absl::Time now) {
  --status_requests;
  const int code = answer.ok() ? answer->http_status : 0;
  const bool retriable = answer.ok()
                             ? code == 500 || code == 503 || (code == 409 && !IsPodGone(*answer))
                             : kube::DeliveryOf(answer.status()) == kube::Delivery::kNotSent;
  if (answer.ok() && answer->ok()) {
    ++stats.status_written;
    OUTBOARD_FAIL_POINT(status_patched);
    EndStatus(op);
  } else if (retriable && op->tries < kStatusTries && !options.fence.Passed()) {
    absl::Duration delay = kStatusFirstDelay;
    for (int i = 1; i < op->tries; ++i) delay *= kStatusDelayFactor;
    delays.Add(now + delay, [this, op](absl::Time) { status_ready.push_front(op); });
  } else if (answer.ok() && IsPatchOutdated(*answer)) {
    // A pod deleted meanwhile has no status to write; its successor of the same name has its own.
    ++stats.status_outdated;
    EndStatus(op);
  } else {
    ++stats.status_failed;
    LOG_EVERY_N(WARNING, 100) << "Status patch of pod " << op->pod.pod_namespace << "/"
                              << op->pod.pod_name << " failed: "
                              << (answer.ok() ? kube::ToStatus(*answer) : answer.status());
    EndStatus(op);
  }
  StartStatus(now);
}

void ApiWriter::State::EndStatus(const StatusPtr& op) { status_busy.erase(op->pod.pod_uid); }

ApiWriter::ApiWriter(kube::ApiClient* client, Executor executor, ApiWriterOptions options)
    : state_(std::make_shared<State>(client, std::move(executor), std::move(options))) {}
ApiWriter::~ApiWriter() = default;

void ApiWriter::Bind(BindRequest request, absl::Time now, BindDone done) {
  auto op = std::make_shared<BindOperation>();
  op->request = std::move(request);
  op->done = std::move(done);
  op->started = now;
  op->reading = op->was_read = op->request.bound_by_other_scheduler;
  ++state_->stats.binds_started;
  ++state_->stats.binds_in_flight;
  state_->ready.push_back(std::move(op));
}

void ApiWriter::Write(const v1beta1::Effect& effect, const v1beta1::Pod* pod, absl::Time now,
                      WriteDone done) {
  auto op = std::make_shared<WriteOperation>();
  absl::StatusOr<EffectRequest> request = RequestOf(effect, pod, state_->options.wall());
  if (!request.ok()) return done({request.status(), ""}, now);
  op->request = *std::move(request);
  op->done = std::move(done);
  state_->writes_ready.push_back(std::move(op));
  state_->StartWrites(now);
}

void ApiWriter::PatchStatus(const kube::PodObject& pod, const StatusChange& change,
                            absl::Time now) {
  PodFacts facts = FactsOf(pod);
  auto it = state_->status_waiting.find(facts.pod_uid);
  if (it != state_->status_waiting.end()) {
    StatusOperation& waiting = *it->second;
    waiting.pod = std::move(facts);
    if (!change.reason.empty()) {
      waiting.change.reason = change.reason;
      waiting.change.message = change.message;
    }
    if (change.nominated_node_name.has_value())
      waiting.change.nominated_node_name = change.nominated_node_name;
    return;
  }
  if (!PodStatusPatchBody(facts, change, state_->options.wall()).has_value()) return;
  if (state_->status_ready.size() >= state_->options.max_status_queued) {
    ++state_->stats.status_dropped;
    return;
  }
  auto op = std::make_shared<StatusOperation>();
  op->pod = std::move(facts);
  op->change = change;
  state_->status_waiting.emplace(op->pod.pod_uid, op);
  state_->status_ready.push_back(std::move(op));
  state_->StartStatus(now);
}

void ApiWriter::Tick(absl::Time now) {
  state_->delays.RunDue(now);
  state_->StartReady(now);
  state_->StartWrites(now);
  state_->StartStatus(now);
}

absl::Time ApiWriter::NextTick() const {
  const bool may_send =
      !state_->ready.empty() && state_->bind_requests < state_->options.max_binds_in_flight;
  return may_send ? absl::InfinitePast() : state_->delays.next();
}

size_t ApiWriter::binds_in_flight() const { return state_->stats.binds_in_flight; }

ApiWriterStats ApiWriter::stats() const {
  ApiWriterStats stats = state_->stats;
  stats.status_queued = state_->status_ready.size();
  return stats;
}

}  // namespace outboard::bind
