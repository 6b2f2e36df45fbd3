#include "proto/testing/proxy_host.h"

#include <grpcpp/client_context.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/support/server_callback.h>
#include <grpcpp/support/sync_stream.h>

#include <chrono>
#include <deque>
#include <initializer_list>
#include <type_traits>
#include <utility>

#include "outboard/handshake/v1/handshake.grpc.pb.h"
#include "outboard/v1beta1/bind.grpc.pb.h"
#include "outboard/v1beta1/cluster_state.grpc.pb.h"
#include "outboard/v1beta1/cycle.grpc.pb.h"
#include "outboard/v1beta1/filter.grpc.pb.h"
#include "outboard/v1beta1/group.grpc.pb.h"
#include "outboard/v1beta1/permit.grpc.pb.h"
#include "outboard/v1beta1/plan.grpc.pb.h"
#include "outboard/v1beta1/plugin_host.grpc.pb.h"
#include "outboard/v1beta1/post_bind.grpc.pb.h"
#include "outboard/v1beta1/post_filter.grpc.pb.h"
#include "outboard/v1beta1/pre_bind.grpc.pb.h"
#include "outboard/v1beta1/pre_enqueue.grpc.pb.h"
#include "outboard/v1beta1/queue_sort.grpc.pb.h"
#include "outboard/v1beta1/reserve.grpc.pb.h"
#include "outboard/v1beta1/score.grpc.pb.h"

namespace outboard::testing {

using namespace v1beta1;  // NOLINT: the contract's messages are this file's vocabulary.
using handshake::v1::HandshakeRequest;
using handshake::v1::HandshakeResponse;
using handshake::v1::HandshakeService;

namespace {

constexpr int kMaxMessageBytes = 16 << 20;

grpc::Status Requested(const ProxyHooks& hooks, google::protobuf::Message* request) {
  return hooks.on_request ? hooks.on_request(request) : grpc::Status::OK;
}

}  // namespace

// A Sync stream that ProxyHost::Push can write to.
class ProxyHost::Pushed {
 public:
  virtual void Push(const SyncResponse& push) = 0;

 protected:
  ~Pushed() = default;
};

// A forwarded stream. A thread reads the other host's messages.
template <typename Service, typename Request, typename Response>
class ProxyHost::Forwarded final : public grpc::ServerBidiReactor<Request, Response>,
                                   public Pushed {
 public:
  template <typename Start>
  Forwarded(ProxyHost* proxy, grpc::CallbackServerContext* context, Start start)
      : proxy_(proxy),
        call_(grpc::ClientContext::FromCallbackServerContext(*context)),
        stub_(Service::NewStub(proxy->upstream_)),
        upstream_(start(stub_.get(), call_.get())) {
    {
      absl::MutexLock lock(&proxy_->mu_);
      proxy_->streams_.insert(this);
    }
    receiver_ = std::thread([this] { Receive(); });
    this->StartRead(&request_);
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      upstream_->WritesDone();
      return;
    }
    const grpc::Status refused = Requested(proxy_->hooks_, &request_);
    if (!refused.ok()) {
      {
        absl::MutexLock lock(&mu_);
        refused_ = refused;
      }
      call_->TryCancel();
      return;
    }
    if constexpr (!std::is_same_v<Request, SyncRequest>) {
      absl::MutexLock lock(&mu_);
      unanswered_.push_back(request_);
    }
    if (upstream_->Write(request_)) this->StartRead(&request_);
  }
  void OnWriteDone(bool ok) override {
    absl::MutexLock lock(&mu_);
    writing_.pop_front();
    if (!ok) writing_.clear();
    if (!writing_.empty()) {
      this->StartWrite(&writing_.front());
    } else if (ended_) {
      this->Finish(status_);
    }
  }
  void OnCancel() override { call_->TryCancel(); }
  void OnDone() override {
    {
      absl::MutexLock lock(&proxy_->mu_);
      proxy_->streams_.erase(this);
    }
    call_->TryCancel();
    receiver_.join();
    delete this;
  }
  void Push(const SyncResponse& push) override {
    if constexpr (std::is_same_v<Response, SyncResponse>) Send(push);
  }

 private:
  void Receive() {
    Response response;
    while (upstream_->Read(&response)) {
      if (Passes(&response)) Send(response);
    }
    const grpc::Status status = upstream_->Finish();
    absl::MutexLock lock(&mu_);
    status_ = refused_.ok() ? status : refused_;
    ended_ = true;
    if (writing_.empty()) this->Finish(status_);
  }
  bool Passes(Response* response) {
    if constexpr (std::is_same_v<Response, SyncResponse>) {
      return !proxy_->hooks_.on_push || proxy_->hooks_.on_push(response);
    } else {
      Request request;
      {
        absl::MutexLock lock(&mu_);
        request = std::move(unanswered_.front());
        unanswered_.pop_front();
      }
      grpc::Status status;
      if (proxy_->hooks_.on_answer) proxy_->hooks_.on_answer(request, response, &status);
      return true;
    }
  }
  void Send(const Response& response) {
    absl::MutexLock lock(&mu_);
    if (ended_) return;
    writing_.push_back(response);
    if (writing_.size() == 1) this->StartWrite(&writing_.front());
  }

