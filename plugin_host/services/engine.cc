#include "plugin_host/services/engine.h"

#include <grpcpp/alarm.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/server_posix.h>

#include <algorithm>
#include <atomic>
#include <type_traits>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "glog/logging.h"
#include "outboard/handshake/v1/handshake.grpc.pb.h"
#include "outboard/v1alpha1/plugin_host.grpc.pb.h"
#include "outboard/v1beta1/bind.grpc.pb.h"
#include "outboard/v1beta1/filter.grpc.pb.h"
#include "outboard/v1beta1/group.grpc.pb.h"
#include "outboard/v1beta1/permit.grpc.pb.h"
#include "outboard/v1beta1/plugin_host.grpc.pb.h"
#include "outboard/v1beta1/post_bind.grpc.pb.h"
#include "outboard/v1beta1/post_filter.grpc.pb.h"
#include "outboard/v1beta1/pre_bind.grpc.pb.h"
#include "outboard/v1beta1/pre_enqueue.grpc.pb.h"
#include "outboard/v1beta1/queue_sort.grpc.pb.h"
#include "outboard/v1beta1/reserve.grpc.pb.h"
#include "outboard/v1beta1/score.grpc.pb.h"
#include "plugin_host/services/completion.h"
#include "plugin_host/services/cycle_stream.h"
#include "plugin_host/services/sync_stream.h"
#include "plugin_host/services/unary_call.h"

namespace outboard::services {
namespace {

using runtime::CallStatus;
using runtime::Session;

constexpr int kMaxReceiveBytes = 16 << 20;
constexpr int kMaxMetadataBytes = 8 << 10;
constexpr int kMaxConcurrentStreams = 1024;
constexpr size_t kMaxBuffersBytes = size_t{512} << 20;
constexpr absl::Duration kTick = absl::Seconds(1);
// Clients may ping every 10 s, also without calls; gRPC's default allows a ping in 5 minutes, and
// closes the connection after three more.
constexpr int kMinPingIntervalMs = 9'000;

HandlerResult Done(CallStatus status) {
  HandlerResult result;
  result.status = std::move(status);
  return result;
}

HandlerResult NotYet(const Session& session, CallStatus otherwise) {
  HandlerResult result;
  result.session = session.id();
  result.otherwise = std::move(otherwise);
  return result;
}

}  // namespace

// Everything on the engine's thread.
class Engine::Impl {
 public:
  Impl(runtime::HostIdentity identity, const sdk::PluginRegistry* registry,
       runtime::MetricSink* metrics)
      : host_(std::move(identity), registry, metrics) {}

  void Register(grpc::ServerBuilder* builder) {
    builder->RegisterService(&handshake_);
    builder->RegisterService(&old_plugin_host_);
    builder->RegisterService(&plugin_host_);
    builder->RegisterService(&cluster_state_);
    builder->RegisterService(&cycle_);
    builder->RegisterService(&plan_);
    builder->RegisterService(&queue_sort_);
    builder->RegisterService(&pre_enqueue_);
    builder->RegisterService(&pre_filter_);
    builder->RegisterService(&filter_);
    builder->RegisterService(&post_filter_);
    builder->RegisterService(&pre_score_);
    builder->RegisterService(&score_);
    builder->RegisterService(&group_);
    builder->RegisterService(&reserve_);
    builder->RegisterService(&permit_);
    builder->RegisterService(&pre_bind_);
    builder->RegisterService(&bind_);
    builder->RegisterService(&post_bind_);
    queue_ = builder->AddCompletionQueue();
  }

  // Serves until RequestStop.
  void Run();
  // From any thread: the engine's thread empties the queue and returns from Run. Only the alarm
  // signals it, because an alarm must not be set on a queue that is already shut down.
  void RequestStop() {
    stop_alarm_.Set(queue_.get(), std::chrono::system_clock::now(),
                    static_cast<Completion*>(&stop_));
  }
  // Shuts the queue down and handles what is left in it. No operation may be started on a queue
  // after shutdown, so this runs on the thread that starts operations.
  void EmptyQueue() {
    if (queue_ == nullptr) return;
    queue_->Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (queue_->Next(&tag, &ok)) static_cast<Completion*>(tag)->OnAbandoned();
  }
  // From any thread: begins to drain; notifies `drained_` once no attempt is left.
  void RequestDrain() {
    if (drain_requested_.exchange(true)) return;
    drain_alarm_.Set(queue_.get(), std::chrono::system_clock::now(),
                     static_cast<Completion*>(&woken_));
  }
  int connected_sessions() const { return connected_sessions_; }
  void SetWarning(std::string warning) {
    absl::MutexLock lock(&warning_mu_);
    warning_ = std::move(warning);
  }
  bool WaitDrained(absl::Duration timeout) {
    return drained_.WaitForNotificationWithTimeout(timeout);
  }

