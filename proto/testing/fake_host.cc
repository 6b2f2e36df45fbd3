#include "proto/testing/fake_host.h"

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
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
#include "proto/call_errors/call_errors.h"

namespace outboard::testing {

using namespace v1beta1;  // NOLINT: the contract's messages are this file's vocabulary.
using handshake::v1::HandshakeRequest;
using handshake::v1::HandshakeResponse;
using handshake::v1::HandshakeService;

namespace {

constexpr size_t kRequestsKept = 1000;
constexpr char kPlugin[] = "Fake";

void DescribePlugin(GetHostInfoResponse* info) {
  PluginInfo* plugin = info->add_plugins();
  plugin->set_name(kPlugin);
  for (int point = EXTENSION_POINT_PRE_ENQUEUE; point <= EXTENSION_POINT_PERMIT; ++point) {
    if (point != EXTENSION_POINT_POST_FILTER)
      plugin->add_extension_points(static_cast<ExtensionPoint>(point));
  }
}

void AllFeasible(int count, FilterResponse* response) {
  response->set_processed(count);
  std::string bits((count + 7) / 8, '\0');
  for (int i = 0; i < count; ++i) bits[i / 8] |= static_cast<char>(1 << (i % 8));
  response->set_feasible(bits);
}

const CycleRequest& CycleOf(const CycleRequest& request) { return request; }
const CycleRequest& CycleOf(const PlanRequest& request) { return request.cycle(); }

int CountFeasible(const FilterResponse& response) {
  int count = 0;
  for (unsigned char byte : response.feasible()) count += __builtin_popcount(byte);
  return count;
}

}  // namespace

grpc::Status CallFailure(CallError::Reason reason, const std::string& message,
                         int64_t have_version) {
  CallError error;
  error.set_reason(reason);
  error.set_message(message);
  error.set_have_version(have_version);
  return call_errors::ToGrpcStatus(error);
}

// One small class per service, because methods of the same name would collide in one object.
class FakeHost::Services {
 public:
  explicit Services(FakeHost* host)
      : host_(host),
        handshake_(host),
        info_(host),
        sort_(host),
        enqueue_(host),
        pre_filter_(host),
        filter_(host),
        post_filter_(host),
        pre_score_(host),
        score_(host),
        group_(host),
        reserve_(host),
        permit_(host),
        pre_bind_(host),
        bind_(host),
        post_bind_(host),
        state_(host),
        cycle_(host),
        plan_(host) {}

  void Register(grpc::ServerBuilder* builder) {
    for (grpc::Service* service : std::initializer_list<grpc::Service*>{
             &handshake_, &info_, &sort_, &enqueue_, &pre_filter_, &filter_, &post_filter_,
             &pre_score_, &score_, &group_, &reserve_, &permit_, &pre_bind_, &bind_, &post_bind_,
             &state_, &cycle_, &plan_}) {
      builder->RegisterService(service);
    }
  }