  ProxyHost* const proxy_;
  const std::unique_ptr<grpc::ClientContext> call_;
  const std::unique_ptr<typename Service::Stub> stub_;
  const std::unique_ptr<grpc::ClientReaderWriter<Request, Response>> upstream_;
  Request request_;
  absl::Mutex mu_;
  std::deque<Request> unanswered_ ABSL_GUARDED_BY(mu_);
  std::deque<Response> writing_ ABSL_GUARDED_BY(mu_);
  bool ended_ ABSL_GUARDED_BY(mu_) = false;
  grpc::Status refused_ ABSL_GUARDED_BY(mu_);
  grpc::Status status_ ABSL_GUARDED_BY(mu_);
  std::thread receiver_;
};

class ProxyHost::Services {
 public:
  explicit Services(ProxyHost* proxy)
      : handshake_(proxy),
        info_(proxy),
        sort_(proxy),
        enqueue_(proxy),
        pre_filter_(proxy),
        filter_(proxy),
        post_filter_(proxy),
        pre_score_(proxy),
        score_(proxy),
        group_(proxy),
        reserve_(proxy),
        permit_(proxy),
        pre_bind_(proxy),
        bind_(proxy),
        post_bind_(proxy),
        state_(proxy),
        cycle_(proxy),
        plan_(proxy) {}

  void Register(grpc::ServerBuilder* builder) {
    for (grpc::Service* service : std::initializer_list<grpc::Service*>{
             &handshake_, &info_, &sort_, &enqueue_, &pre_filter_, &filter_, &post_filter_,
             &pre_score_, &score_, &group_, &reserve_, &permit_, &pre_bind_, &bind_, &post_bind_,
             &state_, &cycle_, &plan_}) {
      builder->RegisterService(service);
    }
  }

 private:
#define OUTBOARD_PROXY_RPC(Contract, Method)                                             \
  grpc::Status Method(grpc::ServerContext* context, const Method##Request* original,     \
                      Method##Response* response) override {                             \
    Method##Request request = *original;                                                 \
    grpc::Status status = Requested(proxy->hooks_, &request);                            \
    if (!status.ok()) return status;                                                     \
    const auto call = grpc::ClientContext::FromServerContext(*context);                  \
    status = Contract::NewStub(proxy->upstream_)->Method(call.get(), request, response); \
    if (proxy->hooks_.on_answer) proxy->hooks_.on_answer(request, response, &status);    \
    return status;                                                                       \
  }
#define OUTBOARD_PROXY_SERVICE(Class, Contract, ...)   \
  struct Class final : Contract::Service {             \
    explicit Class(ProxyHost* proxy) : proxy(proxy) {} \
    __VA_ARGS__                                        \
    ProxyHost* const proxy;                            \
  };
  OUTBOARD_PROXY_SERVICE(Greeting, HandshakeService,
                         OUTBOARD_PROXY_RPC(HandshakeService, Handshake))
  OUTBOARD_PROXY_SERVICE(Info, PluginHostService,
                         OUTBOARD_PROXY_RPC(PluginHostService, GetHostInfo)
                             OUTBOARD_PROXY_RPC(PluginHostService, Configure)
                                 OUTBOARD_PROXY_RPC(PluginHostService, Probe)
                                     OUTBOARD_PROXY_RPC(PluginHostService, EndSession)
                                         OUTBOARD_PROXY_RPC(PluginHostService, Drain))
  OUTBOARD_PROXY_SERVICE(Sort, QueueSortService, OUTBOARD_PROXY_RPC(QueueSortService, SortKeys))
  OUTBOARD_PROXY_SERVICE(Enqueue, PreEnqueueService,
                         OUTBOARD_PROXY_RPC(PreEnqueueService, PreEnqueue))
  OUTBOARD_PROXY_SERVICE(BeforeFilter, PreFilterService,
                         OUTBOARD_PROXY_RPC(PreFilterService, PreFilter))
  OUTBOARD_PROXY_SERVICE(Filtering, FilterService, OUTBOARD_PROXY_RPC(FilterService, Filter))
  OUTBOARD_PROXY_SERVICE(AfterFilter, PostFilterService,
                         OUTBOARD_PROXY_RPC(PostFilterService, PostFilter))
  OUTBOARD_PROXY_SERVICE(BeforeScore, PreScoreService,
                         OUTBOARD_PROXY_RPC(PreScoreService, PreScore))
  OUTBOARD_PROXY_SERVICE(Scoring, ScoreService, OUTBOARD_PROXY_RPC(ScoreService, Score))
  OUTBOARD_PROXY_SERVICE(Grouping, GroupService,
                         OUTBOARD_PROXY_RPC(GroupService, GeneratePlacements)
                             OUTBOARD_PROXY_RPC(GroupService, ScorePlacements))
  OUTBOARD_PROXY_SERVICE(Reserving, ReserveService,
                         OUTBOARD_PROXY_RPC(ReserveService, Reserve)
                             OUTBOARD_PROXY_RPC(ReserveService, Unreserve))
  OUTBOARD_PROXY_SERVICE(Permitting, PermitService, OUTBOARD_PROXY_RPC(PermitService, Permit))
  OUTBOARD_PROXY_SERVICE(BeforeBind, PreBindService, OUTBOARD_PROXY_RPC(PreBindService, PreBind))
  OUTBOARD_PROXY_SERVICE(Binding, BindService, OUTBOARD_PROXY_RPC(BindService, Bind))
  OUTBOARD_PROXY_SERVICE(AfterBind, PostBindService, OUTBOARD_PROXY_RPC(PostBindService, PostBind))
#undef OUTBOARD_PROXY_SERVICE
#undef OUTBOARD_PROXY_RPC

