#include "shim/hosts/grpc_host_client.h"

#include <glog/logging.h>

#include <deque>
#include <type_traits>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "shim/clock.h"
#include "shim/fail_point.h"
#include "shim/framework/answer_check.h"
#include "shim/hosts/grpc_calls.h"

namespace outboard::hosts {
namespace {

using namespace v1beta1;  // NOLINT: the contract's messages are this file's vocabulary.

constexpr absl::Duration kEndSessionDeadline = absl::Seconds(1);

void AddTraceParent(const trace_context::TraceParent& parent, grpc::ClientContext* context) {
  if (parent.text().empty()) return;
  context->AddMetadata(trace_context::kTraceParentKey, std::string(parent.text()));
}

absl::Status LostStatus() { return absl::UnavailableError("the connection to the host is lost"); }

}  // namespace

// The change stream. One write is in flight at a time; later messages wait in order.
class GrpcHostClient::SyncStream {
 public:
  explicit SyncStream(GrpcHostClient* client)
      : client_(client), started_(this), read_(this), written_(this), finished_(this) {
    stream_ = client->state_stub_->PrepareAsyncSync(&context_, client->loop_->queue());
    Begin();
    busy_since_ = SteadyNow();
    stream_->StartCall(&started_);
  }

  void Send(const SyncRequest& request) {
    if (!started_ok_ || writing_ || !waiting_.empty()) {
      waiting_.push_back(request);
      return;
    }
    Write(request);
  }
  bool busy() const { return writing_; }
  bool idle() const { return started_ok_ && !writing_ && waiting_.empty(); }
  // The start of the call, or of the write in flight.
  absl::Time busy_since() const { return busy_since_; }

  // Detaches the client; the stream deletes itself once gRPC has returned every operation.
  void Abandon() {
    client_ = nullptr;
    context_.TryCancel();
    DeleteIfIdle();
  }

 private:
  template <void (SyncStream::*method)(bool)>
  struct Step : Completion {
    explicit Step(SyncStream* stream) : stream(stream) {}
    void OnDone(bool ok) override { (stream->*method)(ok); }
    SyncStream* const stream;
  };

  void Begin() { ++operations_; }
  // May delete this.
  void End() {
    --operations_;
    if (client_ == nullptr) DeleteIfIdle();
  }
  void DeleteIfIdle() {
    if (operations_ == 0) delete this;
  }

  void Write(const SyncRequest& request) {
    writing_ = true;
    busy_since_ = SteadyNow();
    Begin();
    stream_->Write(request, &written_);
  }
  void OnStarted(bool ok) {
    // Read before End: End may delete this.
    if (client_ == nullptr || !ok) {
      if (client_ != nullptr) client_->lost_ = true;
      End();
      return;
    }
    started_ok_ = true;
    Begin();
    stream_->Read(&push_, &read_);
    WriteNext();
    End();
  }
  void WriteNext() {
    if (waiting_.empty()) return;
    SyncRequest next = std::move(waiting_.front());
    waiting_.pop_front();
    Write(next);
  }
  void OnWritten(bool ok) {
    writing_ = false;
    if (client_ != nullptr && ok) WriteNext();
    if (client_ != nullptr && !ok) client_->lost_ = true;
    End();
  }
  void OnRead(bool ok) {
    if (client_ == nullptr) {
      End();
      return;
    }
    if (ok) {
      client_->OnPush(std::move(push_));
      // What it pushes now stays in the connection's buffers.
      if (client_->lost_) return End();
      // A new one: a cleared message keeps the memory of the largest that it ever held.
      push_ = SyncResponse();
      stream_->Read(&push_, &read_);
      return;
    }
    client_->lost_ = true;
    Begin();
    stream_->Finish(&status_, &finished_);
    End();
  }
  void OnFinished(bool) { End(); }

