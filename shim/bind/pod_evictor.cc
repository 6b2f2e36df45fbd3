#include "shim/bind/pod_evictor.h"

#include <glog/logging.h>

#include <deque>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "shim/bind/delays.h"
#include "shim/bind/sender.h"
#include "shim/fail_point.h"

namespace outboard::bind {
namespace {

// client-go's retry.DefaultBackoff, used by kube-scheduler for status patches, without jitter.
constexpr int kPatchTries = 4;
constexpr absl::Duration kPatchFirstDelay = absl::Milliseconds(10);
constexpr int kPatchDelayFactor = 5;

struct EvictOperation {
  EvictRequest request;
  EvictionDone done;
  bool patched = false;  // the next request is the delete
  int tries = 0;
};
using EvictPtr = std::shared_ptr<EvictOperation>;

}  // namespace

struct PodEvictor::State : std::enable_shared_from_this<PodEvictor::State> {
  State(kube::ApiClient* client, Executor executor, PodEvictorOptions given)
      : options(std::move(given)), sender(client, std::move(executor), options.fence) {}

  void StartReady(absl::Time now);
  void OnPatched(const EvictPtr& op, const absl::StatusOr<kube::ApiResponse>& answer,
                 absl::Time now);
  void OnDeleted(const EvictPtr& op, const absl::StatusOr<kube::ApiResponse>& answer,
                 absl::Time now);
  void End(const EvictPtr& op, EvictionOutcome outcome, const absl::Status& status, absl::Time now);

  PodEvictorOptions options;
  Sender sender;
  Delays delays;
  std::deque<EvictPtr> ready;
  int requests = 0;
  size_t pending = 0;
};

void PodEvictor::State::StartReady(absl::Time now) {
  while (!ready.empty() && requests < options.max_in_flight) {
    EvictPtr op = std::move(ready.front());
    ready.pop_front();
    ++requests;
    ++op->tries;
    OUTBOARD_FAIL_POINT(before_eviction);
    kube::ApiRequest request;
    if (op->patched) {
      request.method = kube::Method::kDelete;
      request.accept = std::string(kube::kMetadataOnly);
      request.path = PodPath(op->request.pod_namespace, op->request.pod_name);
      request.body = DeleteBody(op->request);
      sender.Start(std::move(request), weak_from_this(), &State::OnDeleted, op);
    } else {
      request.method = kube::Method::kPatch;
      request.accept = std::string(kube::kMetadataOnly);
      request.path = PodStatusPath(op->request.pod_namespace, op->request.pod_name);
      request.content_type = std::string(kube::kStrategicMergePatch);
      request.body = DisruptionPatchBody(op->request, options.wall());
      sender.Start(std::move(request), weak_from_this(), &State::OnPatched, op);
    }
  }
}

void PodEvictor::State::OnPatched(const EvictPtr& op,
                                  const absl::StatusOr<kube::ApiResponse>& answer, absl::Time now) {
  --requests;
  const int code = answer.ok() ? answer->http_status : 0;
  const bool retriable = answer.ok()
                             ? code == 500 || code == 503 || code == 409
                             : kube::DeliveryOf(answer.status()) == kube::Delivery::kNotSent;
  if (answer.ok() && answer->ok()) {
    op->patched = true;
    op->tries = 0;
    OUTBOARD_FAIL_POINT(victim_marked);
    ready.push_front(op);
  } else if (answer.ok() && IsPodGone(*answer)) {
    End(op, EvictionOutcome::kGone, absl::OkStatus(), now);
  } else if (retriable && op->tries < kPatchTries && !options.fence.Passed()) {
    absl::Duration delay = kPatchFirstDelay;
    for (int i = 1; i < op->tries; ++i) delay *= kPatchDelayFactor;
    delays.Add(now + delay, [this, op](absl::Time) { ready.push_back(op); });
  } else {
    End(op, EvictionOutcome::kFailed, answer.ok() ? kube::ToStatus(*answer) : answer.status(), now);
  }
  StartReady(now);
}

void PodEvictor::State::OnDeleted(const EvictPtr& op,
                                  const absl::StatusOr<kube::ApiResponse>& answer, absl::Time now) {
  --requests;
  if (answer.ok() && answer->ok()) {
    OUTBOARD_FAIL_POINT(victim_deleted);
    End(op, EvictionOutcome::kEvicted, absl::OkStatus(), now);
  } else if (answer.ok() && IsPodGone(*answer)) {
    End(op, EvictionOutcome::kGone, absl::OkStatus(), now);
  } else {
    End(op, EvictionOutcome::kFailed, answer.ok() ? kube::ToStatus(*answer) : answer.status(), now);
  }
  StartReady(now);
}

void PodEvictor::State::End(const EvictPtr& op, EvictionOutcome outcome, const absl::Status& status,
                            absl::Time now) {
  --pending;
  EvictionDone done = std::move(op->done);
  done(EvictionResult{outcome, std::string(status.message())}, now);
}

PodEvictor::PodEvictor(kube::ApiClient* client, Executor executor, PodEvictorOptions options)
    : state_(std::make_shared<State>(client, std::move(executor), std::move(options))) {}
PodEvictor::~PodEvictor() = default;

void PodEvictor::Evict(EvictRequest request, absl::Time now, EvictionDone done) {
  auto op = std::make_shared<EvictOperation>();
  op->patched = request.condition_is_set;
  op->request = std::move(request);
  op->done = std::move(done);
  ++state_->pending;
  state_->ready.push_back(std::move(op));
  state_->StartReady(now);
}

void PodEvictor::Tick(absl::Time now) {
  state_->delays.RunDue(now);
  state_->StartReady(now);
}

absl::Time PodEvictor::NextTick() const { return state_->delays.next(); }

size_t PodEvictor::pending() const { return state_->pending; }

}  // namespace outboard::bind
