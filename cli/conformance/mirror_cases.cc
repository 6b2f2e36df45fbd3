// Whether the host's cache equals the sent state, observed through verdicts of the host's plugins.
#include <algorithm>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cli/conformance/answers.h"
#include "cli/conformance/session.h"
#include "proto/call_errors/call_errors.h"

namespace outboard::conformance {
namespace {

using namespace v1beta1;  // NOLINT: the contract's messages are this file's vocabulary.

constexpr absl::Duration kVersionDeadline = absl::Milliseconds(800);
constexpr absl::Duration kLateDeadline = absl::Seconds(1);
constexpr absl::Duration kAtOnce = absl::Milliseconds(250);
constexpr absl::Duration kLargeSnapshot = absl::Seconds(60);
constexpr absl::Duration kOneCycle = absl::Seconds(5);
constexpr char kNoAlgorithm[] = "no plugin from PRE_FILTER to SCORE to observe";

// The slots of an answer about all nodes.
absl::Status ExpectNodes(const Session& session, uint64_t attempt, size_t count, const Rule& rule,
                         const std::string& when) {
  CONFORMANCE_TRY(ExpectOk(session.PreFilter(attempt, session.cluster().pending[0].uid())));
  if (!session.kit().Has(EXTENSION_POINT_FILTER)) return absl::OkStatus();
  const auto filter = session.Filter(attempt);
  CONFORMANCE_TRY(ExpectOk(filter));
  if (filter.message.has_error() || filter.message.processed() == count) return absl::OkStatus();
  return Wrong(rule, absl::StrCat(filter.message.processed(), " nodes have verdicts ", when,
                                  ", of ", count));
}

PreFilterRequest PreFilterAt(const Session& session, uint64_t attempt, int64_t version,
                             const std::string& uid) {
  PreFilterRequest request;
  *request.mutable_header() = session.Header(attempt);
  request.mutable_header()->set_exact_version(version);
  request.set_pod_uid(uid);
  return request;
}

absl::Status NodeRemoved(const Kit& kit) {
  if (!kit.HasAlgorithm()) return Skipped(kNoAlgorithm);
  Session session(kit);
  CONFORMANCE_TRY(session.Open(MakeCluster(9)));
  CONFORMANCE_TRY(ExpectNodes(session, 1, 9, kFilterAll, "at first"));
  session.SendDelta({RemoveNode(4)}, {0, 1, 2, 3, 5, 6, 7, 8});
  CONFORMANCE_TRY(ExpectNodes(session, 2, 8, kSlotFree, "after one was removed"));
  if (!kit.Has(EXTENSION_POINT_FILTER)) return absl::OkStatus();
  NodeSearch search;
  search.mutable_nodes()->add_slots(4);
  return ExpectError(session.Filter(2, search), {CallError::REASON_OBJECT_UNKNOWN}, kSlotFree);
}

absl::Status SlotReused(const Kit& kit) {
  if (!kit.HasAlgorithm()) return Skipped(kNoAlgorithm);
  Session session(kit);
  CONFORMANCE_TRY(session.Open(MakeCluster(9)));
  // Removed and added in one message, as for a recreated node.
  session.SendDelta({RemoveNode(4), UpsertNode(4, MakeNode(40)), UpsertNode(9, MakeNode(41))},
                    {9, 8, 7, 6, 5, 4, 3, 2, 1, 0});
  CONFORMANCE_TRY(
      ExpectNodes(session, 1, 10, kSlotReused, "after one was replaced and one was added"));
  // The same as on a host without the old node.
  TestCluster same = MakeCluster(9);
  same.nodes[4] = MakeNode(40);
  same.nodes.push_back(MakeNode(41));
  Session fresh(kit);
  CONFORMANCE_TRY(fresh.Open(same));
  for (const Pod& pod : same.pending) {
    Round old_slot;
    Round new_slot;
    CONFORMANCE_TRY(RunRound(session, 2, pod.uid(), {4, 9}, &old_slot, [] {
      NodeSearch search;
      search.mutable_nodes()->add_slots(4);
      search.mutable_nodes()->add_slots(9);
      return search;
    }()));
    CONFORMANCE_TRY(RunRound(fresh, 2, pod.uid(), {4, 9}, &new_slot, [] {
      NodeSearch search;
      search.mutable_nodes()->add_slots(4);
      search.mutable_nodes()->add_slots(9);
      return search;
    }()));
    if (old_slot.verdicts != new_slot.verdicts) {
      return Wrong(kSlotReused,
                   absl::StrCat("pod ", pod.name(),
                                ": the verdict on a node in a reused slot differs from that "
                                "on the same node in a fresh one"));
    }
  }
  return absl::OkStatus();
}

absl::Status PodRemoved(const Kit& kit) {
  if (!kit.HasAlgorithm()) return Skipped(kNoAlgorithm);
  Session session(kit);
  CONFORMANCE_TRY(session.Open(MakeCluster(5)));
  const std::string uid = session.cluster().pending[0].uid();
  CONFORMANCE_TRY(ExpectOk(session.PreFilter(1, uid)));
  session.SendDelta({RemovePod(uid)});
  return ExpectError(session.PreFilter(2, uid), {CallError::REASON_OBJECT_UNKNOWN}, kObjectUnknown);
}

absl::Status NodeOrder(const Kit& kit) {
  if (!kit.Has(EXTENSION_POINT_FILTER)) return Skipped("no plugin at FILTER to observe");
  Session session(kit);
  CONFORMANCE_TRY(session.Open(MakeCluster()));
  std::vector<uint32_t> order = FirstSlots(23);
  std::vector<Round> before(session.cluster().pending.size());
  for (size_t i = 0; i < before.size(); ++i)
    CONFORMANCE_TRY(
        RunRound(session, 1 + i, session.cluster().pending[i].uid(), order, &before[i]));
  std::reverse(order.begin(), order.end());
  std::swap(order[3], order[17]);
  session.SendDelta({}, order);
  for (size_t i = 0; i < before.size(); ++i) {
    Round after;
    CONFORMANCE_TRY(RunRound(session, 100 + i, session.cluster().pending[i].uid(), order, &after));
    if (after.verdicts != before[i].verdicts) {
      return Wrong(kSyncOrder,
                   absl::StrCat("pod ", session.cluster().pending[i].name(),
                                ": verdicts do not follow the nodes into another order"));
    }
  }
  return absl::OkStatus();
}

absl::Status ResyncReplacesAll(const Kit& kit) {
  if (!kit.HasAlgorithm()) return Skipped(kNoAlgorithm);
  Session session(kit);
  CONFORMANCE_TRY(session.Open(MakeCluster(9), 50));
  CONFORMANCE_TRY(ExpectNodes(session, 1, 9, kFilterAll, "at first"));
  const std::string gone = session.cluster().pending[1].uid();
  TestCluster cluster = MakeCluster(4);
  cluster.pending.erase(cluster.pending.begin() + 1);
  // In the same stream, and in a new one; only there the version may restart.
  session.SendSnapshot(cluster, 51);
  CONFORMANCE_TRY(ExpectNodes(session, 2, 4, kSyncForget, "after another snapshot"));
  CONFORMANCE_TRY(
      ExpectError(session.PreFilter(3, gone), {CallError::REASON_OBJECT_UNKNOWN}, kSyncForget));
  cluster.nodes.pop_back();
  std::erase_if(cluster.running, [](const Pod& pod) { return pod.node_name() == "node-3"; });
  session.OpenStream();
  session.SendSnapshot(cluster, 1);
  CONFORMANCE_TRY(session.AwaitTaken());
  CONFORMANCE_TRY(ExpectNodes(session, 4, 3, kSyncReplaces, "after a snapshot on a new stream"));
  if (!kit.Has(EXTENSION_POINT_FILTER)) return absl::OkStatus();
  return ExpectError(session.Filter(1), {CallError::REASON_ATTEMPT_UNKNOWN}, kSyncReplaces);
}

absl::Status VersionWaits(const Kit& kit) {
  if (!kit.HasAlgorithm()) return Skipped(kNoAlgorithm);
  Session session(kit);
  if (session.acks_every_version()) return Skipped(kIgnoresVersions);
  CONFORMANCE_TRY(session.Open(MakeCluster(9), 5));
  CONFORMANCE_TRY(ExpectAlive(session, 1));
  // Ahead for ever.
  const auto never = session.CallWithin(
      PreFilterAt(session, 2, 7, session.cluster().pending[0].uid()), kVersionDeadline);
  CONFORMANCE_TRY(ExpectError(never, {CallError::REASON_STALE}, kVersionWaits));
  const int64_t have_version = call_errors::CallErrorOf(never.status)->have_version();
  if (have_version != 5)
    return Wrong(kErrorHaveVersion, absl::StrCat(have_version, " instead of 5"));
  // Ahead until the change comes.
  const PreFilterRequest request = PreFilterAt(session, 3, 6, "pod-uid-later");
  Answer<PreFilterResponse> waited;
  std::thread caller([&] { waited = session.Call(request); });
  // After another call was answered, this call is probably waiting; both orders are allowed.
  const absl::Status probed = ExpectOk(session.Probe());
  session.SendDelta({UpsertPod(MakePod("later"))});
  caller.join();
  CONFORMANCE_TRY(probed);
  if (waited.status.ok()) return absl::OkStatus();
  return Wrong(kVersionWaits, absl::StrCat("a call one message ahead of the stream returns ",
                                           Describe(waited.status)));
}

// The change comes late, but long before the last fifth of a second of the call.
absl::Status VersionComesLate(const Kit& kit) {
  if (!kit.HasAlgorithm()) return Skipped(kNoAlgorithm);
  Session session(kit);
  if (session.acks_every_version()) return Skipped(kIgnoresVersions);
  CONFORMANCE_TRY(session.Open(MakeCluster(9), 5));
  CONFORMANCE_TRY(ExpectAlive(session, 1));
  const PreFilterRequest request = PreFilterAt(session, 2, 6, "pod-uid-later");
  Answer<PreFilterResponse> waited;
  std::thread caller([&] { waited = session.CallWithin(request, kLateDeadline); });
  absl::SleepFor(kLateDeadline * 9 / 10);
  session.SendDelta({UpsertPod(MakePod("later"))});
  caller.join();
  if (waited.status.ok()) return absl::OkStatus();
  return Late(Wrong(kStaleMargin, absl::StrCat("a call whose version came with a tenth of ",
                                               absl::FormatDuration(kLateDeadline),
                                               " left returns ", Describe(waited.status))));
}

// A configured session without a snapshot.
absl::Status NoSnapshot(const Kit& kit) {
  if (!kit.HasAlgorithm()) return Skipped(kNoAlgorithm);
  Session session(kit);
  if (session.acks_every_version()) return Skipped(kIgnoresVersions);
  CONFORMANCE_TRY(session.Connect());
  CONFORMANCE_TRY(session.Configure());
  session.OpenStream();
  const auto answer =
      session.CallWithin(PreFilterAt(session, 1, 1, "pod-uid-plain"), kVersionDeadline);
  CONFORMANCE_TRY(ExpectError(answer, {CallError::REASON_STALE}, kNoSnapshot));
  const int64_t have_version = call_errors::CallErrorOf(answer.status)->have_version();
  if (have_version == 0) return absl::OkStatus();
  return Wrong(kNoSnapshot, absl::StrCat("a have_version of ", have_version));
}

// A pod that takes most of a node.
Pod MakeLargePod() {
  Pod pod = MakeRunningPod("large", MakeNode(0));
  pod.clear_node_name();
  pod.mutable_containers(0)->mutable_requests()->set_cpu_millis(6000);
  return pod;
}

// The verdicts on all pods, against those of a host that got this cluster as a snapshot.
absl::Status ExpectAsInSnapshot(const Session& session, const TestCluster& cluster,
                                uint64_t attempt, const Rule& rule, const std::string& when) {
  Session fresh(session.kit());
  CONFORMANCE_TRY(fresh.Open(cluster));
  const std::vector<uint32_t> order = FirstSlots(static_cast<int>(cluster.nodes.size()));
  for (const Pod& pod : cluster.pending) {
    Round changed, loaded;
    CONFORMANCE_TRY(RunRound(session, attempt, pod.uid(), order, &changed));
    CONFORMANCE_TRY(RunRound(fresh, attempt++, pod.uid(), order, &loaded));
    if (changed.verdicts != loaded.verdicts) {
      return Wrong(rule,
                   absl::StrCat("pod ", pod.name(), ": ", when, ", verdicts differ from those ",
                                "on a snapshot of the same cluster"));
    }
  }
  return absl::OkStatus();
}

absl::Status PlacesOfPods(const Kit& kit) {
  if (!kit.Has(EXTENSION_POINT_FILTER)) return Skipped("no plugin at FILTER to observe");
  Session session(kit);
  TestCluster cluster = MakeCluster(9);
  CONFORMANCE_TRY(session.Open(cluster));
  Pod pod = MakeLargePod();
  session.SendDelta({UpsertPod(pod), PlacePod(pod.uid(), PLACEMENT_STATE_ASSUMED, 2)});
  // The API server's object, which does not name the node yet.
  (*pod.mutable_labels())["changed"] = "yes";
  session.SendDelta({UpsertPod(pod)});
  pod.set_node_name("node-2");
  cluster.running.push_back(pod);
  CONFORMANCE_TRY(
      ExpectAsInSnapshot(session, cluster, 1, kPodAssumed, "after an update of an assumed pod"));
  // Another scheduler bound it elsewhere.
  pod.set_node_name("node-5");
  session.SendDelta({UpsertPod(pod)});
  cluster.running.back() = pod;
  return ExpectAsInSnapshot(session, cluster, 100, kPodOverrides,
                            "after an assumed pod got another node");
}

absl::Status UnknownNodeOfPod(const Kit& kit) {
  if (!kit.Has(EXTENSION_POINT_FILTER)) return Skipped("no plugin at FILTER to observe");
  Session session(kit);
  TestCluster cluster = MakeCluster(9);
  CONFORMANCE_TRY(session.Open(cluster));
  Pod pod = MakeLargePod();
  const Node node = MakeNode(90);  // in no other cluster
  pod.set_node_name(node.name());
  session.SendDelta({UpsertPod(pod)});
  CONFORMANCE_TRY(ExpectAsInSnapshot(session, cluster, 1, kPodUnknownNode,
                                     "after a pod came that names an unknown node"));
  session.SendDelta({UpsertNode(9, node)}, FirstSlots(10));
  cluster.nodes.push_back(node);
  cluster.running.push_back(pod);
  return ExpectAsInSnapshot(session, cluster, 100, kPodUnknownNode, "after its node came");
}

absl::Status VersionBehind(const Kit& kit) {
  if (!kit.HasAlgorithm()) return Skipped(kNoAlgorithm);
  Session session(kit);
  if (session.acks_every_version()) return Skipped(kIgnoresVersions);
  CONFORMANCE_TRY(session.Open(MakeCluster(9), 5));
  CONFORMANCE_TRY(ExpectAlive(session, 1));
  session.SendDelta({UpsertPod(MakePod("later"))});
  CONFORMANCE_TRY(ExpectAlive(session, 2));
  const auto answer = session.Call(PreFilterAt(session, 3, 5, session.cluster().pending[0].uid()));
  CONFORMANCE_TRY(ExpectError(answer, {CallError::REASON_STALE}, kVersionExact));
  if (answer.took > kAtOnce)
    return Late(Wrong(kVersionBehind, absl::StrCat("it took ", absl::FormatDuration(answer.took))));
  return absl::OkStatus();
}

absl::Status EndedAttempts(const Kit& kit) {
  if (!kit.Has(EXTENSION_POINT_FILTER)) return Skipped("no plugin at FILTER to observe");
  Session session(kit);
  CONFORMANCE_TRY(session.Open(MakeCluster(9)));
  for (uint64_t attempt : {1, 2})
    CONFORMANCE_TRY(ExpectOk(session.PreFilter(attempt, session.cluster().pending[0].uid())));
  SyncRequest request;
  request.set_phase(SyncRequest::PHASE_DELTA);
  request.set_version(session.version() + 1);
  request.add_ended_attempts(1);
  session.Send(request);
  CONFORMANCE_TRY(ExpectOk(session.Filter(2)));
  return ExpectError(session.Filter(1), {CallError::REASON_ATTEMPT_UNKNOWN}, kSyncEnded);
}

absl::Status OddUnicode(const Kit& kit) {
  Session session(kit);
  TestCluster cluster = MakeCluster(9);
  const std::vector<std::string> odd = {
      "\xc3\xa9\xcc\x81",  // a letter with two accents
      "\xe2\x80\xae"
      "desrever",                                      // right to left
      "\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x9a\x80",  // joined, outside the basic plane
      std::string("nul\0inside", 10),
      "quote\" backslash\\ percent%s {brace} $dollar\r\n\t",
      "\xef\xbf\xbf\xef\xbb\xbf",  // noncharacter, byte order mark
      std::string(64 << 10, 'x'),
      "",
  };
  for (size_t i = 0; i < odd.size(); ++i) {
    Node& node = cluster.nodes[i];
    // Keeps a valid name; leaves the empty one.
    if (!odd[i].empty()) node.set_name(odd[i]);
    (*node.mutable_labels())[absl::StrCat("key-", odd[i])] = odd[i];
    Taint* taint = node.add_taints();
    taint->set_key(odd[i]);
    taint->set_value(odd[i]);
    taint->set_effect(TAINT_EFFECT_PREFER_NO_SCHEDULE);
    Pod pod = MakePod(absl::StrCat("odd-", i));
    pod.set_uid(absl::StrCat("uid-", odd[i]));
    pod.set_name(absl::StrCat("name-", odd[i]));
    pod.set_namespace_(odd[i]);
    (*pod.mutable_labels())[odd[i]] = odd[i];
    (*pod.mutable_node_selector())[absl::StrCat("key-", odd[i])] = odd[i];
    pod.mutable_containers(0)->set_image(odd[i]);
    cluster.pending.push_back(pod);
  }
  std::erase_if(cluster.running, [](const Pod&) { return true; });
  CONFORMANCE_TRY(session.Open(cluster));
  if (!kit.HasAlgorithm()) return session.AwaitReady();
  uint64_t attempt = 0;
  for (const Pod& pod : session.cluster().pending) {
    Round round;
    CONFORMANCE_TRY(RunRound(session, ++attempt, pod.uid(), &round));
  }
  return absl::OkStatus();
}

absl::Status LargeCluster(const Kit& kit) {
  Session session(kit);
  const int count = kit.options().nodes;
  TestCluster cluster = MakeCluster(count);
  CONFORMANCE_TRY(session.Open(std::move(cluster)));
  if (!kit.HasAlgorithm()) return session.AwaitReady();
  // The snapshot has no deadline; a cycle has one.
  PreFilterRequest request;
  *request.mutable_header() = session.Header(1);
  request.set_pod_uid(session.cluster().pending[0].uid());
  CONFORMANCE_TRY(ExpectOk(session.Call(request, kLargeSnapshot)));
  Round round;
  const absl::Time began = absl::Now();
  CONFORMANCE_TRY(RunRound(session, 1, session.cluster().pending[0].uid(), &round));
  const absl::Duration took = absl::Now() - began;
  if (took > kOneCycle) {
    return Late(absl::FailedPreconditionError(absl::StrCat("a cycle over ", count, " nodes took ",
                                                           absl::FormatDuration(took),
                                                           ", longer than its deadline of 5 s")));
  }
  return RunRound(session, 2, session.cluster().pending[0].uid(), FirstSlots(count), &round);
}

}  // namespace

std::vector<Case> CacheCases() {
  static constexpr char kService[] = "ClusterStateService";
  return {
      {kService, "node-removed", "a removed node gets no verdict", NodeRemoved},
      {kService, "slot-reused", "a new node in its slot gets its own verdict", SlotReused},
      {kService, "pod-removed", "a removed pod is unknown", PodRemoved},
      {kService, "node-order", "verdicts follow the node order", NodeOrder},
      {kService, "resync", "a snapshot replaces everything", ResyncReplacesAll},
      {kService, "version-ahead",
       "a call waits for its version, or returns STALE within its deadline", VersionWaits},
      {kService, "version-late", "a call waits until shortly before its deadline",
       VersionComesLate},
      {kService, "no-snapshot", "a call before the snapshot is STALE", NoSnapshot},
      {kService, "pod-places", "a pod's node_name overrides the place that was assumed for it",
       PlacesOfPods},
      {kService, "unknown-node", "a pod gets its place when the node that it names comes",
       UnknownNodeOfPod},
      {kService, "version-behind", "a call behind the cache is STALE at once", VersionBehind},
      {kService, "ended-attempts", "an ended attempt is unknown, others continue", EndedAttempts},
      {kService, "odd-unicode", "names, labels and taints with any Unicode text, and empty",
       OddUnicode},
      {kService, "large-cluster", "20,000 nodes, and a cycle over them within the deadline",
       LargeCluster},
  };
}

}  // namespace outboard::conformance