  GrpcHostClient* client_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientAsyncReaderWriter<SyncRequest, SyncResponse>> stream_;
  Step<&SyncStream::OnStarted> started_;
  Step<&SyncStream::OnRead> read_;
  Step<&SyncStream::OnWritten> written_;
  Step<&SyncStream::OnFinished> finished_;
  SyncResponse push_;
  grpc::Status status_;
  std::deque<SyncRequest> waiting_;
  bool started_ok_ = false;
  bool writing_ = false;
  absl::Time busy_since_;
  int operations_ = 0;
};

GrpcHostClient::GrpcHostClient(HostLoop* loop, std::string session_id, HostConnection host,
                               const HostLimits& limits)
    : loop_(loop),
      session_id_(std::move(session_id)),
      channel_(std::move(host.channel)),
      instance_(host.identity.instance()),
      info_(std::move(host.info)),
      awaits_acks_(framework::HasCapability(info_, CAPABILITY_ACKS_EVERY_VERSION) &&
                   !framework::HasCapability(info_, CAPABILITY_INLINE_NODES)),
      plans_(framework::HasCapability(info_, CAPABILITY_BATCH) ||
             framework::HasCapability(info_, CAPABILITY_GROUP_PLAN)),
      host_stub_(PluginHostService::NewStub(channel_)),
      state_stub_(ClusterStateService::NewStub(channel_)),
      cycle_stub_(CycleService::NewStub(channel_)),
      plan_stub_(PlanService::NewStub(channel_)),
      pre_filter_stub_(PreFilterService::NewStub(channel_)),
      filter_stub_(FilterService::NewStub(channel_)),
      post_filter_stub_(PostFilterService::NewStub(channel_)),
      pre_score_stub_(PreScoreService::NewStub(channel_)),
      score_stub_(ScoreService::NewStub(channel_)),
      queue_sort_stub_(QueueSortService::NewStub(channel_)),
      pre_enqueue_stub_(PreEnqueueService::NewStub(channel_)),
      group_stub_(GroupService::NewStub(channel_)),
      reserve_stub_(ReserveService::NewStub(channel_)),
      permit_stub_(PermitService::NewStub(channel_)),
      pre_bind_stub_(PreBindService::NewStub(channel_)),
      bind_stub_(BindService::NewStub(channel_)),
      post_bind_stub_(PostBindService::NewStub(channel_)),
      pushes_(limits) {}

void GrpcHostClient::OnPush(SyncResponse push) {
  // A version that was never sent cannot have arrived.
  if (push.has_ack() && push.ack().version() <= sent_version_) {
    bool is_news = push.ack().version() > acknowledged_version_;
    acknowledged_version_ = std::max(acknowledged_version_, push.ack().version());
    if (const int64_t told = push.ack().time_unix_micros(); told != 0) {
      is_news = is_news || absl::FromUnixMicros(told) != acknowledged_time_;
      acknowledged_time_ = absl::FromUnixMicros(told);
    }
    if (!is_news && !pushes_.Count(push, SteadyNow())) lost_ = true;
    return;
  }
  if (!pushes_.Add(std::move(push), SteadyNow())) lost_ = true;
}

absl::Time GrpcHostClient::unread_since() const {
  return sending() ? sync_->busy_since() : absl::InfiniteFuture();
}

bool GrpcHostClient::sending() const { return sync_ != nullptr && !sync_->idle(); }

void GrpcHostClient::SendChanges(const SyncRequest& request) {
  if (lost_) return;
  sent_version_ = std::max(sent_version_, request.version());
  if (sync_ == nullptr) {
    sync_ = new SyncStream(this);
    SyncRequest first = request;
    first.set_session_id(session_id_);
    sync_->Send(first);
    return;
  }
  // The last write has usually completed during the last call. Take its completion, or this request
  // would wait for the next poll.
  if (sync_->busy()) loop_->RunReady();
  sync_->Send(request);
}

std::vector<SyncResponse> GrpcHostClient::TakePushes() { return pushes_.Take(); }

absl::Status GrpcHostClient::AwaitAcknowledgement(absl::Time deadline) {
  while (!lost_ && is_behind() && SteadyNow() < deadline) loop_->Wait(deadline);
  if (lost_) return LostStatus();
  if (!is_behind()) return absl::OkStatus();
  CallError stale;
  stale.set_reason(CallError::REASON_STALE);
  stale.set_message(absl::StrCat("the host did not acknowledge version ", sent_version_));
  stale.set_have_version(acknowledged_version_);
  return framework::CallErrorStatus(stale);
}

absl::Status GrpcHostClient::Cycle(const PlanRequest& request, absl::Time deadline,
                                   PlanResponse* response) {
  if (absl::Status ready = AwaitAcknowledgement(deadline); !ready.ok()) return ready;
  // PostFilter of the attempt may follow.
  attempt_trace_.Begin(request.cycle().header(), request.cycle().pod_uid());
  const CallTimer timer(call_observer_, Call::kCycle);
  absl::Status status = Exchange(request, deadline, response);
  OUTBOARD_FAIL_POINT(cycle_answered);
  const bool answered = status.ok() || response->has_error();
  timer.End(status.code(), answered ? response->evaluation_micros() : 0);
  return status;
}

void GrpcHostClient::OpenCycleStream() {
  if (cycle_ != nullptr) return;
  cycle_ =
      plans_ ? new CycleStream(loop_, plan_stub_.get()) : new CycleStream(loop_, cycle_stub_.get());
  cycle_introduced_ = false;
}

absl::Status GrpcHostClient::Exchange(const PlanRequest& request, absl::Time deadline,
                                      PlanResponse* response) {
  bool answered;
  OpenCycleStream();
  if (!std::exchange(cycle_introduced_, true)) {
    PlanRequest first = request;
    first.mutable_cycle()->mutable_header()->set_session_id(session_id_);
    answered = cycle_->Exchange(first, deadline, response);
  } else {
    answered = cycle_->Exchange(request, deadline, response);
  }
  if (!answered) {
    response->Clear();
    absl::Status why = absl::DeadlineExceededError("the host did not answer in time");
    if (cycle_->broken()) {
      const std::optional<grpc::Status> status = cycle_->Finish();
      why = status.has_value() ? ToAbslStatus(*status) : LostStatus();
    }
    std::exchange(cycle_, nullptr)->Abandon();
    // The change stream shows whether the host is gone or only this stream.
    loop_->RunReady();
    return why;
  }
  if (response->has_error()) return framework::CallErrorStatus(response->error());
  const uint64_t asked = request.cycle().header().attempt_id();
  if (response->attempt_id() != asked) {
    // Its later answers would be those of earlier calls, too.
    std::exchange(cycle_, nullptr)->Abandon();
    return absl::InternalError(
        absl::StrCat("the host answered attempt ", response->attempt_id(), " instead of ", asked));
  }
  return absl::OkStatus();
}

bool GrpcHostClient::StartCycle(const PlanRequest& request) {
  if (lost_ || is_behind()) return false;
  OpenCycleStream();
  if (!cycle_->CanBegin()) return false;
  PlanRequest sent = request;
  CallHeader* const header = sent.mutable_cycle()->mutable_header();
  header->clear_session_id();
  if (!std::exchange(cycle_introduced_, true)) header->set_session_id(session_id_);
  cycle_->Begin(sent);
  return true;
}

std::optional<absl::StatusOr<PlanResponse>> GrpcHostClient::TakeCycle() {
  if (!cycle_under_way()) return std::nullopt;
  if (cycle_->broken()) {
    std::exchange(cycle_, nullptr)->Abandon();
    return absl::UnavailableError("the Cycle stream broke");
  }
  PlanResponse response;
  if (!cycle_->TryTake(&response)) return std::nullopt;
  if (response.has_error()) return framework::CallErrorStatus(response.error());
  return response;
}

bool GrpcHostClient::cycle_under_way() const { return cycle_ != nullptr && cycle_->under_way(); }

void GrpcHostClient::DropCycle() {
  if (cycle_under_way()) std::exchange(cycle_, nullptr)->Abandon();
}

// A single call in flight.
template <typename Response>
class GrpcHostClient::UnaryCall final : public Completion {
 public:
  template <typename Stub, typename Prepare, typename Request>
  UnaryCall(HostLoop* loop, const CallTimer& timer, Stub* stub, Prepare prepare,
            const Request& request, const trace_context::TraceParent& trace_parent,
            absl::Time deadline)
      : loop_(loop), timer_(timer) {
    context_.set_deadline(ToGrpcDeadline(deadline));
    AddTraceParent(trace_parent, &context_);
    reader_ = (stub->*prepare)(&context_, request, loop_->queue());
    reader_->StartCall();
    reader_->Finish(&response_, &status_, this);
  }
  // gRPC enforces the deadline, and this must outlive its completion.
  ~UnaryCall() override {
    if (done_) return;
    context_.TryCancel();
    Wait();
  }
  UnaryCall(const UnaryCall&) = delete;
  UnaryCall& operator=(const UnaryCall&) = delete;

