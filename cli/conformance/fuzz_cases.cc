// Invalid requests: the host may return anything, but must stay alive and give other sessions the
// same answers.
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "cli/conformance/answers.h"
#include "cli/conformance/mutation.h"
#include "cli/conformance/session.h"
#include "outboard/v1beta1/plan.pb.h"

namespace outboard::conformance {
namespace {

using namespace v1beta1;  // NOLINT: the contract's messages are this file's vocabulary.

constexpr absl::Duration kFuzzDeadline = absl::Milliseconds(60);
constexpr size_t kTooLarge = size_t{17} << 20;
constexpr char kCyclePath[] = "/outboard.v1beta1.CycleService/Cycle";
constexpr char kPlanPath[] = "/outboard.v1beta1.PlanService/Plan";
constexpr char kSyncPath[] = "/outboard.v1beta1.ClusterStateService/Sync";

// An undisturbed session, and its earlier answers.
class Control {
 public:
  explicit Control(const Kit& kit) : session_(kit) {}
  absl::Status Open() {
    CONFORMANCE_TRY(session_.Open(MakeCluster()));
    CONFORMANCE_TRY(Ask(&before_));
    Round again;
    CONFORMANCE_TRY(Ask(&again));
    if (ExpectSame(before_, again, kOneCache, "").ok()) return absl::OkStatus();
    return Skipped("the host's answers are not reproducible; see PreFilterService/again");
  }
  absl::Status Check(const std::string& after) {
    // The disturbed sessions have replaced it.
    if (session_.kit().Can(CAPABILITY_SINGLE_SESSION))
      CONFORMANCE_TRY(session_.Open(MakeCluster()));
    Round now;
    const absl::Status asked = Ask(&now);
    if (!asked.ok())
      return Malformed(MalformedService(asked), absl::FailedPreconditionError(absl::StrCat(
                                                    "after ", after, ": ", asked.message())));
    return ExpectSame(before_, now, kOneCache, absl::StrCat("in another session after ", after));
  }

 private:
  absl::Status Ask(Round* round) {
    if (!session_.kit().HasAlgorithm()) return session_.AwaitReady();
    return RunRound(session_, ++attempt_, session_.cluster().pending[0].uid(), round);
  }
  Session session_;
  uint64_t attempt_ = 0;
  Round before_;
};

// The disturbed session.
class Target {
 public:
  Target(const Kit& kit, Random* random) : kit_(kit), random_(random) {}

  absl::Status Renew() {
    session_ = std::make_unique<Session>(kit_);
    CONFORMANCE_TRY(session_->Open(MakeCluster(9)));
    return ExpectAlive(*session_, 1);
  }
  Session& session() { return *session_; }

  // Mutations of a valid request; one in three changes its bytes.
  template <typename Request>
  absl::Status Fuzz(const Request& good, const char* path) {
    for (int i = 0; i < kit_.options().fuzzed_requests; ++i) {
      Request request = good;
      for (uint64_t n = 1 + (*random_)() % 3; n > 0; --n) Mutate(random_, &request);
      std::string bytes = request.SerializeAsString();
      if (i % 3 == 0) bytes = MutateBytes(random_, bytes);
      const grpc::Status status = CallRaw(session_->channel(), path, bytes, kFuzzDeadline);
      if (status.error_code() == grpc::StatusCode::UNAVAILABLE && status.error_details().empty()) {
        return absl::FailedPreconditionError(absl::StrCat(
            path, ": the connection breaks (", Describe(status), ") on request ", i, " of seed ",
            kit_.options().seed, ": ", request.ShortDebugString().substr(0, 300)));
      }
    }
    return absl::OkStatus();
  }