 private:
  // Only wakes the loop.
  class Woken final : public Completion {
   public:
    void OnDone(bool) override {}
    void OnAbandoned() override {}
  };

  class Stop final : public Completion {
   public:
    void OnDone(bool) override { requested = true; }
    void OnAbandoned() override {}
    bool requested = false;
  };

  void ListenToEverything();
  void ListenToSingleCalls();
  // Rejects new attempts and new sessions from now on.
  void BeginDrain(absl::string_view why);
  void Housekeeping(absl::Time now);

  // `Service` is the base of the generated service that declares the method.
  template <typename Service, typename Request, typename Response, typename Handler>
  void Listen(std::type_identity_t<Service>* service,
              void (Service::*request_method)(grpc::ServerContext*, Request*,
                                              grpc::ServerAsyncResponseWriter<Response>*,
                                              grpc::CompletionQueue*, grpc::ServerCompletionQueue*,
                                              void*),
              Handler handler) {
    using Call = UnaryCall<Service, Request, Response>;
    Call::Listen(std::make_shared<const typename Call::Method>(typename Call::Method{
        service, request_method, queue_.get(), &parking_, std::move(handler)}));
  }

  // A call at exactly its version of a session: `call(session, request, now, response)`.
  template <typename Request, typename Response, typename Fn>
  auto AtVersion(Fn call) {
    return [this, call](const Request& request, absl::Time now, Response* response) {
      Session* session = nullptr;
      if (CallStatus status = host_.FindSession(request.header(), &session); !status.ok()) {
        return Done(std::move(status));
      }
      switch (session->Reached(request.header())) {
        case Session::Readiness::kNotYet:
          return NotYet(*session, CallStatus::Stale(session->version()));
        case Session::Readiness::kPast:
          return Done(CallStatus::Stale(session->version()));
        case Session::Readiness::kReady:
          break;
      }
      return Done(call(*session, request, now, response));
    };
  }

  // A call that waits for no version, or for at least the version that it names. Streams are not
  // ordered relative to each other, so with `waits_for_objects` it also waits for an unknown
  // object.
  template <typename Request, typename Response, typename Fn>
  auto AtLeast(bool waits_for_objects, Fn call) {
    return [this, waits_for_objects, call](const Request& request, absl::Time now,
                                           Response* response) {
      Session* session = nullptr;
      if (CallStatus status = host_.FindSession(request.header(), &session); !status.ok()) {
        return Done(std::move(status));
      }
      if (session->version() < request.header().min_version()) {
        return NotYet(*session, CallStatus::Stale(session->version()));
      }
      CallStatus status = call(*session, request, now, response);
      if (waits_for_objects && status.reason() == v1beta1::CallError::REASON_OBJECT_UNKNOWN) {
        return NotYet(*session, std::move(status));
      }
      return Done(std::move(status));
    };
  }

  handshake::v1::HandshakeService::AsyncService handshake_;
  v1alpha1::PluginHostService::AsyncService old_plugin_host_;
  v1beta1::PluginHostService::AsyncService plugin_host_;
  v1beta1::ClusterStateService::AsyncService cluster_state_;
  v1beta1::CycleService::AsyncService cycle_;
  v1beta1::PlanService::AsyncService plan_;
  v1beta1::QueueSortService::AsyncService queue_sort_;
  v1beta1::PreEnqueueService::AsyncService pre_enqueue_;
  v1beta1::PreFilterService::AsyncService pre_filter_;
  v1beta1::FilterService::AsyncService filter_;
  v1beta1::PostFilterService::AsyncService post_filter_;
  v1beta1::PreScoreService::AsyncService pre_score_;
  v1beta1::ScoreService::AsyncService score_;
  v1beta1::GroupService::AsyncService group_;
  v1beta1::ReserveService::AsyncService reserve_;
  v1beta1::PermitService::AsyncService permit_;
  v1beta1::PreBindService::AsyncService pre_bind_;
  v1beta1::BindService::AsyncService bind_;
  v1beta1::PostBindService::AsyncService post_bind_;