  void OnDone(bool) override {
    done_ = true;
    failure_ = ToAbslStatus(status_);
    timer_.End(failure_.code());
  }
  bool done() const { return done_; }
  absl::StatusOr<Response> Take() {
    Wait();
    if (!failure_.ok()) return std::move(failure_);
    if constexpr (std::is_same_v<Response, FilterResponse>) {
      if (absl::Status valid = framework::ExpandVerdicts(&response_); !valid.ok()) return valid;
    }
    return std::move(response_);
  }

 private:
  void Wait() { loop_->RunUntil(done_, absl::InfiniteFuture()); }

  HostLoop* const loop_;
  const CallTimer timer_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientAsyncResponseReader<Response>> reader_;
  Response response_;
  grpc::Status status_;
  absl::Status failure_;
  bool done_ = false;
};

template <typename Request>
trace_context::TraceParent GrpcHostClient::TraceParentOf(const Request& request) {
  if constexpr (std::is_same_v<Request, PreFilterRequest>)
    attempt_trace_.Begin(request.header(), request.pod_uid());
  return attempt_trace_.Of(request);
}

template <typename Response, typename Stub, typename Request, typename Prepare>
absl::StatusOr<Response> GrpcHostClient::Unary(Call call, Stub* stub, Prepare prepare,
                                               Request request, absl::Time deadline) {
  if (absl::Status ready = AwaitAcknowledgement(deadline); !ready.ok()) return ready;
  const CallTimer timer(call_observer_, call);
  return NoteAnswer(
      UnaryCall<Response>(loop_, timer, stub, prepare, request, TraceParentOf(request), deadline)
          .Take());
}

template <typename Response>
absl::StatusOr<Response> GrpcHostClient::NoteAnswer(absl::StatusOr<Response> answer) {
  // There is no stream that would report a broken connection.
  if (readiness_ != nullptr && absl::IsUnavailable(answer.status()) &&
      framework::CallErrorReason(answer.status()) == CallError::REASON_UNSPECIFIED) {
    lost_ = true;
  }
  return answer;
}

template <typename Response, typename Stub, typename Request, typename Prepare>
framework::PendingAnswer<Response> GrpcHostClient::Begin(Call call_kind, Stub* stub,
                                                         Prepare prepare, Request request,
                                                         absl::Time deadline) {
  if (absl::Status ready = AwaitAcknowledgement(deadline); !ready.ok())
    return [ready]() -> absl::StatusOr<Response> { return ready; };
  request.mutable_header()->set_session_id(session_id_);
  const CallTimer timer(call_observer_, call_kind);
  auto call = std::make_unique<UnaryCall<Response>>(loop_, timer, stub, prepare, request,
                                                    TraceParentOf(request), deadline);
  auto is_there = [call = call.get()] { return call->done(); };
  return {[this, call = std::move(call)] { return NoteAnswer(call->Take()); }, std::move(is_there)};
}

// Owns itself until the host has answered; the client may be deleted before that.
class GrpcHostClient::ConfigureCall final : public Completion {
 public:
  ConfigureCall(GrpcHostClient* client, const ConfigureRequest& request, absl::Time deadline)
      : client_(client) {
    context_.set_deadline(ToGrpcDeadline(deadline));
    reader_ = client->host_stub_->PrepareAsyncConfigure(&context_, request, client->loop_->queue());
    reader_->StartCall();
    reader_->Finish(&response_, &status_, this);
  }
  void Abandon() {
    client_ = nullptr;
    context_.TryCancel();
  }
  void OnDone(bool) override {
    if (client_ != nullptr) {
      client_->configure_ = nullptr;
      if (status_.ok()) {
        client_->configured_ = std::move(response_);
      } else {
        client_->configured_ = ToAbslStatus(status_);
      }
    }
    delete this;
  }

