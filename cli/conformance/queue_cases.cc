// Calls about pods outside a cycle: their order, gates, and events that help them.
#include <algorithm>
#include <set>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "cli/conformance/answers.h"
#include "cli/conformance/session.h"

namespace outboard::conformance {
namespace {

using namespace v1beta1;  // NOLINT: the contract's messages are this file's vocabulary.

constexpr int kMaxPods = 4096;
constexpr size_t kMaxKeyBytes = 64;
constexpr absl::Duration kUnknownPodDeadline = absl::Milliseconds(300);

template <typename Request>
Request AboutPending(const Session& session) {
  Request request;
  *request.mutable_header() = session.HeaderFrom(0);
  for (const Pod& pod : session.cluster().pending) request.add_pod_uids(pod.uid());
  session.Complete(&request);
  return request;
}

// Errors of both services for invalid requests.
template <typename Request>
absl::Status CheckErrors(const Session& session, const Rule& limit) {
  Request request = AboutPending<Request>(session);
  request.add_pod_uids("unknown");
  CONFORMANCE_TRY(ExpectError(session.CallWithin(request, kUnknownPodDeadline),
                              {CallError::REASON_OBJECT_UNKNOWN}, kObjectUnknown));
  request = AboutPending<Request>(session);
  request.mutable_header()->set_profile("no-such-profile");
  CONFORMANCE_TRY(
      ExpectError(session.Call(request), {CallError::REASON_NOT_CONFIGURED}, kNotConfigured));
  request = AboutPending<Request>(session);
  request.mutable_header()->set_session_id("no-such-session");
  CONFORMANCE_TRY(
      ExpectError(session.Call(request), {CallError::REASON_SESSION_UNKNOWN}, kSessionUnknown));
  request = AboutPending<Request>(session);
  while (request.pod_uids_size() <= kMaxPods)
    request.add_pod_uids(session.cluster().pending[0].uid());
  return ExpectError(session.Call(request), {CallError::REASON_INVALID}, limit);
}

// Whether SortKeysRequest.queued comes to this host.
bool ReadsAttempts(const Kit& kit) {
  return absl::c_any_of(kit.info().plugins(), [](const PluginInfo& plugin) {
    constexpr char kAttempts[] = "QueuedPodInfo.attempts";
    return absl::c_linear_search(plugin.needed_fields(), kAttempts) ||
           absl::c_linear_search(plugin.optional_fields(), kAttempts);
  });
}

absl::Status SortKeys(const Kit& kit) {
  Session session(kit);
  CONFORMANCE_TRY(session.Open(MakeCluster(5)));
  auto request = AboutPending<SortKeysRequest>(session);
  if (ReadsAttempts(kit)) {
    for (int i = 0; i < request.pod_uids_size(); ++i)
      request.add_queued()->set_attempts(static_cast<uint32_t>(i));
  }
  const auto answer = session.Call(request);
  CONFORMANCE_TRY(ExpectOk(answer));
  if (answer.message.keys_size() != request.pod_uids_size()) {
    return Wrong(kSortKeys, absl::StrCat(answer.message.keys_size(), " keys for ",
                                         request.pod_uids_size(), " pods"));
  }
  for (const std::string& key : answer.message.keys()) {
    if (key.size() > kMaxKeyBytes)
      return Wrong(kSortKeys, absl::StrCat("a key of ", key.size(), " bytes"));
  }
  // Independent of the other pods and of the order.
  SortKeysRequest reversed = request;
  std::reverse(reversed.mutable_pod_uids()->begin(), reversed.mutable_pod_uids()->end());
  std::reverse(reversed.mutable_pods()->begin(), reversed.mutable_pods()->end());
  std::reverse(reversed.mutable_queued()->begin(), reversed.mutable_queued()->end());
  const auto again = session.Call(reversed);
  CONFORMANCE_TRY(ExpectOk(again));
  std::vector<std::string> keys(again.message.keys().rbegin(), again.message.keys().rend());
  if (keys != std::vector<std::string>(answer.message.keys().begin(), answer.message.keys().end()))
    return Wrong(kSortKeysHold, "other keys for the same pods in another order");
  return absl::OkStatus();
}

absl::Status SortKeysErrors(const Kit& kit) {
  Session session(kit);
  CONFORMANCE_TRY(session.Open(MakeCluster(5)));
  return CheckErrors<SortKeysRequest>(session, kSortKeysLimit);
}

absl::Status PreEnqueue(const Kit& kit) {
  Session session(kit);
  TestCluster cluster = MakeCluster(5);
  Pod gated = MakePod("gated");
  gated.add_scheduling_gates("example.com/wait");
  cluster.pending.push_back(gated);
  CONFORMANCE_TRY(session.Open(cluster));
  const auto request = AboutPending<PreEnqueueRequest>(session);
  const auto answer = session.Call(request);
  CONFORMANCE_TRY(ExpectOk(answer));
  if (answer.message.verdicts_size() != request.pod_uids_size()) {
    return Wrong(kVerdicts, absl::StrCat(answer.message.verdicts_size(), " verdicts for ",
                                         request.pod_uids_size(), " pods"));
  }
  for (int i = 0; i < answer.message.verdicts_size(); ++i) {
    const PluginStatus& verdict = answer.message.verdicts(i);
    if (verdict.code() == CODE_SUCCESS) {
      if (!verdict.plugin().empty())
        return Wrong(kVerdictSuccess,
                     absl::StrCat("verdict ", i, " is SUCCESS of ", verdict.plugin()));
      continue;
    }
    CONFORMANCE_TRY(CheckStatus(
        verdict, absl::StrCat("verdict ", i), kit.At(EXTENSION_POINT_PRE_ENQUEUE),
        {CODE_ERROR, CODE_UNSCHEDULABLE, CODE_UNSCHEDULABLE_AND_UNRESOLVABLE, CODE_PENDING},
        kVerdictSuccess));
  }
  const auto again = session.Call(request);
  CONFORMANCE_TRY(ExpectOk(again));
  if (again.message.SerializeAsString() == answer.message.SerializeAsString())
    return absl::OkStatus();
  return Wrong(kVerdicts, "the second verdicts differ");
}

absl::Status PreEnqueueErrors(const Kit& kit) {
  Session session(kit);
  CONFORMANCE_TRY(session.Open(MakeCluster(5)));
  return CheckErrors<PreEnqueueRequest>(session, kPreEnqueueLimit);
}

// Checks all hints against the waiting pods.
absl::Status CheckHints(const Session& session, const std::vector<SyncResponse>& received,
                        const Plugins& rejectors, uint64_t last_event) {
  std::set<std::string> waiting;
  for (const Pod& pod : session.cluster().pending) waiting.insert(pod.uid());
  for (const SyncResponse& response : received) {
    if (response.queue_hints().hints_size() > 4096)
      return Wrong(kHintsLimit,
                   absl::StrCat(response.queue_hints().hints_size(), " in one message"));
    for (const QueueHint& hint : response.queue_hints().hints()) {
      if (waiting.count(hint.uid()) == 0)
        return Wrong(kHintKnown, absl::StrCat("pod \"", hint.uid(), "\" does not wait"));
      if (std::find(rejectors.begin(), rejectors.end(), hint.plugin()) == rejectors.end())
        return Wrong(kHintPlugin, absl::StrCat("\"", hint.plugin(), "\" did not reject the pod"));
      if (hint.number() > last_event)
        return Wrong(kHintEvent, absl::StrCat("event ", hint.number(), " was not sent"));
      if (hint.number() != 0 && (!hint.has_event() || hint.event().actions_size() != 1))
        return Wrong(kHintEvent, absl::StrCat("event number ", hint.number(), " is missing"));
    }
  }
  return absl::OkStatus();
}

// The plugins that can have rejected a pod.
Plugins Rejectors(const Kit& kit) {
  Plugins rejectors = kit.At(EXTENSION_POINT_FILTER);
  for (const std::string& name : kit.At(EXTENSION_POINT_PRE_FILTER)) {
    if (std::find(rejectors.begin(), rejectors.end(), name) == rejectors.end())
      rejectors.push_back(name);
  }
  return rejectors;
}

constexpr char kNoRejector[] = "no plugin at PRE_FILTER or FILTER that could have rejected a pod";

// A change by which all pending pods wait since event `since`.
SyncRequest AllWait(const Session& session, const Plugins& rejectors, uint64_t since) {
  SyncRequest request;
  request.set_phase(SyncRequest::PHASE_DELTA);
  request.set_version(session.version() + 1);
  for (const Pod& pod : session.cluster().pending) {
    UnschedulablePod* waiting = request.add_unschedulable_pods();
    waiting->set_uid(pod.uid());
    waiting->mutable_rejected_by()->Add(rejectors.begin(), rejectors.end());
    waiting->set_since(since);
  }
  return request;
}

absl::Status HintsOfWaitingPods(const Kit& kit) {
  const Plugins rejectors = Rejectors(kit);
  if (rejectors.empty()) return Skipped(kNoRejector);
  Session session(kit);
  CONFORMANCE_TRY(session.Open(MakeCluster(5)));
  SyncRequest request = AllWait(session, rejectors, 100);
  // A pod that no longer waits, and an unknown pod.
  request.add_removed_unschedulable_pod_uids("unknown");
  session.Send(request);
  // A large empty node helps pods that need resources; a removed pod helps pods that it blocked.
  request.Clear();
  request.set_phase(SyncRequest::PHASE_DELTA);
  request.set_version(session.version() + 1);
  *request.add_changes() = UpsertNode(5, MakeNode(25));
  *request.mutable_node_order() = OrderOf({0, 1, 2, 3, 4, 5});
  QueueEvent* added = request.add_events();
  added->set_number(101);
  added->mutable_event()->set_resource("Node");
  added->mutable_event()->add_actions(ClusterEvent::ACTION_ADD);
  added->set_node_name(MakeNode(25).name());
  session.Send(request);
  request.Clear();
  request.set_phase(SyncRequest::PHASE_DELTA);
  request.set_version(session.version() + 1);
  *request.add_changes() = RemovePod(session.cluster().running[0].uid());
  QueueEvent* removed = request.add_events();
  removed->set_number(105);
  removed->mutable_event()->set_resource("AssignedPod");
  removed->mutable_event()->add_actions(ClusterEvent::ACTION_DELETE);
  removed->set_pod_uid(session.cluster().running[0].uid());
  session.Send(request);
  CONFORMANCE_TRY(ExpectAlive(session, 1));
  // Acknowledged after the evaluation of both events, on the stream of the hints.
  session.sync().AwaitAck(session.version(), kSoon);
  return CheckHints(session, session.sync().received(), rejectors, 105);
}

constexpr char kStorageClass[] = "StorageClass";
constexpr char kCsiNode[] = "CSINode";

// Names a StorageClass or a CSINode, each with the same name.
ObjectReference Reference(const std::string& kind) {
  ObjectReference reference;
  reference.set_kind(kind);
  reference.set_name("namesake");
  return reference;
}
Change UpsertNamesake(const std::string& kind) {
  Change change;
  const std::string name = Reference(kind).name();
  if (kind == kCsiNode) {
    change.mutable_object_upsert()->mutable_csi_node()->set_name(name);
  } else {
    change.mutable_object_upsert()->mutable_storage_class()->set_name(name);
    change.mutable_object_upsert()->mutable_storage_class()->set_provisioner("example.com/disk");
  }
  return change;
}
Change RemoveNamesake(const std::string& kind) {
  Change change;
  *change.mutable_object_remove() = Reference(kind);
  return change;
}

// Whether a plugin that could have rejected a pod registered that an object of this kind is added.
bool RegisteredAdd(const Kit& kit, const Plugins& rejectors, const std::string& kind) {
  for (const PluginInfo& plugin : kit.info().plugins()) {
    if (std::find(rejectors.begin(), rejectors.end(), plugin.name()) == rejectors.end()) continue;
    for (const ClusterEvent& event : plugin.wake_up_events()) {
      if (event.resource() == kind &&
          std::count(event.actions().begin(), event.actions().end(), ClusterEvent::ACTION_ADD) > 0)
        return true;
    }
  }
  return false;
}

// Sends the changes together with the event that the kind's object was added, for which all pending
// pods wait.
absl::Status SendAdded(Session* session, const Plugins& rejectors, const std::string& kind,
                       uint64_t number, const std::vector<Change>& changes) {
  SyncRequest request = AllWait(*session, rejectors, number);
  request.mutable_changes()->Add(changes.begin(), changes.end());
  QueueEvent* event = request.add_events();
  event->set_number(number);
  event->mutable_event()->set_resource(kind);
  event->mutable_event()->add_actions(ClusterEvent::ACTION_ADD);
  *event->mutable_object() = Reference(kind);
  session->Send(request);
  return ExpectAlive(*session, number);
}

bool HasHint(const std::vector<SyncResponse>& received, uint64_t number) {
  for (const SyncResponse& response : received) {
    for (const QueueHint& hint : response.queue_hints().hints()) {
      if (hint.number() == number) return true;
    }
  }
  return false;
}

absl::Status References(const Kit& kit) {
  const Plugins rejectors = Rejectors(kit);
  if (rejectors.empty()) return Skipped(kNoRejector);
  const bool is_class = RegisteredAdd(kit, rejectors, kStorageClass);
  if (!is_class && !RegisteredAdd(kit, rejectors, kCsiNode))
    return Skipped("no plugin that registered ADD of StorageClass or CSINode");
  const std::string kind = is_class ? kStorageClass : kCsiNode;
  const std::string other = is_class ? kCsiNode : kStorageClass;
  Session session(kit);
  CONFORMANCE_TRY(session.Open(MakeCluster(5)));
  CONFORMANCE_TRY(SendAdded(&session, rejectors, kind, 101, {UpsertNamesake(kind)}));
  // Acknowledged after the evaluation of the event, on the stream of the hints.
  const auto evaluated = [&](const std::vector<SyncResponse>& received) {
    return HasHint(received, 101) ||
           std::any_of(received.begin(), received.end(), [&](const SyncResponse& response) {
             return response.ack().version() >= session.version();
           });
  };
  session.sync().Await(evaluated, kSoon);
  if (!HasHint(session.sync().received(), 101))
    return Skipped(absl::StrCat("no plugin gives a hint when a ", kind, " is added"));
  CONFORMANCE_TRY(SendAdded(&session, rejectors, kind, 102, {RemoveNamesake(other)}));
  const auto hinted = [](const auto& received) { return HasHint(received, 102); };
  if (!session.sync().Await(hinted, kSoon)) {
    return Late(Wrong(kReferenceKind, absl::StrCat("after the removal of a ", other, ", the ", kind,
                                                   " of that name is unknown")));
  }
  CONFORMANCE_TRY(
      SendAdded(&session, rejectors, kind, 103, {RemoveNamesake(kind), UpsertNamesake(other)}));
  session.sync().AwaitAck(session.version(), kSoon);
  if (!HasHint(session.sync().received(), 103)) return absl::OkStatus();
  return Wrong(kEventStates, absl::StrCat("a hint about a removed ", kind, ", while a ", other,
                                          " has that name"));
}

}  // namespace

std::vector<Case> QueueCases() {
  return {
      {"QueueSortService", "sort-keys", "one reproducible key per pod", SortKeys},
      {"QueueSortService", "sort-keys-errors",
       "unknown pods, profiles and sessions, and too many pods return an error", SortKeysErrors},
      {"PreEnqueueService", "pre-enqueue", "one reproducible, well-formed verdict per pod",
       PreEnqueue},
      {"PreEnqueueService", "pre-enqueue-errors",
       "unknown pods, profiles and sessions, and too many pods return an error", PreEnqueueErrors},
      {"QueueingHintService", "hints",
       "hints name only waiting pods, plugins that rejected them, and sent events",
       HintsOfWaitingPods},
      {"QueueingHintService", "references", "a reference names an object of its kind only",
       References},
  };
}

}  // namespace outboard::conformance