 private:
  const Kit& kit_;
  Random* const random_;
  std::unique_ptr<Session> session_;
};

template <typename Request>
Request Good(const Session& session) {
  Request request;
  *request.mutable_header() = session.Header(1);
  return request;
}

absl::Status FuzzCalls(const Kit& kit) {
  Random random(kit.options().seed);
  Control control(kit);
  CONFORMANCE_TRY(control.Open());
  Target target(kit, &random);
  const auto round = [&](const char* path, auto make) -> absl::Status {
    CONFORMANCE_TRY(target.Renew());
    auto request = make(target.session());
    target.session().Complete(&request);
    CONFORMANCE_TRY(target.Fuzz(request, path));
    return control.Check(absl::StrCat("fuzzed requests to ", path));
  };
  if (kit.HasAlgorithm()) {
    CONFORMANCE_TRY(round(Rpc<PreFilterRequest>::kPath, [](const Session& session) {
      auto request = Good<PreFilterRequest>(session);
      request.set_pod_uid(session.cluster().pending[0].uid());
      return request;
    }));
  }
  if (kit.Has(EXTENSION_POINT_FILTER)) {
    CONFORMANCE_TRY(round(Rpc<FilterRequest>::kPath, [](const Session& session) {
      auto request = Good<FilterRequest>(session);
      request.mutable_search()->set_num_feasible_nodes_to_find(2);
      for (const uint32_t slot : {1, 2, 5})
        request.mutable_search()->mutable_nodes()->add_slots(slot);
      return request;
    }));
    CONFORMANCE_TRY(round(Rpc<FilterRequest>::kPath, [](const Session& session) {
      auto request = Good<FilterRequest>(session);
      for (int i = 0; i < 2; ++i) {
        SimulatedNode* const without = request.mutable_simulation()->add_nodes();
        without->set_slot(0);
        without->add_removed_pod_uids(session.cluster().running[0].uid());
        SimulatedNode* const with = request.mutable_simulation()->add_nodes();
        with->set_continues(true);
        with->add_added_pod_uids(session.cluster().running[0].uid());
      }
      return request;
    }));
  }
  const auto with_nodes = [](auto request) {
    for (const uint32_t slot : {1, 2, 5}) request.mutable_nodes()->add_slots(slot);
    return request;
  };
  if (kit.Has(EXTENSION_POINT_PRE_SCORE)) {
    CONFORMANCE_TRY(round(Rpc<PreScoreRequest>::kPath,
                          [&](const Session& s) { return with_nodes(Good<PreScoreRequest>(s)); }));
  }
  if (kit.Has(EXTENSION_POINT_SCORE)) {
    CONFORMANCE_TRY(round(Rpc<ScoreRequest>::kPath,
                          [&](const Session& s) { return with_nodes(Good<ScoreRequest>(s)); }));
  }
  if (kit.Has(EXTENSION_POINT_POST_FILTER)) {
    CONFORMANCE_TRY(round(Rpc<PostFilterRequest>::kPath, [](const Session& session) {
      auto request = Good<PostFilterRequest>(session);
      request.mutable_judged()->add_slots(1);
      request.mutable_judged()->add_codes(CODE_UNSCHEDULABLE);
      request.set_others_filter(true);
      request.add_answers()->set_code(CODE_SUCCESS);
      return request;
    }));
  }
  const auto with_group = [](const Session& session, auto request) {
    request.mutable_group()->set_name("group");
    for (int i = 0; i < 2; ++i)
      request.mutable_group()->add_pod_uids(session.cluster().pending[i].uid());
    request.mutable_group()->set_needed(2);
    return request;
  };
  if (kit.Has(EXTENSION_POINT_PLACEMENT_GENERATE)) {
    CONFORMANCE_TRY(round(Rpc<GeneratePlacementsRequest>::kPath, [&](const Session& s) {
      return with_group(s, Good<GeneratePlacementsRequest>(s));
    }));
  }
  if (kit.Has(EXTENSION_POINT_PLACEMENT_SCORE)) {
    CONFORMANCE_TRY(round(Rpc<ScorePlacementsRequest>::kPath, [&](const Session& s) {
      auto request = with_group(s, Good<ScorePlacementsRequest>(s));
      PlacementCandidate* candidate = request.add_placements();
      candidate->mutable_placement()->set_name("rack");
      for (uint32_t i = 0; i < 2; ++i) {
        candidate->mutable_placement()->mutable_nodes()->add_slots(i);
        candidate->mutable_assignments()->add_pods(i);
        candidate->mutable_assignments()->add_slots(i);
      }
      return request;
    }));
  }
  const auto with_place = [](const Session& session, auto request) {
    request.set_pod_uid(session.cluster().pending[0].uid());
    request.set_node_name(session.cluster().nodes[0].name());
    return request;
  };
  if (kit.Has(EXTENSION_POINT_RESERVE)) {
    CONFORMANCE_TRY(round(Rpc<ReserveRequest>::kPath, [&](const Session& s) {
      return with_place(s, Good<ReserveRequest>(s));
    }));
    CONFORMANCE_TRY(round(Rpc<UnreserveRequest>::kPath, [&](const Session& s) {
      return with_place(s, Good<UnreserveRequest>(s));
    }));
  }
  if (kit.Has(EXTENSION_POINT_PERMIT)) {
    CONFORMANCE_TRY(round(Rpc<PermitRequest>::kPath,
                          [&](const Session& s) { return with_place(s, Good<PermitRequest>(s)); }));
  }
  if (kit.Has(EXTENSION_POINT_PRE_BIND)) {
    CONFORMANCE_TRY(round(Rpc<PreBindRequest>::kPath, [&](const Session& s) {
      auto request = with_place(s, Good<PreBindRequest>(s));
      request.add_effects()->mutable_bind_volume()->set_name("volume");
      request.add_results()->set_key("one");
      return request;
    }));
  }
  if (kit.Has(EXTENSION_POINT_BIND)) {
    CONFORMANCE_TRY(round(Rpc<BindRequest>::kPath, [&](const Session& s) {
      auto request = with_place(s, Good<BindRequest>(s));
      request.set_plugin(kit.At(EXTENSION_POINT_BIND)[0]);
      return request;
    }));
  }
  if (kit.Has(EXTENSION_POINT_POST_BIND)) {
    CONFORMANCE_TRY(round(Rpc<PostBindRequest>::kPath, [&](const Session& s) {
      return with_place(s, Good<PostBindRequest>(s));
    }));
  }
  const auto with_pods = [](const Session& session, auto request) {
    for (const Pod& pod : session.cluster().pending) request.add_pod_uids(pod.uid());
    return request;
  };
  if (kit.Has(EXTENSION_POINT_QUEUE_SORT)) {
    CONFORMANCE_TRY(round(Rpc<SortKeysRequest>::kPath, [&](const Session& s) {
      return with_pods(s, Good<SortKeysRequest>(s));
    }));
  }
  if (kit.Has(EXTENSION_POINT_PRE_ENQUEUE)) {
    CONFORMANCE_TRY(round(Rpc<PreEnqueueRequest>::kPath, [&](const Session& s) {
      return with_pods(s, Good<PreEnqueueRequest>(s));
    }));
  }
  return absl::OkStatus();
}

absl::Status FuzzHandshake(const Kit& kit) {
  Random random(kit.options().seed + 1);
  Control control(kit);
  CONFORMANCE_TRY(control.Open());
  Target target(kit, &random);
  CONFORMANCE_TRY(target.Renew());
  CONFORMANCE_TRY(target.Fuzz(target.session().Configuration(), Rpc<ConfigureRequest>::kPath));
  ProbeRequest probe;
  probe.set_session_id(target.session().id());
  CONFORMANCE_TRY(target.Fuzz(probe, Rpc<ProbeRequest>::kPath));
  handshake::v1::HandshakeRequest handshake;
  handshake.add_contract_versions("v1beta1");
  handshake.set_build("outboard conformance");
  CONFORMANCE_TRY(target.Fuzz(handshake, Rpc<handshake::v1::HandshakeRequest>::kPath));
  CONFORMANCE_TRY(target.Fuzz(GetHostInfoRequest(), Rpc<GetHostInfoRequest>::kPath));
  EndSessionRequest end;
  end.set_session_id(target.session().id());
  CONFORMANCE_TRY(target.Fuzz(end, Rpc<EndSessionRequest>::kPath));
  return control.Check("fuzzed handshakes");
}

CycleRequest GoodCycle(const Session& session) {
  auto request = Good<CycleRequest>(session);
  request.set_deadline_micros(100000);
  request.set_pod_uid(session.cluster().pending[0].uid());
  return request;
}

absl::Status FuzzCycles(const Kit& kit) {
  Random random(kit.options().seed + 2);
  Control control(kit);
  CONFORMANCE_TRY(control.Open());
  Target target(kit, &random);
  CONFORMANCE_TRY(target.Renew());
  CycleRequest request = GoodCycle(target.session());
  request.mutable_search()->mutable_nodes()->add_slots(1);
  request.mutable_search()->mutable_nodes()->add_slots(2);
  CONFORMANCE_TRY(target.Fuzz(request, kCyclePath));
  return control.Check("fuzzed cycles");
}

absl::Status FuzzPlans(const Kit& kit) {
  Random random(kit.options().seed + 5);
  Control control(kit);
  CONFORMANCE_TRY(control.Open());
  Target target(kit, &random);
  CONFORMANCE_TRY(target.Renew());
  PlanRequest request;
  *request.mutable_cycle() = GoodCycle(target.session());
  for (const Pod& pod : target.session().cluster().pending) request.add_next_pod_uids(pod.uid());
  request.set_place_group(true);
  CONFORMANCE_TRY(target.Fuzz(request, kPlanPath));
  if (kit.Can(CAPABILITY_GROUP_PLACEMENTS)) {
    request.clear_next_pod_uids();
    GroupNodeSets* sets = request.mutable_group_step()->mutable_try_placements();
    for (const uint32_t slot : {1, 2}) sets->add_placements()->add_slots(slot);
    CONFORMANCE_TRY(target.Fuzz(request, kPlanPath));
  }
  return control.Check("fuzzed plans");
}

absl::Status FuzzChanges(const Kit& kit) {
  Random random(kit.options().seed + 3);
  Control control(kit);
  CONFORMANCE_TRY(control.Open());
  Target target(kit, &random);
  CONFORMANCE_TRY(target.Renew());
  // One message as a whole stream: the host applies or refuses it.
  SyncRequest snapshot;
  for (const SyncRequest& chunk : MakeSnapshot(MakeCluster(3), 1)) snapshot.MergeFrom(chunk);
  snapshot.set_session_id(target.session().id());
  snapshot.set_phase(SyncRequest::PHASE_SNAPSHOT_BEGIN);
  CONFORMANCE_TRY(target.Fuzz(snapshot, kSyncPath));
  // Changes to a complete cache.
  for (int i = 0; i < kit.options().fuzzed_requests; ++i) {
    Session session(kit);
    CONFORMANCE_TRY(session.Open(MakeCluster(5)));
    // Otherwise the host may process this stream after the next one.
    CONFORMANCE_TRY(session.AwaitTaken());
    SyncRequest request;
    request.set_phase(SyncRequest::PHASE_DELTA);
    request.set_version(2);
    *request.add_changes() = UpsertNode(2, MakeNode(2));
    *request.add_changes() = RemoveNode(4);
    *request.add_changes() = UpsertPod(MakePod("plain"));
    *request.add_changes() = PlacePod(MakePod("plain").uid(), PLACEMENT_STATE_ASSUMED, 1);
    *request.add_changes() = RemovePod(MakePod("huge").uid());
    *request.mutable_node_order() = OrderOf({0, 1, 2, 3});
    if (kit.Can(CAPABILITY_QUEUEING_HINTS)) {
      UnschedulablePod* waiting = request.add_unschedulable_pods();
      waiting->set_uid(MakePod("plain").uid());
      waiting->add_rejected_by(kit.configuration().profiles(0).points(0).plugins(0));
      waiting->set_since(3);
      QueueEvent* event = request.add_events();
      event->set_number(4);
      event->mutable_event()->set_resource("Node");
      event->mutable_event()->add_actions(ClusterEvent::ACTION_ADD);
      event->set_node_name("node-2");
    }
    for (uint64_t n = 1 + random() % 3; n > 0; --n) Mutate(&random, &request);
    session.Send(request);
    // Both are allowed, but the host must stay usable.
    CONFORMANCE_TRY(ExpectOk(session.Probe()));
    session.OpenStream();
    session.SendSnapshot(MakeCluster(3), 9);
    // The fuzzed version may be higher.
    absl::Status alive = session.AwaitTaken();
    if (alive.ok()) alive = ExpectAlive(session, 1);
    if (!alive.ok()) {
      return absl::FailedPreconditionError(
          absl::StrCat("after the fuzzed change ", i, " of seed ", kit.options().seed + 3, " (",
                       request.ShortDebugString().substr(0, 300),
                       ") a new snapshot does not help: ", alive.message()));
    }
  }
  return control.Check("fuzzed changes");
}

absl::Status TooLarge(const Kit& kit) {
  if (kit.Can(CAPABILITY_INLINE_NODES))
    return Skipped("a host with INLINE_NODES accepts larger messages");
  Control control(kit);
  CONFORMANCE_TRY(control.Open());
  Session session(kit);
  CONFORMANCE_TRY(session.Connect());
  std::string bytes = "\x12\x80\x80\x80\x08";
  bytes.resize(kTooLarge, 'x');
  const grpc::Status status =
      CallRaw(session.channel(), Rpc<GetHostInfoRequest>::kPath, bytes, kCallDeadline);
  if (status.error_code() != grpc::StatusCode::RESOURCE_EXHAUSTED) {
    return Wrong(kMessageSize, absl::StrCat("a message of 17 MiB gets ", Describe(status),
                                            " instead of RESOURCE_EXHAUSTED"));
  }
  return control.Check("a message of 17 MiB");
}

// Bytes that are not HTTP/2, on separate connections.
absl::Status Garbage(const Kit& kit) {
  absl::string_view path = kit.options().endpoint.address;
  if (!absl::ConsumePrefix(&path, "unix:")) return Skipped("only on Unix sockets");
  Control control(kit);
  CONFORMANCE_TRY(control.Open());
  Random random(kit.options().seed + 4);
  for (int i = 0; i < kit.options().fuzzed_requests; ++i) {
    sockaddr_un name = {};
    name.sun_family = AF_UNIX;
    if (path.size() >= sizeof(name.sun_path)) return Skipped("the path is too long for a socket");
    std::memcpy(name.sun_path, path.data(), path.size());
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, reinterpret_cast<const sockaddr*>(&name), sizeof(name)) != 0) {
      close(fd);
      return absl::FailedPreconditionError(
          absl::StrCat("the host no longer accepts connections: ", strerror(errno)));
    }
    // Every second one begins like HTTP/2.
    std::string bytes = i % 2 == 0 ? "" : "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    for (uint64_t n = random() % 4096; n > 0; --n) bytes.push_back(static_cast<char>(random()));
    send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    close(fd);
  }
  return control.Check("garbage on its socket");
}

}  // namespace

std::vector<Case> FuzzCases() {
  return {
      {"PluginHostService", "fuzzed-handshakes",
       "randomly malformed GetHostInfo, Configure, Probe and EndSession", FuzzHandshake},
      {"PluginHostService", "too-large", "a message of 17 MiB is refused", TooLarge},
      {"PluginHostService", "garbage", "connections without HTTP/2 do no harm", Garbage},
      {"ClusterStateService", "fuzzed-changes", "randomly malformed snapshots and changes",
       FuzzChanges},
      {"ClusterStateService", "fuzzed-calls", "randomly malformed calls about pods", FuzzCalls},
      {"CycleService", "fuzzed-cycles", "randomly malformed fused requests", FuzzCycles},
      {"PlanService", "fuzzed-plans", "randomly malformed requests for plans", FuzzPlans},
  };
}

}  // namespace outboard::conformance