 private:
  GrpcHostClient* client_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientAsyncResponseReader<ConfigureResponse>> reader_;
  ConfigureResponse response_;
  grpc::Status status_;
};

GrpcHostClient::~GrpcHostClient() {
  if (sync_ != nullptr) sync_->Abandon();
  if (cycle_ != nullptr) cycle_->Abandon();
  if (configure_ != nullptr) configure_->Abandon();
  if (readiness_ != nullptr) readiness_->Abandon();
}

void GrpcHostClient::AwaitReady() {
  ProbeRequest request;
  request.set_session_id(session_id_);
  readiness_ = new ReadinessWatch(loop_, channel_, request, instance_, [this] { lost_ = true; });
}

void GrpcHostClient::StartConfigure(ConfigureRequest request, absl::Time deadline) {
  request.set_session_id(session_id_);
  request.set_instance(instance_);
  configure_ = new ConfigureCall(this, request, deadline);
}

absl::StatusOr<ConfigureResponse> GrpcHostClient::Configure(ConfigureRequest request,
                                                            absl::Time deadline) {
  StartConfigure(std::move(request), deadline);
  // gRPC enforces the deadline.
  while (!configured_.has_value()) loop_->Wait(absl::InfiniteFuture());
  return *TakeConfigured();
}

std::optional<absl::StatusOr<ConfigureResponse>> GrpcHostClient::TakeConfigured() {
  return std::exchange(configured_, std::nullopt);
}

// Owns itself until the host has answered.
class GrpcHostClient::EndSessionCall final : public Completion {
 public:
  static void Start(HostLoop* loop, PluginHostService::Stub* stub,
                    const EndSessionRequest& request) {
    auto* call = new EndSessionCall();
    call->context_.set_deadline(ToGrpcDeadline(SteadyNow() + kEndSessionDeadline));
    call->reader_ = stub->PrepareAsyncEndSession(&call->context_, request, loop->queue());
    call->reader_->StartCall();
    call->reader_->Finish(&call->response_, &call->status_, call);
  }
  void OnDone(bool) override { delete this; }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientAsyncResponseReader<EndSessionResponse>> reader_;
  EndSessionResponse response_;
  grpc::Status status_;
};

void GrpcHostClient::SendEndSession() {
  if (lost_) return;
  EndSessionRequest request;
  request.set_session_id(session_id_);
  EndSessionCall::Start(loop_, host_stub_.get(), request);
}

// Owns itself until the host has answered or the deadline has passed.
class GrpcHostClient::PostBindCall final : public Completion {
 public:
  static void Start(GrpcHostClient* client, const PostBindRequest& request, absl::Time deadline) {
    auto* call = new PostBindCall(client);
    call->context_.set_deadline(ToGrpcDeadline(deadline));
    AddTraceParent(client->TraceParentOf(request), &call->context_);
    call->reader_ = client->post_bind_stub_->PrepareAsyncPostBind(&call->context_, request,
                                                                  client->loop_->queue());
    call->reader_->StartCall();
    call->reader_->Finish(&call->response_, &call->status_, call);
  }
  void OnDone(bool) override {
    --*unanswered_;
    const absl::Status failure = ToAbslStatus(status_);
    timer_.End(failure.code());
    if (!failure.ok()) VLOG(2) << "PostBind failed: host " << instance_ << ": " << failure;
    delete this;
  }

