// The fused cycle: the same answers as by plain calls, in order and in time.
#include "absl/strings/str_cat.h"
#include "cli/conformance/answers.h"
#include "cli/conformance/fused.h"
#include "cli/conformance/session.h"

namespace outboard::conformance {
namespace {

using namespace v1beta1;  // NOLINT: the contract's messages are this file's vocabulary.

constexpr int64_t kShortDeadlineMicros = 300'000;
constexpr absl::Duration kOnTheWay = absl::Seconds(1);  // round trip on a busy machine
constexpr int kManyNodes = 260;                         // enough for an early end of the search

using CycleStream = FusedStream<CycleRpc>;

absl::Status WellFormed(const Kit& kit) {
  Session session(kit);
  CONFORMANCE_TRY(session.Open(MakeCluster()));
  CycleStream stream(session);
  uint64_t attempt = 100;
  for (const Pod& pod : session.cluster().pending) {
    CycleResponse response;
    Round round;
    CONFORMANCE_TRY(stream.Exchange(stream.MakeRequest(++attempt, pod.uid()), &response));
    CONFORMANCE_TRY(ToRound(kit, response, false, &round));
  }
  return absl::OkStatus();
}

absl::Status EqualsPlain(const Kit& kit) {
  Session session(kit);
  CONFORMANCE_TRY(session.Open(MakeCluster()));
  CycleStream stream(session);
  uint64_t attempt = 0;
  for (const Pod& pod : session.cluster().pending) {
    Round plain;
    CONFORMANCE_TRY(RunRound(session, ++attempt, pod.uid(), &plain));
    CycleResponse response;
    Round fused;
    CONFORMANCE_TRY(stream.Exchange(stream.MakeRequest(++attempt, pod.uid()), &response));
    CONFORMANCE_TRY(ToRound(kit, response, false, &fused));
    CONFORMANCE_TRY(ExpectSame(plain, fused, kFusedEqual,
                               absl::StrCat("for pod ", pod.name(), " in the fused answer")));
    // Also with a search of some nodes.
    NodeSearch search;
    search.set_start_offset(5);
    search.set_num_feasible_nodes_to_find(3);
    for (const uint32_t slot : {20, 3, 8, 1, 13, 6, 0}) search.mutable_nodes()->add_slots(slot);
    if (plain.pre_filter.has_node_names()) continue;
    CONFORMANCE_TRY(RunRound(session, ++attempt, pod.uid(), {}, &plain, search));
    CycleRequest request = stream.MakeRequest(++attempt, pod.uid());
    *request.mutable_search() = search;
    CONFORMANCE_TRY(stream.Exchange(request, &response));
    fused = Round();
    CONFORMANCE_TRY(ToRound(kit, response, false, &fused));
    CONFORMANCE_TRY(
        ExpectSame(plain, fused, kFusedEqual,
                   absl::StrCat("for pod ", pod.name(), " on given nodes in the fused answer")));
  }
  return absl::OkStatus();
}

absl::Status Percentage(const Kit& kit) {
  Session session(kit);
  CONFORMANCE_TRY(session.Open(MakeCluster(kManyNodes)));
  CycleStream stream(session);
  uint64_t attempt = 0;
  for (const Pod& pod : session.cluster().pending) {
    Round full;
    CONFORMANCE_TRY(RunRound(session, ++attempt, pod.uid(), FirstSlots(kManyNodes), &full));
    if (full.pre_filter.has_rejection() || !full.filtered || full.filter.has_error()) continue;
    for (const uint32_t percentage : {0u, 1u, 50u, 250u}) {
      CycleRequest request = stream.MakeRequest(++attempt, pod.uid());
      request.set_percentage_of_nodes_to_score(percentage);
      CycleResponse response;
      Round part;
      CONFORMANCE_TRY(stream.Exchange(request, &response));
      CONFORMANCE_TRY(ToRound(kit, response, false, &part));
      const size_t processed =
          ProcessedNodes(full, full.list, EnoughNodes(full.list.size(), percentage));
      if (part.filter.processed() != processed) {
        return Wrong(kFusedPercentage,
                     absl::StrCat("pod ", pod.name(), ": ", part.filter.processed(),
                                  " nodes examined at ", percentage, " %, not ", processed));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status InOrder(const Kit& kit) {
  Session session(kit);
  CONFORMANCE_TRY(session.Open(MakeCluster()));
  CycleStream stream(session);
  const auto& pending = session.cluster().pending;
  for (uint64_t attempt = 1; attempt <= 40; ++attempt)
    stream.Send(stream.MakeRequest(attempt, pending[attempt % pending.size()].uid()));
  for (uint64_t attempt = 1; attempt <= 40; ++attempt) {
    CycleResponse response;
    const absl::Status received = stream.Receive(attempt, &response);
    if (!received.ok())
      return Malformed(MalformedService(received), Wrong(kFusedOrder, received.message()));
    Round round;
    CONFORMANCE_TRY(ToRound(kit, response, false, &round));
  }
  return absl::OkStatus();
}

absl::Status SingleNode(const Kit& kit) {
  Session session(kit);
  CONFORMANCE_TRY(session.Open(MakeCluster(1)));
  CycleStream stream(session);
  CycleRequest request = stream.MakeRequest(1, session.cluster().pending[2].uid());
  CycleResponse response;
  Round round;
  CONFORMANCE_TRY(stream.Exchange(request, &response));
  CONFORMANCE_TRY(ToRound(kit, response, false, &round));
  request = stream.MakeRequest(2, session.cluster().pending[2].uid());
  request.set_score_single_node(true);
  CONFORMANCE_TRY(stream.Exchange(request, &response));
  CONFORMANCE_TRY(ToRound(kit, response, true, &round));
  const CycleEvaluation& evaluation = response.evaluation();
  if (evaluation.filter().feasible() != std::string(1, '\1'))
    return Skipped("the host rejects the only node");
  if (!kit.Has(EXTENSION_POINT_SCORE)) return absl::OkStatus();
  if (!evaluation.has_score()) return Wrong(kFusedSingle, "the only feasible node has no score");
  return CheckScore(kit, evaluation.pre_score(), evaluation.score(), 1);
}

absl::Status Errors(const Kit& kit) {
  Session session(kit);
  CONFORMANCE_TRY(session.Open(MakeCluster(9)));
  CONFORMANCE_TRY(ExpectAlive(session, 1));
  CycleStream stream(session);
  CycleResponse response;
  CycleRequest request = stream.MakeRequest(2, "unknown");
  CONFORMANCE_TRY(stream.Exchange(request, &response));
  CONFORMANCE_TRY(ExpectErrorMessage("Cycle", response.error(), {CallError::REASON_OBJECT_UNKNOWN},
                                     kObjectUnknown));
  request = stream.MakeRequest(3, session.cluster().pending[0].uid());
  request.mutable_header()->set_profile("no-such-profile");
  CONFORMANCE_TRY(stream.Exchange(request, &response));
  CONFORMANCE_TRY(ExpectErrorMessage("Cycle", response.error(), {CallError::REASON_NOT_CONFIGURED},
                                     kNotConfigured));
  request = stream.MakeRequest(4, session.cluster().pending[0].uid());
  request.mutable_search()->mutable_nodes()->add_slots(9);
  CONFORMANCE_TRY(stream.Exchange(request, &response));
  if (!response.has_rejection())
    CONFORMANCE_TRY(ExpectErrorMessage("Cycle", response.error(),
                                       {CallError::REASON_OBJECT_UNKNOWN}, kObjectUnknown));
  // The stream must stay usable.
  CONFORMANCE_TRY(
      stream.Exchange(stream.MakeRequest(5, session.cluster().pending[0].uid()), &response));
  Round round;
  CONFORMANCE_TRY(ToRound(kit, response, false, &round));
  CycleStream other(session);
  request = other.MakeRequest(1, session.cluster().pending[0].uid());
  request.mutable_header()->set_session_id("no-such-session");
  CONFORMANCE_TRY(other.Exchange(request, &response));
  return ExpectErrorMessage("Cycle", response.error(), {CallError::REASON_SESSION_UNKNOWN},
                            kSessionUnknown);
}

absl::Status Versions(const Kit& kit) {
  Session session(kit);
  if (session.acks_every_version()) return Skipped(kIgnoresVersions);
  CONFORMANCE_TRY(session.Open(MakeCluster(9), 5));
  CONFORMANCE_TRY(ExpectAlive(session, 1));
  CycleStream stream(session);
  CycleRequest request = stream.MakeRequest(2, session.cluster().pending[0].uid());
  request.mutable_header()->set_exact_version(6);
  request.set_deadline_micros(kShortDeadlineMicros);
  CycleResponse response;
  const absl::Time began = absl::Now();
  CONFORMANCE_TRY(stream.Exchange(request, &response));
  const absl::Duration took = absl::Now() - began;
  CONFORMANCE_TRY(
      ExpectErrorMessage("Cycle", response.error(), {CallError::REASON_STALE}, kVersionWaits));
  if (took > absl::Microseconds(kShortDeadlineMicros) + kOnTheWay) {
    return Late(
        Wrong(kFusedDeadline,
              absl::StrCat("an answer after ", absl::FormatDuration(took), ", of ",
                           absl::FormatDuration(absl::Microseconds(kShortDeadlineMicros)))));
  }
  session.SendDelta({UpsertPod(MakePod("later"))});
  CONFORMANCE_TRY(stream.Exchange(stream.MakeRequest(3, MakePod("later").uid()), &response));
  Round round;
  CONFORMANCE_TRY(ToRound(kit, response, false, &round));
  request = stream.MakeRequest(4, session.cluster().pending[0].uid());
  request.mutable_header()->set_exact_version(5);
  CONFORMANCE_TRY(stream.Exchange(request, &response));
  return ExpectErrorMessage("Cycle", response.error(), {CallError::REASON_STALE}, kVersionExact);
}

}  // namespace

std::vector<Case> CycleCases() {
  static constexpr char kService[] = "CycleService";
  return {
      {kService, "well-formed", "answers name their attempt, and have the required parts",
       WellFormed},
      {kService, "equals-plain", "fused answers equal those of plain calls", EqualsPlain},
      {kService, "percentage", "the search ends when the percentage of the nodes is feasible",
       Percentage},
      {kService, "in-order", "answers come in the order of requests, also with many in flight",
       InOrder},
      {kService, "single-node", "a single feasible node is scored only on request", SingleNode},
      {kService, "errors", "errors are in the answer, and the stream stays usable", Errors},
      {kService, "versions", "STALE within the request's own deadline", Versions},
  };
}

}  // namespace outboard::conformance
