// The engine over a real socket, as a shim sees it.
#include "plugin_host/services/engine.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/server_credentials.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "outboard/handshake/v1/handshake.grpc.pb.h"
#include "outboard/v1alpha1/plugin_host.grpc.pb.h"
#include "outboard/v1beta1/cluster_state.grpc.pb.h"
#include "outboard/v1beta1/cycle.grpc.pb.h"
#include "outboard/v1beta1/filter.grpc.pb.h"
#include "outboard/v1beta1/plan.grpc.pb.h"
#include "outboard/v1beta1/plugin_host.grpc.pb.h"
#include "outboard/v1beta1/score.grpc.pb.h"
#include "plugin_host/sdk/testing/builders.h"
#include "plugin_host/services/listen_address.h"
#include "plugin_host/services/probe.h"
#include "plugins/node_resources_fit/node_resources_fit.h"
#include "proto/call_errors/call_errors.h"

namespace outboard::services {
namespace {

using namespace v1beta1;  // NOLINT: the contract's messages are this test's vocabulary.
using sdk::testing::NodeBuilder;
using sdk::testing::PodBuilder;

constexpr char kSession[] = "shim-1";
constexpr char kProfile[] = "default-scheduler";

class EngineTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(registry_.Add(node_resources_fit::Descriptor()).ok());
    path_ = absl::StrCat(::testing::TempDir(), "engine-", getpid(), ".sock");
    StartEngine("host-a");
  }
  void StartEngine(const std::string& instance) {
    channel_.reset();
    engine_.reset();
    Engine::Options options;
    options.address = "unix:" + path_;
    options.credentials = grpc::InsecureServerCredentials();
    options.identity = {instance, "test", ""};
    auto engine = Engine::Start(options, &registry_);
    ASSERT_TRUE(engine.ok()) << engine.status();
    engine_ = *std::move(engine);
    grpc::ChannelArguments args;
    args.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    channel_ = grpc::CreateCustomChannel("unix:" + path_, grpc::InsecureChannelCredentials(), args);
    instance_ = instance;
  }