  runtime::Host host_;
  DeferredCalls parking_;
  SyncStreams sync_streams_;
  CycleStreams<CycleRpc> cycle_streams_;
  CycleStreams<PlanRpc> plan_streams_;
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;

  std::atomic<int> connected_sessions_{0};
  absl::Mutex warning_mu_;
  std::string warning_ ABSL_GUARDED_BY(warning_mu_);
  std::atomic<bool> drain_requested_{false};
  absl::Notification drained_;
  grpc::Alarm drain_alarm_;
  grpc::Alarm stop_alarm_;
  Woken woken_;
  Stop stop_;
};

void Engine::Impl::ListenToEverything() {
  using namespace v1beta1;  // NOLINT: the contract's messages are this function's vocabulary.
  sync_streams_ = {&cluster_state_, queue_.get(), &host_, &parking_, {}};
  cycle_streams_ = {&cycle_, queue_.get(), &host_, &parking_};
  plan_streams_ = {&plan_, queue_.get(), &host_, &parking_};
  SyncStream::Listen(&sync_streams_);
  CycleStream<CycleRpc>::Listen(&cycle_streams_);
  CycleStream<PlanRpc>::Listen(&plan_streams_);
  ListenToSingleCalls();

  using handshake::v1::HandshakeRequest;
  using handshake::v1::HandshakeResponse;
  Listen(&handshake_, &handshake::v1::HandshakeService::AsyncService::RequestHandshake,
         [this](const HandshakeRequest& request, absl::Time, HandshakeResponse* response) {
           VLOG(1) << "Handshake with shim " << request.build();
           host_.Handshake(response);
           return Done(CallStatus::Ok());
         });
  // A shim of version 0.1 asks here, and says in its log which versions the two speak.
  Listen(&old_plugin_host_, &v1alpha1::PluginHostService::AsyncService::RequestGetHostInfo,
         [this](const v1alpha1::GetHostInfoRequest&, absl::Time,
                v1alpha1::GetHostInfoResponse* response) {
           HandshakeResponse identity;
           host_.Handshake(&identity);
           *response->mutable_contract_versions() = identity.contract_versions();
           response->set_host_instance(identity.instance());
           response->set_build(identity.build());
           return Done(CallStatus::Ok());
         });
  Listen(&plugin_host_, &PluginHostService::AsyncService::RequestGetHostInfo,
         [this](const GetHostInfoRequest&, absl::Time, GetHostInfoResponse* response) {
           host_.GetHostInfo(response);
           return Done(CallStatus::Ok());
         });
  Listen(&plugin_host_, &PluginHostService::AsyncService::RequestConfigure,
         [this](const ConfigureRequest& request, absl::Time now, ConfigureResponse* response) {
           return Done(host_.Configure(request, now, response));
         });
  Listen(&plugin_host_, &PluginHostService::AsyncService::RequestProbe,
         [this](const ProbeRequest& request, absl::Time, ProbeResponse* response) {
           host_.Probe(request, response);
           absl::MutexLock lock(&warning_mu_);
           response->set_warning(warning_);
           return Done(CallStatus::Ok());
         });
  Listen(&plugin_host_, &PluginHostService::AsyncService::RequestEndSession,
         [this](const EndSessionRequest& request, absl::Time, EndSessionResponse* response) {
           host_.EndSession(request, response);
           return Done(CallStatus::Ok());
         });
  Listen(&plugin_host_, &PluginHostService::AsyncService::RequestDrain,
         [this](const DrainRequest&, absl::Time, DrainResponse* response) {
           BeginDrain("asked by a peer");
           response->set_attempts_in_flight(host_.attempts_in_flight());
           return Done(CallStatus::Ok());
         });
}

void Engine::Impl::ListenToSingleCalls() {
  using namespace v1beta1;  // NOLINT
  Listen(&pre_filter_, &PreFilterService::AsyncService::RequestPreFilter,
         AtVersion<PreFilterRequest, PreFilterResponse>(
             [](Session& session, const auto& request, absl::Time now, auto* response) {
               return session.PreFilter(request.header(), request.pod_uid(), now, response);
             }));
  Listen(&filter_, &FilterService::AsyncService::RequestFilter,
         AtVersion<FilterRequest, FilterResponse>(
             [](Session& session, const auto& request, absl::Time now, auto* response) {
               return session.Filter(request.header(), request, now, response);
             }));
  Listen(&post_filter_, &PostFilterService::AsyncService::RequestPostFilter,
         AtVersion<PostFilterRequest, PostFilterResponse>(
             [](Session& session, const auto& request, absl::Time now, auto* response) {
               return session.PostFilter(request, now, response);
             }));
  Listen(&pre_score_, &PreScoreService::AsyncService::RequestPreScore,
         AtVersion<PreScoreRequest, PreScoreResponse>(
             [](Session& session, const auto& request, absl::Time now, auto* response) {
               return session.PreScore(request.header(), request, now, response);
             }));
  Listen(&score_, &ScoreService::AsyncService::RequestScore,
         AtVersion<ScoreRequest, ScoreResponse>(
             [](Session& session, const auto& request, absl::Time now, auto* response) {
               return session.Score(request.header(), request, now, response);
             }));
  Listen(&group_, &GroupService::AsyncService::RequestGeneratePlacements,
         AtVersion<GeneratePlacementsRequest, GeneratePlacementsResponse>(
             [](Session& session, const auto& request, absl::Time now, auto* response) {
               return session.GeneratePlacements(request, now, response);
             }));
  Listen(&group_, &GroupService::AsyncService::RequestScorePlacements,
         AtVersion<ScorePlacementsRequest, ScorePlacementsResponse>(
             [](Session& session, const auto& request, absl::Time now, auto* response) {
               return session.ScorePlacements(request, now, response);
             }));
  Listen(&queue_sort_, &QueueSortService::AsyncService::RequestSortKeys,
         AtLeast<SortKeysRequest, SortKeysResponse>(
             true, [](Session& session, const auto& request, absl::Time, auto* response) {
               response->Clear();
               return session.SortKeys(request, response);
             }));
  Listen(&pre_enqueue_, &PreEnqueueService::AsyncService::RequestPreEnqueue,
         AtLeast<PreEnqueueRequest, PreEnqueueResponse>(
             true, [](Session& session, const auto& request, absl::Time now, auto* response) {
               response->Clear();
               return session.PreEnqueue(request, now, response);
             }));
  Listen(&reserve_, &ReserveService::AsyncService::RequestReserve,
         AtLeast<ReserveRequest, ReserveResponse>(
             false, [](Session& session, const auto& request, absl::Time now, auto* response) {
               return session.Reserve(request, now, response);
             }));
  Listen(&reserve_, &ReserveService::AsyncService::RequestUnreserve,
         AtLeast<UnreserveRequest, UnreserveResponse>(
             false, [](Session& session, const auto& request, absl::Time now, auto* response) {
               return session.Unreserve(request, now, response);
             }));
  Listen(&permit_, &PermitService::AsyncService::RequestPermit,
         AtLeast<PermitRequest, PermitResponse>(
             false, [](Session& session, const auto& request, absl::Time now, auto* response) {
               return session.Permit(request, now, response);
             }));
  Listen(&pre_bind_, &PreBindService::AsyncService::RequestPreBind,
         AtLeast<PreBindRequest, PreBindResponse>(
             false, [](Session& session, const auto& request, absl::Time now, auto* response) {
               return session.PreBind(request, now, response);
             }));
  Listen(&bind_, &BindService::AsyncService::RequestBind,
         AtLeast<BindRequest, BindResponse>(
             false, [](Session& session, const auto& request, absl::Time now, auto* response) {
               return session.Bind(request, now, response);
             }));
  Listen(&post_bind_, &PostBindService::AsyncService::RequestPostBind,
         AtLeast<PostBindRequest, PostBindResponse>(
             false, [](Session& session, const auto& request, absl::Time now, auto*) {
               return session.PostBind(request, now);
             }));
}

void Engine::Impl::BeginDrain(absl::string_view why) {
  if (host_.draining()) return;
  LOG(INFO) << "Draining with " << host_.attempts_in_flight() << " attempts in progress: " << why;
  host_.DrainAll();
}

void Engine::Impl::Housekeeping(absl::Time now) {
  host_.Tick(now);
  for (const auto& [session, stream] : sync_streams_.by_session) stream->AckIfBehind();
}

void Engine::Impl::Run() {
  ListenToEverything();
  absl::Time next_tick = absl::Now() + kTick;
  while (!stop_.requested) {
    const absl::Time deadline = std::min(next_tick, parking_.NextDeadline());
    void* tag = nullptr;
    bool ok = false;
    const auto status = queue_->AsyncNext(&tag, &ok, absl::ToChronoTime(deadline));
    if (status == grpc::CompletionQueue::GOT_EVENT) static_cast<Completion*>(tag)->OnDone(ok);
    if (status == grpc::CompletionQueue::TIMEOUT || !parking_.empty()) {
      parking_.Expire(absl::Now());
    }
    if (status == grpc::CompletionQueue::TIMEOUT || absl::Now() >= next_tick) {
      const absl::Time now = absl::Now();
      if (now >= next_tick) {
        next_tick = now + kTick;
        Housekeeping(now);
      }
    }
    connected_sessions_.store(host_.connected_sessions(), std::memory_order_relaxed);
    if (drain_requested_) BeginDrain("asked by this process");
    if (host_.draining() && !drained_.HasBeenNotified() && host_.attempts_in_flight() == 0) {
      drained_.Notify();
    }
  }
  EmptyQueue();
}

Engine::Engine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

absl::StatusOr<std::unique_ptr<Engine>> Engine::Start(const Options& options,
                                                      const sdk::PluginRegistry* registry) {
  std::unique_ptr<Engine> engine(
      new Engine(std::make_unique<Impl>(options.identity, registry, options.metrics)));
  grpc::ServerBuilder builder;
  if (options.socket_path.empty()) {
    builder.AddListeningPort(options.address, options.credentials, &engine->port_);
    const auto set = [&builder](const char* name, int value) {
      builder.AddChannelArgument(name, value);
    };
    set(GRPC_ARG_KEEPALIVE_TIME_MS,
        static_cast<int>(options.ping_interval / absl::Milliseconds(1)));
    set(GRPC_ARG_KEEPALIVE_TIMEOUT_MS,
        static_cast<int>(options.ping_timeout / absl::Milliseconds(1)));
    set(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
    // gRPC would stop after two pings without data between them, and then notice nothing.
    set(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
    set(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, kMinPingIntervalMs);
  }
  builder.SetMaxReceiveMessageSize(kMaxReceiveBytes);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kMaxMetadataBytes);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxConcurrentStreams);
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  grpc::ResourceQuota quota("outboard-host");
  quota.Resize(kMaxBuffersBytes);
  builder.SetResourceQuota(quota);
  engine->impl_->Register(&builder);
  engine->server_ = builder.BuildAndStart();
  if (engine->server_ == nullptr || (engine->port_ == 0 && options.socket_path.empty())) {
    return absl::UnavailableError(absl::StrCat("cannot listen on ", options.address));
  }
  if (!options.socket_path.empty()) {
    auto acceptor =
        UnixAcceptor::Listen(options.socket_path, options.socket_mode, options.allowed_uids);
    if (!acceptor.ok()) return acceptor.status();
    engine->acceptor_ = *std::move(acceptor);
    engine->acceptor_->Serve(
        [server = engine->server_.get()](int fd) { grpc::AddInsecureChannelFromFd(server, fd); });
  }
  engine->thread_ = std::thread([impl = engine->impl_.get()] { impl->Run(); });
  return engine;
}

void Engine::SetWarning(std::string warning) { impl_->SetWarning(std::move(warning)); }

bool Engine::Drain(absl::Duration timeout) {
  impl_->RequestDrain();
  return impl_->WaitDrained(timeout);
}

int Engine::connected_sessions() const { return impl_->connected_sessions(); }

Engine::~Engine() {
  acceptor_ = nullptr;
  if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
  // A queue must be shut down and empty before its destruction.
  if (thread_.joinable()) {
    impl_->RequestStop();
    thread_.join();
  } else {
    impl_->EmptyQueue();
  }
}

}  // namespace outboard::services