 private:
  explicit PostBindCall(GrpcHostClient* client)
      : timer_(client->call_observer_, Call::kPostBind),
        instance_(client->instance_),
        unanswered_(client->post_binds_) {
    ++*unanswered_;
  }

  const CallTimer timer_;
  const std::string instance_;
  const std::shared_ptr<size_t> unanswered_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientAsyncResponseReader<PostBindResponse>> reader_;
  PostBindResponse response_;
  grpc::Status status_;
};

bool GrpcHostClient::SendPostBind(PostBindRequest request, absl::Time deadline) {
  if (lost_ || *post_binds_ >= kMaxPostBinds) return false;
  request.mutable_header()->set_session_id(session_id_);
  PostBindCall::Start(this, request, deadline);
  return true;
}

// All other unary calls differ only in their names.
#define OUTBOARD_UNARY(Method, Service, stub)                                                \
  absl::StatusOr<Method##Response> GrpcHostClient::Method(Method##Request request,           \
                                                          absl::Time deadline) {             \
    request.mutable_header()->set_session_id(session_id_);                                   \
    return Unary<Method##Response>(Call::k##Method, stub.get(),                              \
                                   &Service::Stub::PrepareAsync##Method, std::move(request), \
                                   deadline);                                                \
  }
OUTBOARD_UNARY(PreFilter, PreFilterService, pre_filter_stub_)
OUTBOARD_UNARY(Filter, FilterService, filter_stub_)
OUTBOARD_UNARY(PostFilter, PostFilterService, post_filter_stub_)
OUTBOARD_UNARY(PreScore, PreScoreService, pre_score_stub_)
OUTBOARD_UNARY(Score, ScoreService, score_stub_)
OUTBOARD_UNARY(SortKeys, QueueSortService, queue_sort_stub_)
OUTBOARD_UNARY(PreEnqueue, PreEnqueueService, pre_enqueue_stub_)
OUTBOARD_UNARY(GeneratePlacements, GroupService, group_stub_)
OUTBOARD_UNARY(ScorePlacements, GroupService, group_stub_)
OUTBOARD_UNARY(Reserve, ReserveService, reserve_stub_)
OUTBOARD_UNARY(Unreserve, ReserveService, reserve_stub_)
OUTBOARD_UNARY(Permit, PermitService, permit_stub_)
OUTBOARD_UNARY(PreBind, PreBindService, pre_bind_stub_)
OUTBOARD_UNARY(Bind, BindService, bind_stub_)
#undef OUTBOARD_UNARY

#define OUTBOARD_START(Method, Service, stub)                                                \
  framework::PendingAnswer<Method##Response> GrpcHostClient::Start(Method##Request request,  \
                                                                   absl::Time deadline) {    \
    return Begin<Method##Response>(Call::k##Method, stub.get(),                              \
                                   &Service::Stub::PrepareAsync##Method, std::move(request), \
                                   deadline);                                                \
  }
OUTBOARD_START(PreFilter, PreFilterService, pre_filter_stub_)
OUTBOARD_START(Filter, FilterService, filter_stub_)
OUTBOARD_START(PreScore, PreScoreService, pre_score_stub_)
OUTBOARD_START(Score, ScoreService, score_stub_)
#undef OUTBOARD_START

}  // namespace outboard::hosts