  std::unique_ptr<grpc::ClientContext> Context(absl::Duration timeout = absl::Seconds(10)) {
    auto context = std::make_unique<grpc::ClientContext>();
    context->set_deadline(absl::ToChronoTime(absl::Now() + timeout));
    return context;
  }
  ConfigureResponse Configure(const std::string& args = "") {
    ConfigureRequest request;
    request.set_session_id(kSession);
    request.set_instance(instance_);
    ProfileConfig* profile = request.add_profiles();
    profile->set_name(kProfile);
    for (auto point : {EXTENSION_POINT_PRE_FILTER, EXTENSION_POINT_FILTER,
                       EXTENSION_POINT_PRE_SCORE, EXTENSION_POINT_SCORE}) {
      PointConfig* config = profile->add_points();
      config->set_extension_point(point);
      config->add_plugins("NodeResourcesFit");
    }
    if (!args.empty()) {
      PluginArgs* out = profile->add_args();
      out->set_plugin("NodeResourcesFit");
      out->set_args_json(args);
    }
    ConfigureResponse response;
    auto context = Context();
    const grpc::Status status =
        PluginHostService::NewStub(channel_)->Configure(context.get(), request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }
  CallHeader Header(uint64_t attempt, int64_t version) {
    CallHeader header;
    header.set_session_id(kSession);
    header.set_attempt_id(attempt);
    header.set_exact_version(version);
    header.set_profile(kProfile);
    return header;
  }

  // A Sync stream with `nodes` nodes of increasing size and one pending pod `default/p`.
  struct Sync {
    std::unique_ptr<grpc::ClientContext> context;
    std::unique_ptr<grpc::ClientReaderWriter<SyncRequest, SyncResponse>> stream;
  };
  Sync OpenSync(int nodes) {
    Sync sync;
    sync.context = Context(absl::Seconds(60));
    sync.stream = ClusterStateService::NewStub(channel_)->Sync(sync.context.get());
    SyncRequest begin;
    begin.set_session_id(kSession);
    begin.set_version(1);
    begin.set_phase(SyncRequest::PHASE_SNAPSHOT_BEGIN);
    for (int i = 0; i < nodes; ++i) {
      NodeUpsert* upsert = begin.add_changes()->mutable_node_upsert();
      upsert->set_slot(i);
      *upsert->mutable_node() = NodeBuilder(absl::StrCat("n", i))
                                    .Allocatable({{"cpu", absl::StrCat(i)}, {"memory", "8Gi"}})
                                    .Build();
    }
    *begin.add_changes()->mutable_pod_upsert()->mutable_pod() =
        PodBuilder("p").Requests({{"cpu", "2"}}).Build();
    EXPECT_TRUE(sync.stream->Write(begin));
    SyncRequest end;
    end.set_version(1);
    end.set_phase(SyncRequest::PHASE_SNAPSHOT_END);
    EXPECT_TRUE(sync.stream->Write(end));
    SyncResponse response;
    EXPECT_TRUE(sync.stream->Read(&response));
    EXPECT_EQ(response.ack().version(), 1);
    return sync;
  }
  CycleRequest MakeCycle(uint64_t attempt, int64_t version) {
    CycleRequest request;
    *request.mutable_header() = Header(attempt, version);
    request.set_deadline_micros(5'000'000);
    request.set_pod_uid("default/p");
    request.mutable_search();
    return request;
  }

  sdk::PluginRegistry registry_;
  std::string path_;
  std::string instance_;
  std::unique_ptr<Engine> engine_;
  std::shared_ptr<grpc::Channel> channel_;
};

CallError ErrorOf(const grpc::Status& status) {
  const auto error = call_errors::CallErrorOf(status);
  EXPECT_TRUE(error.has_value()) << status.error_message();
  return error.value_or(CallError());
}

TEST_F(EngineTest, ReportsItsIdentityAndPlugins) {
  GetHostInfoRequest request;
  GetHostInfoResponse info;
  auto context = Context();
  ASSERT_TRUE(
      PluginHostService::NewStub(channel_)->GetHostInfo(context.get(), request, &info).ok());
  ASSERT_EQ(info.plugins_size(), 1);
  EXPECT_EQ(info.plugins(0).name(), "NodeResourcesFit");
  EXPECT_EQ(info.capabilities(0), CAPABILITY_FUSED_CYCLE);
}

TEST_F(EngineTest, AnswersTheHandshake) {
  handshake::v1::HandshakeRequest request;
  request.add_contract_versions("v9");
  handshake::v1::HandshakeResponse identity;
  auto context = Context();
  ASSERT_TRUE(handshake::v1::HandshakeService::NewStub(channel_)
                  ->Handshake(context.get(), request, &identity)
                  .ok());
  EXPECT_EQ(identity.instance(), "host-a");
  EXPECT_THAT(identity.contract_versions(), ::testing::ElementsAre("v1beta1"));
}

// A shim of version 0.1 asks in its own version of the contract, and learns why it cannot use this
// host.
TEST_F(EngineTest, TellsAnOldShimWhichVersionItSpeaks) {
  v1alpha1::GetHostInfoResponse info;
  auto context = Context();
  ASSERT_TRUE(v1alpha1::PluginHostService::NewStub(channel_)
                  ->GetHostInfo(context.get(), v1alpha1::GetHostInfoRequest(), &info)
                  .ok());
  EXPECT_EQ(info.host_instance(), "host-a");
  EXPECT_THAT(info.contract_versions(), ::testing::ElementsAre("v1beta1"));
  EXPECT_EQ(info.plugins_size(), 0);
}

TEST_F(EngineTest, BadArgumentsAreProblemsAndChangeNothing) {
  ASSERT_TRUE(Configure().problems().empty());
  const ConfigureResponse response = Configure(R"({"ignoredResource": []})");
  ASSERT_EQ(response.problems_size(), 1);
  EXPECT_EQ(response.problems(0).field(), "ignoredResource");
  Sync sync = OpenSync(3);  // The session is still configured.
}

TEST_F(EngineTest, BecomesReadyWithTheSnapshot) {
  auto probe = [&] {
    ProbeRequest request;
    request.set_session_id(kSession);
    ProbeResponse response;
    auto context = Context();
    EXPECT_TRUE(
        PluginHostService::NewStub(channel_)->Probe(context.get(), request, &response).ok());
    return response;
  };
  EXPECT_EQ(probe().state(), ProbeResponse::STATE_INITIALIZING);
  Configure();
  EXPECT_EQ(probe().state(), ProbeResponse::STATE_INITIALIZING);
  Sync sync = OpenSync(3);
  EXPECT_EQ(probe().state(), ProbeResponse::STATE_READY);
  EXPECT_EQ(probe().snapshot_version(), 1);
}

TEST_F(EngineTest, FusedAndSingleCallsAnswerTheSame) {
  Configure();
  Sync sync = OpenSync(200);
  auto context = Context();
  auto cycle = CycleService::NewStub(channel_)->Cycle(context.get());
  CycleRequest request = MakeCycle(1, 1);
  request.mutable_search()->set_start_offset(7);
  ASSERT_TRUE(cycle->Write(request));
  CycleResponse fused;
  ASSERT_TRUE(cycle->Read(&fused));
  ASSERT_FALSE(fused.has_error()) << fused.error().message();
  EXPECT_EQ(fused.attempt_id(), 1u);
  // 50 − 200/125 % of 200 is 98, so 100 are searched for; n0 and n1 are too small but come last.
  EXPECT_EQ(fused.evaluation().filter().processed(), 100u);

  PreFilterRequest pre_filter;
  *pre_filter.mutable_header() = Header(2, 1);
  pre_filter.set_pod_uid("default/p");
  PreFilterResponse pre_filter_response;
  ASSERT_TRUE(PreFilterService::NewStub(channel_)
                  ->PreFilter(Context().get(), pre_filter, &pre_filter_response)
                  .ok());
  EXPECT_EQ(pre_filter_response.SerializeAsString(),
            fused.evaluation().pre_filter().SerializeAsString());

  FilterRequest filter;
  *filter.mutable_header() = Header(2, 1);
  filter.mutable_search()->set_start_offset(7);
  filter.mutable_search()->set_num_feasible_nodes_to_find(100);
  FilterResponse filter_response;
  ASSERT_TRUE(
      FilterService::NewStub(channel_)->Filter(Context().get(), filter, &filter_response).ok());
  EXPECT_EQ(filter_response.SerializeAsString(), fused.evaluation().filter().SerializeAsString());

  PreScoreRequest pre_score;
  *pre_score.mutable_header() = Header(2, 1);
  for (uint32_t i = 0; i < 100; ++i) pre_score.mutable_nodes()->add_slots((7 + i) % 200);
  PreScoreResponse pre_score_response;
  ASSERT_TRUE(PreScoreService::NewStub(channel_)
                  ->PreScore(Context().get(), pre_score, &pre_score_response)
                  .ok());
  EXPECT_EQ(pre_score_response.SerializeAsString(),
            fused.evaluation().pre_score().SerializeAsString());
  ScoreRequest score;
  *score.mutable_header() = Header(2, 1);
  *score.mutable_nodes() = pre_score.nodes();
  ScoreResponse score_response;
  ASSERT_TRUE(ScoreService::NewStub(channel_)->Score(Context().get(), score, &score_response).ok());
  EXPECT_EQ(score_response.SerializeAsString(), fused.evaluation().score().SerializeAsString());
  EXPECT_EQ(fused.evaluation().score().plugins(0).scores().size(), 100u);
}

TEST_F(EngineTest, PlanOfOnePodAnswersAsCycle) {
  Configure();
  Sync sync = OpenSync(200);
  auto cycle_context = Context();
  auto cycle = CycleService::NewStub(channel_)->Cycle(cycle_context.get());
  auto plan_context = Context();
  auto plan = PlanService::NewStub(channel_)->Plan(plan_context.get());
  for (uint64_t attempt = 1; attempt < 6; attempt += 2) {
    CycleRequest request = MakeCycle(attempt, 1);
    request.mutable_search()->set_start_offset(static_cast<uint32_t>(attempt));
    ASSERT_TRUE(cycle->Write(request));
    CycleResponse expected;
    ASSERT_TRUE(cycle->Read(&expected));
    ASSERT_TRUE(expected.has_evaluation()) << expected.ShortDebugString();
    PlanRequest planned;
    *planned.mutable_cycle() = request;
    planned.mutable_cycle()->mutable_header()->set_attempt_id(attempt + 1);
    ASSERT_TRUE(plan->Write(planned));
    PlanResponse response;
    ASSERT_TRUE(plan->Read(&response));
    EXPECT_EQ(response.attempt_id(), attempt + 1);
    EXPECT_EQ(response.evaluation().SerializeAsString(), expected.evaluation().SerializeAsString());
  }
  PlanRequest unknown;
  *unknown.mutable_cycle() = MakeCycle(7, 1);
  unknown.mutable_cycle()->set_pod_uid("unknown");
  ASSERT_TRUE(plan->Write(unknown));
  PlanResponse response;
  ASSERT_TRUE(plan->Read(&response));
  EXPECT_EQ(response.error().reason(), CallError::REASON_OBJECT_UNKNOWN);
}

TEST_F(EngineTest, APlanPlacesTheNextPods) {
  Configure();
  Sync sync = OpenSync(20);
  SyncRequest delta;
  delta.set_phase(SyncRequest::PHASE_DELTA);
  delta.set_version(2);
  *delta.add_changes()->mutable_pod_upsert()->mutable_pod() =
      PodBuilder("q").Requests({{"cpu", "2"}}).Build();
  ASSERT_TRUE(sync.stream->Write(delta));
  auto context = Context();
  auto stream = PlanService::NewStub(channel_)->Plan(context.get());
  PlanRequest request;
  *request.mutable_cycle() = MakeCycle(1, 2);
  request.add_next_pod_uids("default/q");
  ASSERT_TRUE(stream->Write(request));
  PlanResponse response;
  ASSERT_TRUE(stream->Read(&response));
  ASSERT_EQ(response.plan().placements_size(), 2) << response.ShortDebugString();
  EXPECT_EQ(response.plan().placements(0).pod_uid(), "default/p");
  EXPECT_EQ(response.plan().placements(1).pod_uid(), "default/q");
  // The message is reused: the next answer has nothing of this one.
  *request.mutable_cycle() = MakeCycle(3, 2);
  request.clear_next_pod_uids();
  ASSERT_TRUE(stream->Write(request));
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_TRUE(response.has_evaluation()) << response.ShortDebugString();
}

TEST_F(EngineTest, ACallWaitsForItsVersion) {
  Configure();
  Sync sync = OpenSync(4);
  auto context = Context();
  auto cycle = CycleService::NewStub(channel_)->Cycle(context.get());
  ASSERT_TRUE(cycle->Write(MakeCycle(1, 2)));
  // The engine has one thread and the client one connection: once these are answered, the engine
  // has read the earlier call, which waits.
  for (int i = 0; i < 3; ++i) {
    GetHostInfoResponse info;
    ASSERT_TRUE(PluginHostService::NewStub(channel_)
                    ->GetHostInfo(Context().get(), GetHostInfoRequest(), &info)
                    .ok());
  }
  SyncRequest delta;
  delta.set_phase(SyncRequest::PHASE_DELTA);
  delta.set_version(2);
  delta.add_changes()->mutable_node_remove()->set_slot(3);
  ASSERT_TRUE(sync.stream->Write(delta));
  CycleResponse response;
  ASSERT_TRUE(cycle->Read(&response));
  EXPECT_FALSE(response.has_error()) << response.error().message();
  EXPECT_EQ(response.evaluation().filter().processed(), 3u);
}

// For simulations: days pass in seconds.
TEST_F(EngineTest, ATimeThatTheShimSendsIsAcknowledgedAtOnce) {
  Configure();
  Sync sync = OpenSync(3);
  for (const int64_t time : {1'700'000'000'000'000'000, 1'700'000'360'000'000'000}) {
    SyncRequest request;
    request.set_phase(SyncRequest::PHASE_DELTA);
    request.set_version(1);
    request.set_time_unix_micros(time);
    ASSERT_TRUE(sync.stream->Write(request));
    SyncResponse response;
    ASSERT_TRUE(sync.stream->Read(&response));
    EXPECT_EQ(response.ack().version(), 1);
    EXPECT_EQ(response.ack().time_unix_micros(), time);
  }
}

TEST_F(EngineTest, AVersionThatDoesNotComeIsStale) {
  Configure();
  Sync sync = OpenSync(4);
  PreFilterRequest request;
  *request.mutable_header() = Header(1, 9);
  request.set_pod_uid("default/p");
  PreFilterResponse response;
  grpc::Status status;
  // The host answers 20 ms before the deadline: too late if the machine stalls for longer.
  for (int calls = 0; calls < 10; ++calls) {
    auto context = Context(absl::Milliseconds(500));
    status = PreFilterService::NewStub(channel_)->PreFilter(context.get(), request, &response);
    if (status.error_code() != grpc::StatusCode::DEADLINE_EXCEEDED) break;
  }
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(ErrorOf(status).reason(), CallError::REASON_STALE);
  EXPECT_EQ(ErrorOf(status).have_version(), 1);
}

TEST_F(EngineTest, ErrorsSayWhatToDoNext) {
  Configure();
  Sync sync = OpenSync(4);
  auto filter = [&](const CallHeader& header) {
    FilterRequest request;
    *request.mutable_header() = header;
    FilterResponse response;
    auto context = Context();
    return ErrorOf(FilterService::NewStub(channel_)->Filter(context.get(), request, &response))
        .reason();
  };
  EXPECT_EQ(filter(Header(5, 1)), CallError::REASON_ATTEMPT_UNKNOWN);
  CallHeader header = Header(5, 1);
  header.set_session_id("unknown");
  EXPECT_EQ(filter(header), CallError::REASON_SESSION_UNKNOWN);
  ConfigureRequest request;
  request.set_session_id(kSession);
  request.set_instance("host-b");
  ConfigureResponse response;
  const auto context = Context();
  EXPECT_EQ(
      ErrorOf(PluginHostService::NewStub(channel_)->Configure(context.get(), request, &response))
          .reason(),
      CallError::REASON_WRONG_INSTANCE);
  EXPECT_EQ(filter(Header(5, 1)), CallError::REASON_ATTEMPT_UNKNOWN) << "the session is unchanged";
}

// On a Cycle stream too, whose first message names it for all others.
TEST_F(EngineTest, ACycleStreamOfAnUnknownSessionIsNotAnswered) {
  Configure();
  Sync sync = OpenSync(4);
  const auto context = Context();
  auto cycle = CycleService::NewStub(channel_)->Cycle(context.get());
  CycleRequest request = MakeCycle(1, 1);
  request.mutable_header()->set_session_id("unknown");
  CycleResponse response;
  ASSERT_TRUE(cycle->Write(request));
  ASSERT_TRUE(cycle->Read(&response));
  EXPECT_EQ(response.error().reason(), CallError::REASON_SESSION_UNKNOWN);
  request = MakeCycle(2, 1);
  request.mutable_header()->clear_session_id();
  ASSERT_TRUE(cycle->Write(request));
  ASSERT_TRUE(cycle->Read(&response));
  EXPECT_EQ(response.error().reason(), CallError::REASON_SESSION_UNKNOWN);
}

TEST_F(EngineTest, ErrorsAreShortHoweverLongTheRequest) {
  Configure();
  Sync sync = OpenSync(4);
  PreFilterRequest request;
  *request.mutable_header() = Header(1, 1);
  // Longer than the metadata that a client accepts, and only multi-byte characters.
  for (int i = 0; i < 100000; ++i) *request.mutable_pod_uid() += "\xc3\xa9";
  PreFilterResponse response;
  auto context = Context();
  const grpc::Status status =
      PreFilterService::NewStub(channel_)->PreFilter(context.get(), request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND) << status.error_message();
  EXPECT_LE(status.error_message().size(), 1024u);
  // Half a character would make it unreadable.
  EXPECT_EQ(ErrorOf(status).reason(), CallError::REASON_OBJECT_UNKNOWN);
}

TEST_F(EngineTest, DisconnectedSessionsAreEvictedFirst) {
  Configure();
  Sync sync = OpenSync(4);
  for (size_t i = 0; i < runtime::Host::kMaxSessions + 3; ++i) {
    ConfigureRequest request;
    request.set_session_id(absl::StrCat("passing-", i));
    request.set_instance(instance_);
    ConfigureResponse response;
    auto context = Context();
    const grpc::Status status =
        PluginHostService::NewStub(channel_)->Configure(context.get(), request, &response);
    ASSERT_TRUE(status.ok()) << status.error_message();
  }
  auto context = Context();
  auto cycle = CycleService::NewStub(channel_)->Cycle(context.get());
  ASSERT_TRUE(cycle->Write(MakeCycle(1, 1)));
  CycleResponse answer;
  ASSERT_TRUE(cycle->Read(&answer));
  EXPECT_FALSE(answer.has_error()) << answer.error().message();
}

TEST_F(EngineTest, AChangeThatDoesNotFitEndsTheStream) {
  Configure();
  Sync sync = OpenSync(4);
  SyncRequest delta;
  delta.set_phase(SyncRequest::PHASE_DELTA);
  delta.set_version(2);
  delta.add_changes()->mutable_node_remove()->set_slot(77);
  ASSERT_TRUE(sync.stream->Write(delta));
  SyncResponse response;
  while (sync.stream->Read(&response)) {
  }
  const grpc::Status status = sync.stream->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(ErrorOf(status).reason(), CallError::REASON_INVALID);
  OpenSync(2);  // A new stream with a snapshot repairs it.
}

TEST_F(EngineTest, ANewStreamReplacesTheOld) {
  Configure();
  Sync old = OpenSync(4);
  Sync sync = OpenSync(2);
  SyncResponse response;
  EXPECT_FALSE(old.stream->Read(&response));
  auto context = Context();
  auto cycle = CycleService::NewStub(channel_)->Cycle(context.get());
  ASSERT_TRUE(cycle->Write(MakeCycle(1, 1)));
  CycleResponse answer;
  ASSERT_TRUE(cycle->Read(&answer));
  EXPECT_EQ(answer.evaluation().filter().processed(), 2u);
}

TEST_F(EngineTest, DrainsOnceNoAttemptIsLeft) {
  Configure();
  Sync sync = OpenSync(4);
  auto context = Context();
  auto cycle = CycleService::NewStub(channel_)->Cycle(context.get());
  ASSERT_TRUE(cycle->Write(MakeCycle(1, 1)));
  CycleResponse response;
  ASSERT_TRUE(cycle->Read(&response));
  EXPECT_FALSE(engine_->Drain(absl::Milliseconds(20)));
  ASSERT_TRUE(cycle->Write(MakeCycle(2, 1)));
  ASSERT_TRUE(cycle->Read(&response));
  EXPECT_EQ(response.error().reason(), CallError::REASON_DRAINING);
  SyncRequest end;
  end.set_phase(SyncRequest::PHASE_DELTA);
  end.set_version(1);
  end.add_ended_attempts(1);
  ASSERT_TRUE(sync.stream->Write(end));
  EXPECT_TRUE(engine_->Drain(absl::Seconds(10)));
}

TEST_F(EngineTest, APeerDrainsTheWholeHost) {
  Configure();
  Sync sync = OpenSync(4);
  auto context = Context();
  auto cycle = CycleService::NewStub(channel_)->Cycle(context.get());
  ASSERT_TRUE(cycle->Write(MakeCycle(1, 1)));
  CycleResponse response;
  ASSERT_TRUE(cycle->Read(&response));
  auto stub = PluginHostService::NewStub(channel_);
  for (int i = 0; i < 2; ++i) {
    auto call = Context();
    DrainResponse drained;
    ASSERT_TRUE(stub->Drain(call.get(), DrainRequest(), &drained).ok());
    EXPECT_EQ(drained.attempts_in_flight(), 1u);
  }
  ASSERT_TRUE(cycle->Write(MakeCycle(2, 1)));
  ASSERT_TRUE(cycle->Read(&response));
  EXPECT_EQ(response.error().reason(), CallError::REASON_DRAINING);
  ConfigureRequest request;
  ConfigureResponse configured;
  request.set_session_id("another");
  request.set_instance(instance_);
  const auto configuring = Context();
  EXPECT_EQ(ErrorOf(stub->Configure(configuring.get(), request, &configured)).reason(),
            CallError::REASON_DRAINING);
  ProbeResponse probed;
  const auto probing = Context();
  ASSERT_TRUE(stub->Probe(probing.get(), ProbeRequest(), &probed).ok());
  EXPECT_EQ(probed.state(), ProbeResponse::STATE_DRAINING);
}

TEST_F(EngineTest, ALiveSocketIsRefusedAndAStaleOneRemoved) {
  EXPECT_EQ(PrepareSocketPath(path_).code(), absl::StatusCode::kAlreadyExists);
  channel_.reset();
  engine_.reset();
  EXPECT_TRUE(PrepareSocketPath(path_).ok());
  StartEngine("host-b");
}

TEST_F(EngineTest, IsFoundByAProbeWhileItRuns) {
  const std::string any = absl::StrCat("unix:", ::testing::TempDir(), "engine-{instance}.sock");
  const absl::Duration timeout = absl::Seconds(10);
  EXPECT_TRUE(ProbeListener("unix:" + path_, timeout).ok());
  EXPECT_TRUE(ProbeListener(any, timeout).ok()) << ProbeListener(any, timeout);
  EXPECT_TRUE(absl::IsUnavailable(ProbeListener("unix:" + path_ + ".{instance}", timeout)));
  EXPECT_TRUE(absl::IsInvalidArgument(ProbeListener("127.0.0.1:1", timeout)));
  channel_.reset();
  engine_.reset();
  EXPECT_TRUE(absl::IsUnavailable(ProbeListener("unix:" + path_, timeout)));
}

// Reads until the server closes the connection, or for 10 s; returns what arrived, and the end.
std::pair<std::string, bool> ReadToTheEnd(int fd) {
  timeval limit{.tv_sec = 10, .tv_usec = 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  std::string all;
  char buffer[4096];
  for (;;) {
    const ssize_t n = read(fd, buffer, sizeof(buffer));
    if (n <= 0) return {all, n == 0 || errno == ECONNRESET};
    all.append(buffer, n);
  }
}

// Over the network, a peer that answers nothing any more is dropped, although it closed nothing.
TEST_F(EngineTest, APeerThatAnswersNoPingIsDropped) {
  Engine::Options options;
  options.address = "127.0.0.1:0";
  options.credentials = grpc::InsecureServerCredentials();
  options.identity = {"host-on-the-network", "test", ""};
  options.ping_interval = options.ping_timeout = absl::Seconds(1);
  auto engine = Engine::Start(options, &registry_);
  ASSERT_TRUE(engine.ok()) << engine.status();
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>((*engine)->port()));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  // All that a client sends before its first call: the preface, and empty SETTINGS.
  const std::string greeting =
      absl::StrCat("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", std::string("\0\0\0\4\0\0\0\0\0", 9));
  ASSERT_EQ(write(fd, greeting.data(), greeting.size()), static_cast<ssize_t>(greeting.size()));
  const auto [received, dropped] = ReadToTheEnd(fd);
  close(fd);
  EXPECT_TRUE(dropped);
  // The frame of a ping: 8 bytes, type 6, no flags, stream 0.
  EXPECT_NE(received.find(std::string("\0\0\x08\x06\0\0\0\0\0", 9)), std::string::npos);
}

TEST(ListenAddressTest, TakesSocketsAndPorts) {
  EXPECT_EQ(ListenAddress::Parse("unix:/run/x.sock")->path, "/run/x.sock");
  EXPECT_EQ(ListenAddress::Parse("unix:///run/x.sock")->path, "/run/x.sock");
  EXPECT_FALSE(ListenAddress::Parse("10.0.0.1:443")->is_unix);
  for (const char* bad :
       {"", "unix:", "host", "host:", "host:70000", ":443", "unix-abstract:x:1"}) {
    EXPECT_FALSE(ListenAddress::Parse(bad).ok()) << bad;
  }
  EXPECT_FALSE(ListenAddress::Parse("unix:/" + std::string(200, 'x')).ok());
}

}  // namespace
}  // namespace outboard::services