 private:
  static grpc::Status Unary(FakeHost* host, grpc::ServerContext* context,
                            const google::protobuf::Message& request,
                            google::protobuf::Message* response) {
    host->Record(request, *context);
    const Fault fault = host->TakeFault(request.GetDescriptor(), context);
    return fault.status.ok() ? host->Respond(request, response) : fault.status;
  }

#define OUTBOARD_FAKE_RPC(Method)                                                   \
  grpc::Status Method(grpc::ServerContext* context, const Method##Request* request, \
                      Method##Response* response) override {                        \
    return Unary(host, context, *request, response);                                \
  }
#define OUTBOARD_FAKE_SERVICE(Class, Contract, ...) \
  struct Class final : Contract::Service {          \
    explicit Class(FakeHost* host) : host(host) {}  \
    __VA_ARGS__                                     \
    FakeHost* const host;                           \
  };
  OUTBOARD_FAKE_SERVICE(Greeting, HandshakeService, OUTBOARD_FAKE_RPC(Handshake))
  OUTBOARD_FAKE_SERVICE(Info, PluginHostService,
                        OUTBOARD_FAKE_RPC(GetHostInfo) OUTBOARD_FAKE_RPC(Configure)
                            OUTBOARD_FAKE_RPC(Probe) OUTBOARD_FAKE_RPC(EndSession)
                                OUTBOARD_FAKE_RPC(Drain))
  OUTBOARD_FAKE_SERVICE(Sort, QueueSortService, OUTBOARD_FAKE_RPC(SortKeys))
  OUTBOARD_FAKE_SERVICE(Enqueue, PreEnqueueService, OUTBOARD_FAKE_RPC(PreEnqueue))
  OUTBOARD_FAKE_SERVICE(BeforeFilter, PreFilterService, OUTBOARD_FAKE_RPC(PreFilter))
  OUTBOARD_FAKE_SERVICE(Filtering, FilterService, OUTBOARD_FAKE_RPC(Filter))
  OUTBOARD_FAKE_SERVICE(AfterFilter, PostFilterService, OUTBOARD_FAKE_RPC(PostFilter))
  OUTBOARD_FAKE_SERVICE(BeforeScore, PreScoreService, OUTBOARD_FAKE_RPC(PreScore))
  OUTBOARD_FAKE_SERVICE(Scoring, ScoreService, OUTBOARD_FAKE_RPC(Score))
  OUTBOARD_FAKE_SERVICE(Grouping, GroupService,
                        OUTBOARD_FAKE_RPC(GeneratePlacements) OUTBOARD_FAKE_RPC(ScorePlacements))
  OUTBOARD_FAKE_SERVICE(Reserving, ReserveService,
                        OUTBOARD_FAKE_RPC(Reserve) OUTBOARD_FAKE_RPC(Unreserve))
  OUTBOARD_FAKE_SERVICE(Permitting, PermitService, OUTBOARD_FAKE_RPC(Permit))
  OUTBOARD_FAKE_SERVICE(BeforeBind, PreBindService, OUTBOARD_FAKE_RPC(PreBind))
  OUTBOARD_FAKE_SERVICE(Binding, BindService, OUTBOARD_FAKE_RPC(Bind))
  OUTBOARD_FAKE_SERVICE(AfterBind, PostBindService, OUTBOARD_FAKE_RPC(PostBind))
#undef OUTBOARD_FAKE_SERVICE
#undef OUTBOARD_FAKE_RPC

  struct State final : ClusterStateService::Service {
    explicit State(FakeHost* host) : host(host) {}
    grpc::Status Sync(grpc::ServerContext* context, FakeHost::SyncStream* stream) override {
      {
        absl::MutexLock lock(&host->mu_);
        host->streams_.insert(context);
        host->sync_ = stream;
      }
      const grpc::Status status = Serve(context, stream);
      absl::MutexLock lock(&host->mu_);
      host->streams_.erase(context);
      if (host->sync_ == stream) host->sync_ = nullptr;
      return status;
    }
    grpc::Status Serve(grpc::ServerContext* context, FakeHost::SyncStream* stream) {
      SyncRequest request;
      int64_t clock_advanced_to = 0;
      while (stream->Read(&request)) {
        host->Record(request, *context);
        const Fault fault = host->TakeFault(SyncRequest::descriptor(), context);
        if (fault.cut_stream || !fault.status.ok()) return fault.status;
        host->Apply(request);
        if (request.time_unix_micros() != 0) clock_advanced_to = request.time_unix_micros();
        if (request.phase() != SyncRequest::PHASE_DELTA &&
            request.phase() != SyncRequest::PHASE_SNAPSHOT_END)
          continue;
        SyncResponse push;
        push.mutable_ack()->set_version(request.version());
        push.mutable_ack()->set_time_unix_micros(clock_advanced_to);
        absl::MutexLock lock(&host->mu_);
        if (host->acknowledging_) stream->Write(push);
      }
      return grpc::Status::OK;
    }
    FakeHost* const host;
  };

