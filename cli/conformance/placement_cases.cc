// After the algorithm: Reserve, Unreserve, Permit, PreBind, Bind, PostBind.
#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "cli/conformance/answers.h"
#include "cli/conformance/session.h"

namespace outboard::conformance {
namespace {

using namespace v1beta1;  // NOLINT: the contract's messages are this file's vocabulary.

constexpr absl::Duration kVersionDeadline = absl::Milliseconds(800);
constexpr size_t kMaxAnnotations = 256;
constexpr size_t kMaxAnnotationBytes = 256 << 10;

template <typename Request>
Request About(const Session& session, uint64_t attempt, const Pod& pod, const std::string& node) {
  Request request;
  *request.mutable_header() = session.HeaderFrom(attempt);
  request.set_pod_uid(pod.uid());
  request.set_node_name(node);
  session.Complete(&request);
  return request;
}

// An attempt that found a node: PreFilter … Score if the host has them. Empty `node`: no node fits.
absl::Status FindNode(const Session& session, uint64_t attempt, const Pod& pod, std::string* node) {
  node->clear();
  if (!session.kit().HasAlgorithm()) {
    *node = session.cluster().nodes[0].name();
    return absl::OkStatus();
  }
  Round round;
  CONFORMANCE_TRY(RunRound(session, attempt, pod.uid(), &round));
  if (!round.feasible.empty()) *node = session.cluster().nodes[round.feasible[0]].name();
  return absl::OkStatus();
}

absl::Status CheckReserve(const Kit& kit, const ReserveResponse& response) {
  if (response.has_rejection()) {
    return CheckStatus(
        response.rejection(), "ReserveResponse.rejection", kit.At(EXTENSION_POINT_RESERVE),
        {CODE_ERROR, CODE_UNSCHEDULABLE, CODE_UNSCHEDULABLE_AND_UNRESOLVABLE, CODE_PENDING},
        kReserveRejection);
  }
  CONFORMANCE_TRY(CheckStates(kit, response));
  return CheckEffects(kit, response);
}

absl::Status Reserve(const Kit& kit) {
  Session session(kit);
  CONFORMANCE_TRY(session.Open(MakeCluster()));
  uint64_t attempt = 0;
  for (const Pod& pod : session.cluster().pending) {
    std::string node;
    CONFORMANCE_TRY(FindNode(session, ++attempt, pod, &node));
    if (node.empty()) continue;
    const auto request = About<ReserveRequest>(session, attempt, pod, node);
    const auto first = session.Call(request);
    CONFORMANCE_TRY(ExpectOk(first));
    CONFORMANCE_TRY(CheckReserve(kit, first.message));
    const auto again = session.Call(request);
    CONFORMANCE_TRY(ExpectOk(again));
    if (again.message.SerializeAsString() != first.message.SerializeAsString())
      return Wrong(kReserveAgain, absl::StrCat("pod ", pod.name(), ": the second answer differs"));
    const auto undo = About<UnreserveRequest>(session, attempt, pod, node);
    for (int i = 0; i < 2; ++i) {
      const auto undone = session.Call(undo);
      if (!undone.status.ok())
        return Wrong(kUnreserveUnknown,
                     absl::StrCat("Unreserve returns ", Describe(undone.status)));
      for (const WaitDecision& decision : undone.message.decisions()) {
        CONFORMANCE_TRY(CheckDecision(decision, kit.At(EXTENSION_POINT_PERMIT)));
      }
    }
    const auto after_undo = session.Call(request);
    CONFORMANCE_TRY(ExpectOk(after_undo));
    CONFORMANCE_TRY(CheckReserve(kit, after_undo.message));
    CONFORMANCE_TRY(ExpectOk(session.Call(undo)));
  }
  return absl::OkStatus();
}

absl::Status UnreserveUnknown(const Kit& kit) {
  Session session(kit);
  CONFORMANCE_TRY(session.Open(MakeCluster(5)));
  CONFORMANCE_TRY(ExpectAlive(session, 1));
  const std::string node = session.cluster().nodes[0].name();
  const Pod unknown = MakePod("unknown");
  for (const Pod* pod : {&session.cluster().pending[0], &unknown}) {
    for (const std::string& where : {node, std::string("no-such-node")}) {
      const auto answer = session.Call(About<UnreserveRequest>(session, 99, *pod, where));
      if (answer.status.ok()) continue;
      return Wrong(kUnreserveUnknown, absl::StrCat("Unreserve of pod ", pod->name(), " from ",
                                                   where, " returns ", Describe(answer.status)));
    }
  }
  return absl::OkStatus();
}

// Errors of Reserve and Permit for invalid requests.
template <typename Request>
absl::Status CheckErrors(const Kit& kit, const Rule& begins) {
  Session session(kit);
  CONFORMANCE_TRY(session.Open(MakeCluster(5)));
  CONFORMANCE_TRY(ExpectAlive(session, 1));
  const Pod& pod = session.cluster().pending[0];
  const std::string node = session.cluster().nodes[0].name();
  const auto unknown = session.Call(About<Request>(session, 99, pod, node));
  if (kit.HasAlgorithm()) {
    CONFORMANCE_TRY(ExpectError(unknown, {CallError::REASON_ATTEMPT_UNKNOWN}, kAttemptUnknown));
  } else if (!unknown.status.ok()) {
    return Wrong(begins, absl::StrCat(unknown.method, " returns ", Describe(unknown.status)));
  }
  CONFORMANCE_TRY(ExpectError(session.Call(About<Request>(session, 1, pod, "no-such-node")),
                              {CallError::REASON_OBJECT_UNKNOWN}, kObjectUnknown));
  auto request = About<Request>(session, 1, pod, node);
  request.mutable_header()->set_session_id("no-such-session");
  return ExpectError(session.Call(request), {CallError::REASON_SESSION_UNKNOWN}, kSessionUnknown);
}

absl::Status ReserveErrors(const Kit& kit) {
  return CheckErrors<ReserveRequest>(kit, kReserveBegins);
}
absl::Status PermitErrors(const Kit& kit) { return CheckErrors<PermitRequest>(kit, kPermitBegins); }

absl::Status ReserveVersions(const Kit& kit) {
  Session session(kit);
  CONFORMANCE_TRY(session.Open(MakeCluster(5), 5));
  std::string node;
  const Pod& pod = session.cluster().pending[2];
  CONFORMANCE_TRY(FindNode(session, 1, pod, &node));
  if (node.empty()) return Skipped("the host rejects all nodes for the pod");
  session.SendDelta({UpsertPod(MakePod("later"))});
  CONFORMANCE_TRY(ExpectAlive(session, 2));
  for (const int64_t version : {0, 5, 6}) {
    auto request = About<ReserveRequest>(session, 1, pod, node);
    if (version == 0) {
      request.mutable_header()->clear_min_version();
    } else {
      request.mutable_header()->set_min_version(version);
    }
    const auto answer = session.Call(request);
    if (answer.status.ok()) continue;
    return Wrong(kVersionMinimum, absl::StrCat("Reserve at version ", version, " of 6 returns ",
                                               Describe(answer.status)));
  }
  if (session.acks_every_version()) return absl::OkStatus();
  auto request = About<ReserveRequest>(session, 1, pod, node);
  request.mutable_header()->set_min_version(8);
  return ExpectError(session.CallWithin(request, kVersionDeadline), {CallError::REASON_STALE},
                     kVersionMinimum);
}

absl::Status CheckPermit(const Kit& kit, const PermitResponse& response) {
  const Plugins plugins = kit.At(EXTENSION_POINT_PERMIT);
  for (const WaitDecision& decision : response.decisions())
    CONFORMANCE_TRY(CheckDecision(decision, plugins));
  if (response.has_rejection()) {
    return CheckStatus(
        response.rejection(), "PermitResponse.rejection", plugins,
        {CODE_ERROR, CODE_UNSCHEDULABLE, CODE_UNSCHEDULABLE_AND_UNRESOLVABLE, CODE_PENDING},
        kPermitRejection);
  }
  std::set<std::string> waiting;
  for (const PermitWait& wait : response.waits()) {
    if (std::find(plugins.begin(), plugins.end(), wait.plugin()) == plugins.end() ||
        !waiting.insert(wait.plugin()).second)
      return Wrong(kPermitWaits,
                   absl::StrCat("\"", wait.plugin(), "\" is not configured there, or waits twice"));
    if (wait.timeout_micros() <= 0)
      return Wrong(kPermitTimeout, absl::StrCat(wait.timeout_micros(), " of ", wait.plugin()));
  }
  return absl::OkStatus();
}

// A pod that has waited since another instance served.
absl::Status PermitResumed(const Kit& kit) {
  constexpr uint64_t kAttempt = 500;
  Session session(kit);
  CONFORMANCE_TRY(session.Open(MakeCluster(5)));
  CONFORMANCE_TRY(ExpectAlive(session, 501));
  const Pod& pod = session.cluster().pending[0];
  if (!session.is_inline()) {
    Change placed = PlacePod(pod.uid(), PLACEMENT_STATE_WAITING, 0);
    placed.mutable_pod_placement()->set_attempt_id(kAttempt);
    PluginWait* wait = placed.mutable_pod_placement()->add_waits();
    wait->set_plugin(kit.At(EXTENSION_POINT_PERMIT).front());
    wait->set_remaining_micros(20'000'000);
    session.SendDelta({placed});
  }
  auto request = About<PermitRequest>(session, kAttempt, pod, session.cluster().nodes[0].name());
  request.set_resumed(true);
  for (int i = 0; i < 2; ++i) {
    const auto answer = session.Call(request);
    if (!answer.status.ok())
      return Wrong(kPermitResumed, absl::StrCat("Permit returns ", Describe(answer.status)));
    CONFORMANCE_TRY(CheckPermit(kit, answer.message));
  }
  return absl::OkStatus();
}

absl::Status Permit(const Kit& kit) {
  Session session(kit);
  CONFORMANCE_TRY(session.Open(MakeCluster()));
  uint64_t attempt = 0;
  for (const Pod& pod : session.cluster().pending) {
    std::string node;
    CONFORMANCE_TRY(FindNode(session, ++attempt, pod, &node));
    if (node.empty()) continue;
    if (kit.Has(EXTENSION_POINT_RESERVE)) {
      const auto reserved = session.Call(About<ReserveRequest>(session, attempt, pod, node));
      CONFORMANCE_TRY(ExpectOk(reserved));
      if (reserved.message.has_rejection()) continue;
    }
    const auto request = About<PermitRequest>(session, attempt, pod, node);
    const auto first = session.Call(request);
    CONFORMANCE_TRY(ExpectOk(first));
    CONFORMANCE_TRY(CheckPermit(kit, first.message));
    const auto again = session.Call(request);
    if (!again.status.ok())
      return Wrong(kPermitAgain,
                   absl::StrCat("the second Permit returns ", Describe(again.status)));
    CONFORMANCE_TRY(CheckPermit(kit, again.message));
    if (kit.Has(EXTENSION_POINT_RESERVE))
      CONFORMANCE_TRY(ExpectOk(session.Call(About<UnreserveRequest>(session, attempt, pod, node))));
  }
  return absl::OkStatus();
}

absl::Status PreBind(const Kit& kit) {
  Session session(kit);
  CONFORMANCE_TRY(session.Open(MakeCluster(5)));
  CONFORMANCE_TRY(ExpectAlive(session, 1));
  const Pod& pod = session.cluster().pending[0];
  auto request = About<PreBindRequest>(session, 99, pod, session.cluster().nodes[0].name());
  // The instance must also accept an attempt that it did not begin.
  const auto answer = session.Call(request);
  if (!answer.status.ok())
    return Wrong(kPreBindCache, absl::StrCat("PreBind returns ", Describe(answer.status)));
  if (answer.message.has_rejection()) {
    CONFORMANCE_TRY(CheckStatus(
        answer.message.rejection(), "PreBindResponse.rejection", kit.At(EXTENSION_POINT_PRE_BIND),
        {CODE_ERROR, CODE_UNSCHEDULABLE, CODE_UNSCHEDULABLE_AND_UNRESOLVABLE}, kPreBindCache));
  }
  Effect* effect = request.add_effects();
  effect->set_key("one");
  effect->set_plugin(kit.At(EXTENSION_POINT_PRE_BIND)[0]);
  return ExpectError(session.Call(request), {CallError::REASON_INVALID}, kPreBindResults);
}

absl::Status CheckBind(const Kit& kit, const BindResponse& response, const std::string& plugin) {
  switch (response.outcome_case()) {
    case BindResponse::OUTCOME_NOT_SET:
      return Wrong(kBindOutcome, "Bind returns no outcome");
    case BindResponse::kRejection:
      return CheckStatus(
          response.rejection(), "BindResponse.rejection", {plugin},
          {CODE_ERROR, CODE_UNSCHEDULABLE, CODE_UNSCHEDULABLE_AND_UNRESOLVABLE, CODE_PENDING},
          kBindOutcome);
    case BindResponse::kShimBinds: {
      size_t bytes = 0;
      const auto& annotations = response.shim_binds().annotations();
      for (const auto& [key, value] : annotations) bytes += key.size() + value.size();
      if (annotations.size() <= kMaxAnnotations && bytes <= kMaxAnnotationBytes)
        return absl::OkStatus();
      return Wrong(kBindAnnotations,
                   absl::StrCat(annotations.size(), " annotations of ", bytes, " bytes"));
    }
    default:
      return absl::OkStatus();
  }
}

absl::Status Bind(const Kit& kit) {
  Session session(kit);
  CONFORMANCE_TRY(session.Open(MakeCluster(5)));
  const Pod& pod = session.cluster().pending[0];
  const std::string& node = session.cluster().nodes[0].name();
  for (const std::string& plugin : kit.At(EXTENSION_POINT_BIND)) {
    // The shim never asks for this name.
    if (plugin == "DefaultBinder") continue;
    auto request = About<BindRequest>(session, 99, pod, node);
    request.set_plugin(plugin);
    const auto answer = session.Call(request);
    CONFORMANCE_TRY(ExpectOk(answer));
    CONFORMANCE_TRY(CheckBind(kit, answer.message, plugin));
  }
  auto request = About<BindRequest>(session, 99, pod, node);
  request.set_plugin("no-such-plugin");
  return ExpectError(session.Call(request), {CallError::REASON_INVALID}, kBindPlugin);
}

absl::Status PostBind(const Kit& kit) {
  Session session(kit);
  CONFORMANCE_TRY(session.Open(MakeCluster(5)));
  const auto request = About<PostBindRequest>(session, 99, session.cluster().pending[0],
                                              session.cluster().nodes[0].name());
  for (int i = 0; i < 2; ++i) {
    if (const auto answer = session.Call(request); !answer.status.ok())
      return Wrong(kPostBindAgain, absl::StrCat("PostBind returns ", Describe(answer.status)));
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<Case> PlacementCases() {
  return {
      {"ReserveService", "reserve", "reserve, repeat, unreserve twice, and reserve again", Reserve},
      {"ReserveService", "unreserve-unknown", "unknown attempts, pods and nodes can be unreserved",
       UnreserveUnknown},
      {"ReserveService", "reserve-errors",
       "unknown attempts, nodes, instances and sessions return an error", ReserveErrors},
      {"ReserveService", "reserve-versions", "a version is a minimum", ReserveVersions},
      {"PermitService", "permit", "answers are well formed and reproducible", Permit},
      {"PermitService", "permit-errors",
       "unknown attempts, nodes, instances and sessions return an error", PermitErrors},
      {"PermitService", "permit-resumed", "a pod that has waited since another instance served",
       PermitResumed},
      {"PreBindService", "pre-bind", "answers depend only on the cache", PreBind},
      {"BindService", "bind", "each plugin's answer has an outcome", Bind},
      {"PostBindService", "post-bind", "a notice may come again", PostBind},
  };
}

}  // namespace outboard::conformance