  struct State final : ClusterStateService::CallbackService {
    explicit State(ProxyHost* proxy) : proxy(proxy) {}
    grpc::ServerBidiReactor<SyncRequest, SyncResponse>* Sync(
        grpc::CallbackServerContext* context) override {
      return new Forwarded<ClusterStateService, SyncRequest, SyncResponse>(
          proxy, context, [](auto* stub, auto* call) { return stub->Sync(call); });
    }
    ProxyHost* const proxy;
  };
  struct Cycling final : CycleService::CallbackService {
    explicit Cycling(ProxyHost* proxy) : proxy(proxy) {}
    grpc::ServerBidiReactor<CycleRequest, CycleResponse>* Cycle(
        grpc::CallbackServerContext* context) override {
      return new Forwarded<CycleService, CycleRequest, CycleResponse>(
          proxy, context, [](auto* stub, auto* call) { return stub->Cycle(call); });
    }
    ProxyHost* const proxy;
  };
  struct Planning final : PlanService::CallbackService {
    explicit Planning(ProxyHost* proxy) : proxy(proxy) {}
    grpc::ServerBidiReactor<PlanRequest, PlanResponse>* Plan(
        grpc::CallbackServerContext* context) override {
      return new Forwarded<PlanService, PlanRequest, PlanResponse>(
          proxy, context, [](auto* stub, auto* call) { return stub->Plan(call); });
    }
    ProxyHost* const proxy;
  };

  Greeting handshake_;
  Info info_;
  Sort sort_;
  Enqueue enqueue_;
  BeforeFilter pre_filter_;
  Filtering filter_;
  AfterFilter post_filter_;
  BeforeScore pre_score_;
  Scoring score_;
  Grouping group_;
  Reserving reserve_;
  Permitting permit_;
  BeforeBind pre_bind_;
  Binding bind_;
  AfterBind post_bind_;
  State state_;
  Cycling cycle_;
  Planning plan_;
};

ProxyHost::ProxyHost(std::shared_ptr<grpc::Channel> upstream, ProxyHooks hooks)
    : upstream_(std::move(upstream)),
      hooks_(std::move(hooks)),
      services_(std::make_unique<Services>(this)) {}

std::unique_ptr<ProxyHost> ProxyHost::Start(const std::string& address,
                                            std::shared_ptr<grpc::Channel> upstream,
                                            ProxyHooks hooks) {
  std::unique_ptr<ProxyHost> proxy(new ProxyHost(std::move(upstream), std::move(hooks)));
  proxy->address_ = address;
  grpc::ServerBuilder builder;
  builder.AddListeningPort(address, grpc::InsecureServerCredentials());
  builder.SetMaxReceiveMessageSize(kMaxMessageBytes);
  proxy->services_->Register(&builder);
  proxy->server_ = builder.BuildAndStart();
  if (proxy->server_ == nullptr) return nullptr;
  // Not on a hook's thread, because the server's shutdown waits for it.
  proxy->end_ = std::thread([p = proxy.get()] {
    {
      absl::MutexLock lock(&p->mu_);
      p->mu_.Await(absl::Condition(&p->dying_));
    }
    p->server_->Shutdown(std::chrono::system_clock::now());
  });
  return proxy;
}

ProxyHost::~ProxyHost() {
  Die();
  if (!end_.joinable()) return;
  end_.join();
  server_->Wait();
}

void ProxyHost::Die() {
  absl::MutexLock lock(&mu_);
  dying_ = true;
}

void ProxyHost::Push(const SyncResponse& push) {
  absl::MutexLock lock(&mu_);
  for (Pushed* stream : streams_) stream->Push(push);
}

}  // namespace outboard::testing