  // A Cycle or Plan stream.
  template <typename Request, typename Response>
  static grpc::Status ServeCycles(FakeHost* host, grpc::ServerContext* context,
                                  grpc::ServerReaderWriter<Response, Request>* stream) {
    {
      absl::MutexLock lock(&host->mu_);
      host->streams_.insert(context);
    }
    const grpc::Status status = AnswerCycles(host, context, stream);
    absl::MutexLock lock(&host->mu_);
    host->streams_.erase(context);
    return status;
  }
  template <typename Request, typename Response>
  static grpc::Status AnswerCycles(FakeHost* host, grpc::ServerContext* context,
                                   grpc::ServerReaderWriter<Response, Request>* stream) {
    Request request;
    while (stream->Read(&request)) {
      host->Record(request, *context);
      const Fault fault = host->TakeFault(Request::descriptor(), context);
      if (fault.cut_stream) return fault.status;
      Response response;
      const absl::Time began = absl::Now();
      const grpc::Status status =
          fault.status.ok() ? host->Respond(request, &response) : fault.status;
      if (response.evaluation_micros() == 0) {
        const int64_t micros = absl::ToInt64Microseconds(absl::Now() - began);
        response.set_evaluation_micros(std::max<int64_t>(micros, 1));
      }
      if (!status.ok()) {
        response.Clear();
        response.set_attempt_id(CycleOf(request).header().attempt_id());
        auto error = call_errors::CallErrorOf(status);
        if (!error.has_value()) return status;
        *response.mutable_error() = *std::move(error);
      }
      if (!stream->Write(response)) break;
    }
    return grpc::Status::OK;
  }

  struct Cycling final : CycleService::Service {
    explicit Cycling(FakeHost* host) : host(host) {}
    grpc::Status Cycle(grpc::ServerContext* context,
                       grpc::ServerReaderWriter<CycleResponse, CycleRequest>* stream) override {
      return ServeCycles(host, context, stream);
    }
    FakeHost* const host;
  };

  struct Planning final : PlanService::Service {
    explicit Planning(FakeHost* host) : host(host) {}
    grpc::Status Plan(grpc::ServerContext* context,
                      grpc::ServerReaderWriter<PlanResponse, PlanRequest>* stream) override {
      return ServeCycles(host, context, stream);
    }
    FakeHost* const host;
  };

