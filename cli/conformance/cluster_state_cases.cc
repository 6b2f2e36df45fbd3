// The Sync stream: order, acknowledgements, errors, replacement.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "cli/conformance/answers.h"
#include "cli/conformance/session.h"

namespace outboard::conformance {
namespace {

using namespace v1beta1;  // NOLINT: the contract's messages are this file's vocabulary.

constexpr absl::Duration kAckAtLatest = absl::Seconds(3);  // once a second, plus a margin

absl::Status AcksSnapshot(const Kit& kit) {
  Session session(kit);
  CONFORMANCE_TRY(session.Open(MakeCluster(), 41));
  if (session.sync().AwaitAck(41, kSoon)) return absl::OkStatus();
  return Late(Wrong(kAckSnapshot, "no acknowledgement of a snapshot within 5 s"));
}

absl::Status AcksChanges(const Kit& kit) {
  Session session(kit);
  CONFORMANCE_TRY(session.Open(MakeCluster(), 5));
  CONFORMANCE_TRY(ExpectAlive(session, 1));
  for (int i = 0; i < 10; ++i) session.SendDelta({UpsertPod(MakePod(absl::StrCat("later-", i)))});
  if (!session.sync().AwaitAck(15, kAckAtLatest))
    return Late(Wrong(kAckBehind, "no acknowledgement of a change within 3 s"));
  return absl::OkStatus();
}

absl::Status AcksOnlyWhatCame(const Kit& kit) {
  Session session(kit);
  CONFORMANCE_TRY(session.Connect());
  CONFORMANCE_TRY(session.Configure());
  session.OpenStream();
  std::vector<SyncRequest> chunks = MakeSnapshot(MakeCluster(), 3);
  for (size_t i = 0; i + 1 < chunks.size(); ++i) session.Send(chunks[i]);
  // The host answered, so it had time to apply the chunks.
  CONFORMANCE_TRY(ExpectOk(session.Probe()));
  if (session.sync().acknowledged() != 0)
    return Wrong(kAckApplied, "a snapshot is acknowledged before its last chunk");
  session.Send(chunks.back());
  CONFORMANCE_TRY(ExpectAlive(session, 1));
  session.SendDelta({UpsertPod(MakePod("later"))});
  CONFORMANCE_TRY(ExpectAlive(session, 2));
  session.sync().AwaitAck(4, kAckAtLatest);
  int64_t before = 0;
  for (const SyncResponse& response : session.sync().received()) {
    if (!response.has_ack()) continue;
    const int64_t version = response.ack().version();
    if (version < before || version < 3 || version > 4)
      return Wrong(kAckApplied, absl::StrCat("version ", version, " is acknowledged after ", before,
                                             "; 3 and 4 were sent"));
    before = version;
  }
  return absl::OkStatus();
}

// A host that acknowledges about once a second does not do it "as soon as"; a busy machine takes
// its time.
constexpr absl::Duration kSoonEnough = absl::Milliseconds(300);

absl::Status AcksEveryVersion(const Kit& kit) {
  Session session(kit);
  if (!session.acks_every_version()) return Skipped("the host does not have ACKS_EVERY_VERSION");
  CONFORMANCE_TRY(session.Open(MakeCluster(9), 5));
  for (int i = 0; i < 3; ++i) {
    if (!session.sync().AwaitAck(session.version(), kSoonEnough)) {
      return Late(Wrong(kAckEveryVersion,
                        absl::StrCat("version ", session.version(), " is not acknowledged")));
    }
    session.SendDelta({UpsertPod(MakePod(absl::StrCat("later-", i)))});
  }
  return absl::OkStatus();
}

// Sends messages on a stream of a configured session. The host must refuse them.
absl::Status ExpectRefused(const Kit& kit, bool after_snapshot, const std::string& what,
                           const std::vector<SyncRequest>& messages) {
  Session session(kit);
  CONFORMANCE_TRY(session.Connect());
  CONFORMANCE_TRY(session.Configure());
  session.OpenStream();
  if (after_snapshot) session.SendSnapshot(MakeCluster(5), 10);
  for (const SyncRequest& message : messages) session.Send(message);
  return ExpectStreamRefused(&session, what);
}

SyncRequest Message(SyncRequest::Phase phase, int64_t version, std::vector<Change> changes = {}) {
  SyncRequest message;
  message.set_phase(phase);
  message.set_version(version);
  message.mutable_changes()->Add(changes.begin(), changes.end());
  return message;
}

absl::Status WrongOrder(const Kit& kit) {
  CONFORMANCE_TRY(ExpectRefused(kit, false, "a change before a snapshot",
                                {Message(SyncRequest::PHASE_DELTA, 1)}));
  CONFORMANCE_TRY(ExpectRefused(kit, false, "a chunk before the first one",
                                {Message(SyncRequest::PHASE_SNAPSHOT_MORE, 1)}));
  CONFORMANCE_TRY(ExpectRefused(kit, false, "a last chunk before the first one",
                                {Message(SyncRequest::PHASE_SNAPSHOT_END, 1)}));
  CONFORMANCE_TRY(ExpectRefused(
      kit, false, "a change between chunks",
      {Message(SyncRequest::PHASE_SNAPSHOT_BEGIN, 1), Message(SyncRequest::PHASE_DELTA, 2)}));
  CONFORMANCE_TRY(ExpectRefused(kit, false, "a chunk of another version",
                                {Message(SyncRequest::PHASE_SNAPSHOT_BEGIN, 1),
                                 Message(SyncRequest::PHASE_SNAPSHOT_END, 2)}));
  return ExpectRefused(kit, true, "a decreasing version", {Message(SyncRequest::PHASE_DELTA, 9)});
}

absl::Status WrongChanges(const Kit& kit) {
  Node other = MakeNode(77);
  CONFORMANCE_TRY(ExpectRefused(kit, true, "the removal of an unknown slot",
                                {Message(SyncRequest::PHASE_DELTA, 11, {RemoveNode(5)})}));
  CONFORMANCE_TRY(ExpectRefused(kit, true, "a node in an occupied slot",
                                {Message(SyncRequest::PHASE_DELTA, 11, {UpsertNode(2, other)})}));
  CONFORMANCE_TRY(ExpectRefused(
      kit, true, "a placement of an unknown pod",
      {Message(SyncRequest::PHASE_DELTA, 11, {PlacePod("unknown", PLACEMENT_STATE_ASSUMED, 1)})}));
  CONFORMANCE_TRY(ExpectRefused(
      kit, true, "a placement in an unknown slot",
      {Message(SyncRequest::PHASE_DELTA, 11,
               {PlacePod(MakePod("plain").uid(), PLACEMENT_STATE_ASSUMED, 4000000000)})}));
  SyncRequest order = Message(SyncRequest::PHASE_DELTA, 11);
  *order.mutable_node_order() = OrderOf({0, 1, 2, 3, 3});
  CONFORMANCE_TRY(ExpectRefused(kit, true, "an order with a slot twice", {order}));
  *order.mutable_node_order() = OrderOf({0, 1, 2, 3});
  return ExpectRefused(kit, true, "an order without an occupied slot", {order});
}

absl::Status UnknownSession(const Kit& kit) {
  Session session(kit);
  CONFORMANCE_TRY(session.Connect());
  grpc::Status status;
  session.OpenStream();
  session.SendSnapshot(MakeCluster(3), 1);
  if (!session.sync().AwaitEnd(kSoon, &status))
    return Wrong(kSyncUnknownSession, "the stream of an unknown session stays open");
  CONFORMANCE_TRY(
      ExpectError("Sync", status, {CallError::REASON_SESSION_UNKNOWN}, kSyncUnknownSession));
  SyncStream nameless(session.channel());
  nameless.Send(Message(SyncRequest::PHASE_SNAPSHOT_BEGIN, 1));
  if (!nameless.AwaitEnd(kSoon, &status))
    return Wrong(kSyncSession, "a stream without a session stays open");
  return ExpectError("Sync", status, {CallError::REASON_INVALID}, kSyncSession);
}

absl::Status StreamReplaced(const Kit& kit) {
  Session session(kit);
  CONFORMANCE_TRY(session.Open(MakeCluster(9)));
  CONFORMANCE_TRY(ExpectAlive(session, 1));
  SyncStream second(session.channel());
  std::vector<SyncRequest> chunks = MakeSnapshot(MakeCluster(4), 8);
  chunks[0].set_session_id(session.id());
  for (const SyncRequest& chunk : chunks) second.Send(chunk);
  // Once the host has the new stream, the old one may end only at its next message. A missing
  // acknowledgement fails a case of its own.
  second.AwaitAck(8, kSoon);
  session.SendDelta({});
  grpc::Status status;
  if (!session.sync().AwaitEnd(kSoon, &status))
    return Wrong(kSyncReplaces, "the old stream stays open beside the new one");
  if (!kit.HasAlgorithm()) return absl::OkStatus();
  PreFilterRequest request;
  *request.mutable_header() = session.Header(2);
  request.mutable_header()->set_exact_version(8);
  request.set_pod_uid(session.cluster().pending[0].uid());
  const auto answer = session.Call(request);
  if (answer.status.ok()) return absl::OkStatus();
  return Wrong(kSyncReplaces, absl::StrCat("at the new stream's version PreFilter says ",
                                           Describe(answer.status)));
}

absl::Status EmptySnapshot(const Kit& kit) {
  Session session(kit);
  CONFORMANCE_TRY(session.Connect());
  CONFORMANCE_TRY(session.Configure());
  session.OpenStream();
  session.Send(Message(SyncRequest::PHASE_SNAPSHOT_BEGIN, 1));
  session.Send(Message(SyncRequest::PHASE_SNAPSHOT_END, 1));
  session.SendDelta({UpsertNode(0, MakeNode(0)), UpsertPod(MakePod("first"))}, {0});
  if (!kit.HasAlgorithm()) return session.AwaitReady();
  return ExpectOk(session.PreFilter(1, MakePod("first").uid()));
}

absl::Status UnknownChanges(const Kit& kit) {
  Session session(kit);
  CONFORMANCE_TRY(session.Open(MakeCluster(5)));
  Change later;
  // Field 900: of a newer contract.
  later.GetReflection()->MutableUnknownFields(&later)->AddLengthDelimited(900, "later");
  session.SendDelta({later});
  const absl::Status alive = ExpectAlive(session, 1);
  if (alive.ok()) return alive;
  return Wrong(kSyncUnknownChange, absl::StrCat("after one, ", alive.message()));
}

absl::Status UnknownPodRemoved(const Kit& kit) {
  Session session(kit);
  CONFORMANCE_TRY(session.Open(MakeCluster(5)));
  session.SendDelta({RemovePod("never-seen")});
  const absl::Status alive = ExpectAlive(session, 1);
  if (alive.ok()) return alive;
  return Wrong(kPodRemoveUnknown, absl::StrCat("after one, ", alive.message()));
}

absl::Status PushResultsOfOthers(const Kit& kit) {
  Session session(kit);
  CONFORMANCE_TRY(session.Open(MakeCluster(5)));
  SyncRequest request;
  request.set_phase(SyncRequest::PHASE_DELTA);
  request.set_version(session.version());
  // 900: of a newer contract.
  for (const int outcome : {static_cast<int>(PushResult::OUTCOME_APPLIED),
                            static_cast<int>(PushResult::OUTCOME_FORBIDDEN), 900}) {
    PushResult* const result = request.add_push_results();
    result->set_push_id(1'000'000'000 + static_cast<uint64_t>(outcome));
    result->set_outcome(static_cast<PushResult::Outcome>(outcome));
    result->set_message("about no push of this host");
  }
  session.Send(request);
  session.SendDelta({UpsertPod(MakePod("later"))});
  const absl::Status alive = ExpectAlive(session, 1);
  if (alive.ok()) return alive;
  return Wrong(kPushResults,
               absl::StrCat("after results of pushes that it never sent, ", alive.message()));
}

absl::Status TwoSessions(const Kit& kit) {
  if (!kit.HasAlgorithm()) return Skipped("no plugin from PRE_FILTER to SCORE to observe");
  Session one(kit);
  Session two(kit);
  CONFORMANCE_TRY(one.Open(MakeCluster(9), 100));
  TestCluster cluster = MakeCluster(4);
  cluster.pending = {MakePod("another")};
  CONFORMANCE_TRY(two.Open(cluster, 3));
  for (const Session* session : {&one, &two}) {
    Round round;
    absl::Status status = RunRound(*session, 1, session->cluster().pending[0].uid(), &round);
    if (!status.ok())
      return Malformed(
          MalformedService(status),
          Wrong(kOneCache, absl::StrCat("beside another session: ", status.message())));
  }
  CONFORMANCE_TRY(ExpectError(two.PreFilter(2, one.cluster().pending[0].uid()),
                              {CallError::REASON_OBJECT_UNKNOWN}, kOneCache));
  // Changes of one session must not affect the other.
  two.SendDelta({RemoveNode(3)}, {0, 1, 2});
  CONFORMANCE_TRY(ExpectAlive(two, 3));
  Round round;
  absl::Status status = RunRound(one, 2, one.cluster().pending[0].uid(), &round);
  if (!status.ok())
    return Malformed(
        MalformedService(status),
        Wrong(kOneCache, absl::StrCat("after another session's change: ", status.message())));
  return absl::OkStatus();
}

}  // namespace

std::vector<Case> ClusterStateCases() {
  static constexpr char kService[] = "ClusterStateService";
  return {
      {kService, "ack-snapshot", "a snapshot is acknowledged", AcksSnapshot},
      {kService, "ack-changes", "changes are acknowledged within about a second", AcksChanges},
      {kService, "ack-every-version", "each version is acknowledged, if the host promises it",
       AcksEveryVersion},
      {kService, "ack-only-what-came", "only applied versions are acknowledged", AcksOnlyWhatCame},
      {kService, "empty-snapshot", "an empty cluster is accepted", EmptySnapshot},
      {kService, "wrong-order", "messages out of order end the stream; a snapshot recovers",
       WrongOrder},
      {kService, "wrong-changes", "invalid changes end the stream; a snapshot recovers",
       WrongChanges},
      {kService, "unknown-session",
       "a stream without a session, or of an unknown session, is refused", UnknownSession},
      {kService, "unknown-changes", "changes of a newer contract are ignored", UnknownChanges},
      {kService, "unknown-pod-removed", "the removal of an unknown pod is ignored",
       UnknownPodRemoved},
      {kService, "push-results", "results of pushes that it never sent are ignored",
       PushResultsOfOthers},
      {kService, "stream-replaced", "a second stream of a session replaces the first one",
       StreamReplaced},
      {kService, "two-sessions", "sessions are independent", TwoSessions},
  };
}

}  // namespace outboard::conformance
