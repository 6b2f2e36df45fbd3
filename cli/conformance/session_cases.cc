// Calls of a session that the host does not know: every service rejects them.
#include <string>
#include <utility>
#include <vector>

#include "cli/conformance/answers.h"
#include "cli/conformance/session.h"

namespace outboard::conformance {
namespace {

using namespace v1beta1;  // NOLINT: the contract's messages are this file's vocabulary.

constexpr char kUnknownSession[] = "no-such-session";

// Sends requests that are complete but for their session, which no Configure named. Does nothing
// for points at which the host has no plugin.
class Stranger {
 public:
  explicit Stranger(const Session& session) : session_(session) {}

  template <typename Request>
  absl::Status Try(ExtensionPoint point, Request request) const {
    if (!session_.kit().Has(point)) return absl::OkStatus();
    *request.mutable_header() = session_.Header(1);
    return Send(std::move(request));
  }
  // For calls without an exact version.
  template <typename Request>
  absl::Status TryAtLeast(ExtensionPoint point, Request request) const {
    if (!session_.kit().Has(point)) return absl::OkStatus();
    *request.mutable_header() = session_.HeaderFrom(1);
    return Send(std::move(request));
  }
  // About a pod on a node.
  template <typename Request>
  absl::Status TryPlaced(ExtensionPoint point, Request request = {}) const {
    request.set_pod_uid(session_.cluster().pending[0].uid());
    request.set_node_name(session_.cluster().nodes[0].name());
    return TryAtLeast(point, std::move(request));
  }

 private:
  template <typename Request>
  absl::Status Send(Request request) const {
    session_.Complete(&request);
    request.mutable_header()->set_session_id(kUnknownSession);
    return ExpectError(session_.Call(request), {CallError::REASON_SESSION_UNKNOWN},
                       kSessionUnknown);
  }

  const Session& session_;
};

absl::Status TryQueue(const Session& session, const Stranger& stranger) {
  SortKeysRequest sort;
  PreEnqueueRequest gate;
  for (const Pod& pod : session.cluster().pending) {
    sort.add_pod_uids(pod.uid());
    gate.add_pod_uids(pod.uid());
  }
  CONFORMANCE_TRY(stranger.TryAtLeast(EXTENSION_POINT_QUEUE_SORT, sort));
  return stranger.TryAtLeast(EXTENSION_POINT_PRE_ENQUEUE, gate);
}

absl::Status TryAlgorithm(const Session& session, const Stranger& stranger) {
  const std::vector<uint32_t> slots = FirstSlots(static_cast<int>(session.cluster().nodes.size()));
  NodeSet nodes;
  nodes.mutable_slots()->Add(slots.begin(), slots.end());
  PreFilterRequest pre_filter;
  pre_filter.set_pod_uid(session.cluster().pending[0].uid());
  FilterRequest filter;
  *filter.mutable_search()->mutable_nodes() = nodes;
  filter.mutable_search()->set_num_feasible_nodes_to_find(static_cast<uint32_t>(slots.size()));
  PreScoreRequest pre_score;
  *pre_score.mutable_nodes() = nodes;
  ScoreRequest score;
  *score.mutable_nodes() = nodes;
  CONFORMANCE_TRY(stranger.Try(EXTENSION_POINT_PRE_FILTER, pre_filter));
  CONFORMANCE_TRY(stranger.Try(EXTENSION_POINT_FILTER, filter));
  CONFORMANCE_TRY(stranger.Try(EXTENSION_POINT_PRE_SCORE, pre_score));
  CONFORMANCE_TRY(stranger.Try(EXTENSION_POINT_SCORE, score));
  return stranger.Try(EXTENSION_POINT_POST_FILTER, PostFilterRequest());
}

// A process that took the place of an instance must not answer for it, nor act on its calls.
absl::Status UnknownSession(const Kit& kit) {
  Session session(kit);
  CONFORMANCE_TRY(session.Open(MakeCluster(5)));
  CONFORMANCE_TRY(ExpectAlive(session, 1));
  // Calls of this attempt carry this pod.
  if (session.is_inline())
    CONFORMANCE_TRY(ExpectOk(session.PreFilter(1, session.cluster().pending[0].uid())));
  const Stranger stranger(session);
  CONFORMANCE_TRY(TryQueue(session, stranger));
  CONFORMANCE_TRY(TryAlgorithm(session, stranger));
  CONFORMANCE_TRY(stranger.TryPlaced<ReserveRequest>(EXTENSION_POINT_RESERVE));
  CONFORMANCE_TRY(stranger.TryPlaced<UnreserveRequest>(EXTENSION_POINT_RESERVE));
  CONFORMANCE_TRY(stranger.TryPlaced<PermitRequest>(EXTENSION_POINT_PERMIT));
  CONFORMANCE_TRY(stranger.TryPlaced<PreBindRequest>(EXTENSION_POINT_PRE_BIND));
  for (const std::string& plugin : kit.At(EXTENSION_POINT_BIND)) {
    BindRequest bind;
    bind.set_plugin(plugin);
    CONFORMANCE_TRY(stranger.TryPlaced(EXTENSION_POINT_BIND, bind));
  }
  CONFORMANCE_TRY(stranger.TryPlaced<PostBindRequest>(EXTENSION_POINT_POST_BIND));
  return ExpectAlive(session, 2);
}

}  // namespace

std::vector<Case> SessionCases() {
  return {{"PluginHostService", "unknown-session",
           "a session that Configure never named is SESSION_UNKNOWN in every call",
           UnknownSession}};
}

}  // namespace outboard::conformance