  FakeHost* const host_;
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

std::unique_ptr<FakeHost> FakeHost::Start(const std::string& address, const std::string& instance,
                                          std::shared_ptr<grpc::ServerCredentials> credentials) {
  std::unique_ptr<FakeHost> host(new FakeHost(instance));
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(address, std::move(credentials), &port);
  host->services_->Register(&builder);
  host->server_ = builder.BuildAndStart();
  if (host->server_ == nullptr) return nullptr;
  host->address_ = absl::StartsWith(address, "unix:")
                       ? address
                       : absl::StrCat(address.substr(0, address.rfind(':')), ":", port);
  return host;
}

FakeHost::FakeHost(std::string instance)
    : instance_(std::move(instance)), services_(std::make_unique<Services>(this)) {}

FakeHost::~FakeHost() { Kill(); }

void FakeHost::Kill() {
  {
    absl::MutexLock lock(&mu_);
    stopping_ = true;
  }
  if (server_ == nullptr) return;
  server_->Shutdown(std::chrono::system_clock::now());
  server_->Wait();
}

void FakeHost::CutStreams() {
  absl::MutexLock lock(&mu_);
  for (grpc::ServerContext* context : streams_) context->TryCancel();
}

bool FakeHost::Push(const SyncResponse& push) {
  // Under the lock, because a stream allows one write at a time.
  absl::MutexLock lock(&mu_);
  return sync_ != nullptr && sync_->Write(push);
}

void FakeHost::ClearFaults() {
  absl::MutexLock lock(&mu_);
  faults_.clear();
}

void FakeHost::StopAcknowledging() {
  absl::MutexLock lock(&mu_);
  acknowledging_ = false;
}

std::vector<PushResult> FakeHost::push_results() const {
  absl::MutexLock lock(&mu_);
  return push_results_;
}

int64_t FakeHost::version() const {
  absl::MutexLock lock(&mu_);
  return version_;
}

std::map<uint32_t, Node> FakeHost::nodes() const {
  absl::MutexLock lock(&mu_);
  return nodes_;
}

std::map<std::string, Pod> FakeHost::pods() const {
  absl::MutexLock lock(&mu_);
  return pods_;
}

void FakeHost::Record(const google::protobuf::Message& request,
                      const grpc::ServerContext& context) {
  const auto found = context.client_metadata().find("traceparent");
  std::string trace_parent;
  if (found != context.client_metadata().end())
    trace_parent.assign(found->second.data(), found->second.size());
  std::unique_ptr<google::protobuf::Message> copy(request.New());
  copy->CopyFrom(request);
  absl::MutexLock lock(&mu_);
  ++counts_[request.GetDescriptor()];
  auto& kept = requests_[request.GetDescriptor()];
  auto& trace_parents = trace_parents_[request.GetDescriptor()];
  if (kept.size() == kRequestsKept) {
    kept.erase(kept.begin());
    trace_parents.erase(trace_parents.begin());
  }
  kept.push_back(std::move(copy));
  trace_parents.push_back(std::move(trace_parent));
}

Fault FakeHost::TakeFault(Type type, grpc::ServerContext* context) {
  Fault fault;
  absl::MutexLock lock(&mu_);
  auto it = faults_.find(type);
  if (it == faults_.end() || it->second.empty()) return fault;
  Fault& next = it->second.front();
  if (next.after > 0) {
    --next.after;
    return fault;
  }
  fault = next;
  if (next.times > 0 && --next.times == 0) it->second.erase(it->second.begin());
  const absl::Time until = absl::Now() + fault.delay;
  while (!stopping_ && !context->IsCancelled() && absl::Now() < until) {
    mu_.AwaitWithTimeout(absl::Condition(&stopping_),
                         std::min(absl::Milliseconds(2), until - absl::Now()));
  }
  // A killed host does not answer.
  if (stopping_) fault.status = grpc::Status(grpc::StatusCode::UNAVAILABLE, "killed");
  return fault;
}

grpc::Status FakeHost::Respond(const google::protobuf::Message& request,
                               google::protobuf::Message* response) {
  AnyAnswer answer;
  {
    absl::MutexLock lock(&mu_);
    auto it = answers_.find(request.GetDescriptor());
    if (it != answers_.end()) answer = it->second;
  }
  if (answer) return answer(request, response);
  if (request.GetDescriptor() == CycleRequest::descriptor()) {
    return RespondToCycle(static_cast<const CycleRequest&>(request),
                          static_cast<CycleResponse*>(response));
  }
  if (request.GetDescriptor() == PlanRequest::descriptor()) {
    // By default it places no other pods, so the answer is that of Cycle.
    CycleResponse cycle;
    const grpc::Status status = Respond(static_cast<const PlanRequest&>(request).cycle(), &cycle);
    if (!response->ParseFromString(cycle.SerializeAsString()))
      return grpc::Status(grpc::StatusCode::INTERNAL, "not an answer of Plan");
    return status;
  }
  RespondByDefault(request, response);
  return grpc::Status::OK;
}

void FakeHost::RespondByDefault(const google::protobuf::Message& request,
                                google::protobuf::Message* response) {
  const Type type = request.GetDescriptor();
  if (type == HandshakeRequest::descriptor()) {
    auto* identity = static_cast<HandshakeResponse*>(response);
    identity->add_contract_versions("v1beta1");
    identity->set_instance(instance_);
    identity->set_build("fake");
  } else if (type == GetHostInfoRequest::descriptor()) {
    auto* info = static_cast<GetHostInfoResponse*>(response);
    info->add_capabilities(CAPABILITY_FUSED_CYCLE);
    DescribePlugin(info);
  } else if (type == ProbeRequest::descriptor()) {
    auto* probe = static_cast<ProbeResponse*>(response);
    absl::MutexLock lock(&mu_);
    probe->set_state(version_ > 0 ? ProbeResponse::STATE_READY : ProbeResponse::STATE_INITIALIZING);
    if (version_ == 0) probe->set_reason("no snapshot yet");
    probe->set_instance(instance_);
    probe->set_snapshot_version(version_);
  } else if (type == SortKeysRequest::descriptor()) {
    const int count = static_cast<const SortKeysRequest&>(request).pod_uids_size();
    for (int i = 0; i < count; ++i) static_cast<SortKeysResponse*>(response)->add_keys("");
  } else if (type == PreEnqueueRequest::descriptor()) {
    const int count = static_cast<const PreEnqueueRequest&>(request).pod_uids_size();
    for (int i = 0; i < count; ++i)
      static_cast<PreEnqueueResponse*>(response)->add_verdicts()->set_code(CODE_SUCCESS);
  } else if (type == FilterRequest::descriptor()) {
    const auto& filter = static_cast<const FilterRequest&>(request);
    absl::MutexLock lock(&mu_);
    AllFeasible(filter.has_simulation()       ? filter.simulation().nodes_size()
                : filter.search().has_nodes() ? filter.search().nodes().slots_size()
                                              : static_cast<int>(nodes_.size()),
                static_cast<FilterResponse*>(response));
  } else if (type == GeneratePlacementsRequest::descriptor()) {
    static_cast<GeneratePlacementsResponse*>(response)->mutable_any();
  } else if (type == ScorePlacementsRequest::descriptor()) {
    const auto& asked = static_cast<const ScorePlacementsRequest&>(request);
    PlacementScores* scores = static_cast<ScorePlacementsResponse*>(response)->add_plugins();
    scores->set_plugin(kPlugin);
    scores->set_scores(std::string(static_cast<size_t>(asked.placements_size()), 50));
  } else if (type == ScoreRequest::descriptor()) {
    PluginScores* scores = static_cast<ScoreResponse*>(response)->add_plugins();
    scores->set_plugin(kPlugin);
    scores->set_scores(
        std::string(static_cast<const ScoreRequest&>(request).nodes().slots_size(), 50));
  }
  // The default of every other answer is the empty one: success.
}

grpc::Status FakeHost::RespondToCycle(const CycleRequest& request, CycleResponse* response) {
  response->set_attempt_id(request.header().attempt_id());
  PreFilterRequest pre_filter;
  pre_filter.set_pod_uid(request.pod_uid());
  PreFilterResponse pre_filtered;
  grpc::Status status = Respond(pre_filter, &pre_filtered);
  if (!status.ok()) return status;
  if (pre_filtered.has_rejection()) {
    *response->mutable_rejection()->mutable_pre_filter() = std::move(pre_filtered);
    return status;
  }
  CycleEvaluation* const evaluation = response->mutable_evaluation();
  *evaluation->mutable_pre_filter() = std::move(pre_filtered);
  FilterRequest filter;
  *filter.mutable_search() = request.search();
  status = Respond(filter, evaluation->mutable_filter());
  if (!status.ok() || evaluation->filter().has_error()) return status;
  const int feasible = CountFeasible(evaluation->filter());
  if (feasible == 0 || (feasible == 1 && !request.score_single_node())) return status;
  ScoreRequest score;
  for (int i = 0; i < feasible; ++i) score.mutable_nodes()->add_slots(i);
  PreScoreRequest pre_score;
  *pre_score.mutable_nodes() = score.nodes();
  status = Respond(pre_score, evaluation->mutable_pre_score());
  if (!status.ok() || evaluation->pre_score().has_error()) return status;
  return Respond(score, evaluation->mutable_score());
}

void FakeHost::Apply(const SyncRequest& request) {
  absl::MutexLock lock(&mu_);
  if (request.phase() == SyncRequest::PHASE_SNAPSHOT_BEGIN) {
    nodes_.clear();
    pods_.clear();
  }
  for (const Change& change : request.changes()) {
    if (change.has_node_upsert()) nodes_[change.node_upsert().slot()] = change.node_upsert().node();
    if (change.has_node_remove()) nodes_.erase(change.node_remove().slot());
    if (change.has_pod_upsert()) pods_[change.pod_upsert().pod().uid()] = change.pod_upsert().pod();
    if (change.has_pod_remove()) pods_.erase(change.pod_remove().uid());
  }
  push_results_.insert(push_results_.end(), request.push_results().begin(),
                       request.push_results().end());
  version_ = request.version();
}

}  // namespace outboard::testing
