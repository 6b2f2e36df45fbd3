// Identity, configuration, health and drain.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cli/conformance/answers.h"
#include "cli/conformance/session.h"
#include "proto/short_names.h"

namespace outboard::conformance {
namespace {

using namespace v1beta1;  // NOLINT: the contract's messages are this file's vocabulary.

using handshake::v1::HandshakeRequest;
using handshake::v1::HandshakeResponse;

constexpr int kSessionsInTurn = 72;  // more than a host must keep

bool IsIdentifier(const std::string& id) {
  return !id.empty() && id.size() <= 63 && std::all_of(id.begin(), id.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
}

// The answer on a new connection.
template <typename Request>
absl::StatusOr<typename Rpc<Request>::Response> Ask(const Kit& kit, const Request& request) {
  absl::StatusOr<Channel> channel = kit.Dial();
  if (!channel.ok()) return channel.status();
  const auto answer = Call(*channel, request);
  if (absl::Status status = ExpectOk(answer); !status.ok()) return status;
  return answer.message;
}

absl::StatusOr<HandshakeResponse> AskIdentity(const Kit& kit) {
  HandshakeRequest request;
  request.add_contract_versions(kContractVersion);
  return Ask(kit, request);
}

// Parts of nodes that a host with INLINE_NODES may request (inline_node.proto).
bool IsPartOfANode(absl::string_view field) {
  for (const char* part : {"Node.metadata.labels", "Node.spec.taints", "Node.status.allocatable",
                           "Node.status.images", "Node.status.declaredFeatures", "Node.requested",
                           "Node.pods", "Node.metadata.uid", "Node.metadata.creationTimestamp"}) {
    if (field == part) return true;
  }
  for (const char* prefix :
       {"Node.metadata.labels['", "Node.status.allocatable['", "Node.requested['"}) {
    if (absl::StartsWith(field, prefix) && absl::EndsWith(field, "']")) return true;
  }
  return false;
}

// Parts of nodes that have no form in columns (node_columns.proto).
bool IsNotInColumns(absl::string_view field) {
  for (const char* part :
       {"Node.pods", "Node.status.images", "Node.status.declaredFeatures", "Node.status.capacity",
        "Node.status.conditions", "Node.status.addresses"}) {
    if (field == part) return true;
  }
  return false;
}

absl::Status CheckColumns(const Kit& kit) {
  if (!kit.Can(CAPABILITY_NODE_COLUMNS)) return absl::OkStatus();
  if (!kit.Can(CAPABILITY_INLINE_NODES))
    return Wrong(kColumnsInline, "the host has NODE_COLUMNS, and not INLINE_NODES");
  for (const PluginInfo& plugin : kit.info().plugins()) {
    for (const std::string& field : plugin.needed_fields()) {
      if (IsNotInColumns(field))
        return Wrong(kColumnParts, absl::StrCat(plugin.name(), " needs ", field));
    }
  }
  return absl::OkStatus();
}

// Fields that every host may request (plugin_host.proto).
bool IsField(absl::string_view field) {
  for (const char* one :
       {"Pod.metadata.resourceVersion", "Pod.spec.containers[*].command",
        "Pod.spec.containers[*].args", "Pod.spec.serviceAccountName", "Pod.spec.priorityClassName",
        "Pod.spec.runtimeClassName", "Pod.status.phase", "Node.status.capacity",
        "Node.status.conditions", "Node.status.addresses", "QueuedPodInfo.attempts"}) {
    if (field == one) return true;
  }
  for (const char* prefix : {"Pod.metadata.annotations['", "Node.metadata.annotations['",
                             "Pod.spec.containers[*].env['", "Pod.status.conditions['"}) {
    if (absl::StartsWith(field, prefix) && absl::EndsWith(field, "']")) return true;
  }
  return false;
}

absl::Status CheckPlugin(const PluginInfo& plugin, bool is_inline) {
  const std::string& name = plugin.name();
  if (plugin.extension_points().empty())
    return Wrong(kPluginPoints, absl::StrCat(name, " has no points"));
  for (const int point : plugin.extension_points()) {
    if (point == EXTENSION_POINT_UNSPECIFIED)
      return Wrong(kPluginPoints, absl::StrCat(name, " has an unspecified one"));
  }
  if (plugin.args_schema().size() > size_t{64} << 10 ||
      (!plugin.args_schema().empty() && !nlohmann::json::accept(plugin.args_schema()))) {
    return Wrong(kPluginSchema,
                 absl::StrCat("that of ", name, " is not JSON, or larger than 64 KiB"));
  }
  for (const std::string& field : plugin.needed_fields()) {
    if (!IsField(field) && !(is_inline && IsPartOfANode(field)))
      return Wrong(kPluginFields, absl::StrCat("\"", field, "\" of ", name, " is not a field"));
  }
  for (const ClusterEvent& event : plugin.wake_up_events()) {
    if (event.resource().empty() || event.actions().empty())
      return Wrong(kEventComplete,
                   absl::StrCat("an event of ", name, " has no resource or no action"));
  }
  return absl::OkStatus();
}

absl::Status Identity(const Kit& kit) {
  const HandshakeResponse& identity = kit.identity();
  if (std::find(identity.contract_versions().begin(), identity.contract_versions().end(),
                kContractVersion) == identity.contract_versions().end()) {
    return Wrong(kInfoVersions, absl::StrCat(kContractVersion, " is not among them"));
  }
  if (!IsIdentifier(identity.instance()))
    return Wrong(kInfoInstance, absl::StrCat("\"", identity.instance(), "\" does not match"));
  if (identity.build().empty()) return Wrong(kInfoBuild, "it is empty");
  if (identity.build_digest().size() > 128)
    return Wrong(kInfoDigest, absl::StrCat(identity.build_digest().size(), " bytes"));
  const absl::Time started = absl::FromUnixMicros(identity.started_unix_micros());
  if (identity.started_unix_micros() < 0 || started > absl::Now() + absl::Minutes(1))
    return Wrong(kInfoStarted, absl::StrCat("it started at ", absl::FormatTime(started)));
  return absl::OkStatus();
}

// Shims of any later release may ask.
absl::Status HandshakeOfAnyVersion(const Kit& kit) {
  HandshakeRequest request;
  request.add_contract_versions("v9");
  const auto answer = Ask(kit, request);
  if (!answer.ok()) return answer.status();
  if (answer->instance() == kit.identity().instance()) return absl::OkStatus();
  return Wrong(kInfoAnswers, "another answer to a shim that speaks only v9");
}

absl::Status DescribedPlugins(const Kit& kit) {
  const GetHostInfoResponse& info = kit.info();
  const bool is_inline = kit.Can(CAPABILITY_INLINE_NODES);
  std::set<std::string> names;
  for (const PluginInfo& plugin : info.plugins()) {
    if (plugin.name().empty() || !names.insert(plugin.name()).second)
      return Wrong(kPluginName, absl::StrCat("\"", plugin.name(), "\" is empty or a duplicate"));
    CONFORMANCE_TRY(CheckPlugin(plugin, is_inline));
  }
  if (!kit.Can(CAPABILITY_FUSED_CYCLE) &&
      (kit.Can(CAPABILITY_BATCH) || kit.Can(CAPABILITY_GROUP_PLAN)))
    return Wrong(kPlanFused, "the host has BATCH or GROUP_PLAN, and not FUSED_CYCLE");
  return CheckColumns(kit);
}

absl::Status InstanceStays(const Kit& kit) {
  const auto again = AskIdentity(kit);
  if (!again.ok()) return again.status();
  if (again->instance() == kit.identity().instance()) return absl::OkStatus();
  return Wrong(kInfoInstance,
               absl::StrCat("first ", kit.identity().instance(), ", then ", again->instance()));
}

absl::Status StartStays(const Kit& kit) {
  const auto again = AskIdentity(kit);
  if (!again.ok()) return again.status();
  if (again->started_unix_micros() == kit.identity().started_unix_micros()) return absl::OkStatus();
  return Wrong(kInfoStarted, absl::StrCat("first ", kit.identity().started_unix_micros(), ", then ",
                                          again->started_unix_micros()));
}

absl::Status PluginsStay(const Kit& kit) {
  const auto again = Ask(kit, GetHostInfoRequest());
  if (!again.ok()) return again.status();
  if (kit.info().SerializeAsString() == again->SerializeAsString()) return absl::OkStatus();
  return Wrong(kInfoPlugins, "the second answer differs");
}

// Whether PreFilter shows if the session is known and configured.
bool IsMirrored(const Session& session) {
  return !session.is_inline() && session.kit().HasAlgorithm();
}

// After a configuration for a profile "another" that had no effect, the session's own still works.
absl::Status ExpectUnchanged(Session* session) {
  if (!IsMirrored(*session)) return absl::OkStatus();
  session->OpenStream();
  session->SendSnapshot(MakeCluster(), 1);
  const auto still = session->PreFilter(1, session->cluster().pending[0].uid());
  if (!still.status.ok()) {
    return Wrong(
        kConfigureNothing,
        absl::StrCat(
            "after a refused configuration the previous one does not work: PreFilter returns ",
            Describe(still.status)));
  }
  PreFilterRequest other;
  *other.mutable_header() = session->Header(2);
  other.mutable_header()->set_profile("another");
  other.set_pod_uid(session->cluster().pending[0].uid());
  return ExpectError(session->Call(other), {CallError::REASON_NOT_CONFIGURED}, kConfigureNothing);
}

// A configuration changed by `break_it` must fail, name `plugin`, and change nothing.
template <typename BreakIt>
absl::Status RefusedWith(const Kit& kit, const Rule& rule, const std::string& plugin,
                         BreakIt break_it) {
  Session session(kit);
  CONFORMANCE_TRY(session.Connect());
  CONFORMANCE_TRY(session.Configure());
  ConfigureRequest request = session.Configuration();
  ProfileConfig* profile = request.mutable_profiles(0);
  profile->set_name("another");
  break_it(profile);
  const auto answer = session.Call(request);
  CONFORMANCE_TRY(ExpectOk(answer));
  if (FirstError(answer.message) == nullptr) return Wrong(rule, "Configure has no problem with it");
  bool is_named = false;
  for (const ConfigProblem& problem : answer.message.problems()) {
    if (problem.message().empty() || problem.profile() != "another")
      return Wrong(kProblem, absl::StrCat("a problem of profile \"", problem.profile(),
                                          "\" says \"", problem.message(), "\""));
    is_named = is_named || problem.plugin() == plugin;
  }
  if (!is_named) return Wrong(kProblem, absl::StrCat("no problem names plugin ", plugin));
  return ExpectUnchanged(&session);
}

absl::Status UnknownPlugin(const Kit& kit) {
  return RefusedWith(kit, kConfigureInForce, "NoSuchPlugin", [](ProfileConfig* profile) {
    profile->mutable_points(0)->add_plugins("NoSuchPlugin");
  });
}

absl::Status WrongPoint(const Kit& kit) {
  for (const PluginInfo& plugin : kit.info().plugins()) {
    for (int point = EXTENSION_POINT_PRE_ENQUEUE; point <= EXTENSION_POINT_PERMIT; ++point) {
      const auto& points = plugin.extension_points();
      if (std::find(points.begin(), points.end(), point) != points.end()) continue;
      return RefusedWith(kit, kPluginPoints, plugin.name(), [&](ProfileConfig* profile) {
        profile->clear_points();
        profile->clear_args();
        PointConfig* config = profile->add_points();
        config->set_extension_point(static_cast<ExtensionPoint>(point));
        config->add_plugins(plugin.name());
      });
    }
  }
  return Skipped("every plugin implements every point");
}

absl::Status RefusedArgs(const Kit& kit, const std::string& json) {
  const std::string plugin = kit.configuration().profiles(0).points(0).plugins(0);
  return RefusedWith(kit, kArgsStrict, plugin, [&](ProfileConfig* profile) {
    for (int i = profile->args_size() - 1; i >= 0; --i) {
      if (profile->args(i).plugin() == plugin) profile->mutable_args()->DeleteSubrange(i, 1);
    }
    PluginArgs* args = profile->add_args();
    args->set_plugin(plugin);
    args->set_args_json(json);
  });
}

absl::Status GarbageArgs(const Kit& kit) {
  for (const char* json : {"{", "[1, 2]", "\"words\"", "{\"a\": 1} trailing", "\xc3\xa9\x01"})
    CONFORMANCE_TRY(RefusedArgs(kit, json));
  return absl::OkStatus();
}

absl::Status UnknownArgs(const Kit& kit) {
  return RefusedArgs(kit, R"({"noPluginHasThisField": 1})");
}

absl::Status ArgsOfUnknownPlugin(const Kit& kit) {
  return RefusedWith(kit, kConfigureInForce, "NoSuchPlugin", [](ProfileConfig* profile) {
    profile->add_args()->set_plugin("NoSuchPlugin");
    profile->mutable_args(profile->args_size() - 1)->set_args_json("{}");
  });
}

absl::Status MalformedConfigure(const Kit& kit) {
  Session session(kit);
  CONFORMANCE_TRY(session.Connect());
  for (const std::string& id :
       {std::string(), std::string("Upper"), std::string("under_score"), std::string(64, 'a')}) {
    ConfigureRequest request = session.Configuration();
    request.set_session_id(id);
    CONFORMANCE_TRY(
        ExpectError(session.Call(request), {CallError::REASON_INVALID}, kConfigureMalformed));
  }
  return absl::OkStatus();
}

absl::Status ReplacesAsAWhole(const Kit& kit) {
  Session session(kit);
  CONFORMANCE_TRY(session.Connect());
  CONFORMANCE_TRY(session.Configure());
  CONFORMANCE_TRY(session.Configure());
  ConfigureRequest request = session.Configuration();
  request.mutable_profiles(0)->set_name("another");
  const auto answer = session.Call(request);
  CONFORMANCE_TRY(ExpectOk(answer));
  if (const ConfigProblem* error = FirstError(answer.message); error != nullptr) {
    return Wrong(
        kConfigureInForce,
        absl::StrCat("the same profile under another name has a problem: ", error->message()));
  }
  if (kit.Can(CAPABILITY_INLINE_NODES) || !kit.HasAlgorithm()) return absl::OkStatus();
  session.OpenStream();
  session.SendSnapshot(MakeCluster(), 1);
  PreFilterRequest pre_filter;
  *pre_filter.mutable_header() = session.Header(1);
  pre_filter.set_pod_uid(session.cluster().pending[0].uid());
  CONFORMANCE_TRY(
      ExpectError(session.Call(pre_filter), {CallError::REASON_NOT_CONFIGURED}, kConfigureWhole));
  pre_filter.mutable_header()->set_profile("another");
  return ExpectOk(session.Call(pre_filter));
}

absl::Status SessionsInTurn(const Kit& kit) {
  // One session must survive all others.
  Session staying(kit);
  CONFORMANCE_TRY(staying.Connect());
  CONFORMANCE_TRY(staying.Configure());
  if (!kit.Can(CAPABILITY_INLINE_NODES)) {
    staying.OpenStream();
    staying.SendSnapshot(MakeCluster(3), 1);
    CONFORMANCE_TRY(ExpectAlive(staying, 1));
  }
  for (int i = 0; i < kSessionsInTurn; ++i) {
    Session session(kit);
    CONFORMANCE_TRY(session.Connect());
    const auto answer = session.Call(session.Configuration());
    if (!answer.status.ok())
      return Wrong(kSessions, absl::StrCat("session ", i + 2, " of those in turn is refused: ",
                                           Describe(answer.status)));
  }
  if (kit.Can(CAPABILITY_INLINE_NODES)) return absl::OkStatus();
  return ExpectAlive(staying, 2);
}

absl::Status CheckProbe(const Kit& kit, const Answer<ProbeResponse>& answer,
                        ProbeResponse::State state, const Rule& rule) {
  CONFORMANCE_TRY(ExpectOk(answer));
  const ProbeResponse& probe = answer.message;
  if (probe.state() != state) {
    return Wrong(rule, absl::StrCat("Probe says ", ShortName(probe.state()), " instead of ",
                                    ShortName(state)));
  }
  if (probe.instance() != kit.identity().instance())
    return Wrong(kProbeInstance,
                 absl::StrCat("\"", probe.instance(), "\" instead of ", kit.identity().instance()));
  if (state != ProbeResponse::STATE_READY && probe.reason().empty())
    return Wrong(kProbeReason, "there is none");
  return absl::OkStatus();
}

// The host does not know the session.
absl::Status ExpectUnknown(const Session& session, const Rule& rule) {
  if (IsMirrored(session))
    return ExpectError(session.PreFilter(1, "p"), {CallError::REASON_SESSION_UNKNOWN}, rule);
  return CheckProbe(session.kit(), session.Probe(), ProbeResponse::STATE_INITIALIZING, rule);
}

absl::Status WrongInstance(const Kit& kit) {
  Session session(kit);
  CONFORMANCE_TRY(session.Connect());
  ConfigureRequest request = session.Configuration();
  request.set_instance("another-instance");
  CONFORMANCE_TRY(
      ExpectError(session.Call(request), {CallError::REASON_WRONG_INSTANCE}, kInstance));
  request.clear_instance();
  CONFORMANCE_TRY(ExpectError(session.Call(request),
                              {CallError::REASON_WRONG_INSTANCE, CallError::REASON_INVALID},
                              kInstance));
  CONFORMANCE_TRY(ExpectUnknown(session, kInstance));
  CONFORMANCE_TRY(session.Configure());
  request.set_instance("another-instance");
  request.mutable_profiles(0)->set_name("another");
  CONFORMANCE_TRY(
      ExpectError(session.Call(request), {CallError::REASON_WRONG_INSTANCE}, kInstance));
  return ExpectUnchanged(&session);
}

absl::Status ProbeStates(const Kit& kit) {
  Session session(kit);
  CONFORMANCE_TRY(session.Connect());
  CONFORMANCE_TRY(
      CheckProbe(kit, session.Probe(), ProbeResponse::STATE_INITIALIZING, kProbeInitialising));
  CONFORMANCE_TRY(session.Configure());
  if (kit.Can(CAPABILITY_INLINE_NODES))
    return CheckProbe(kit, session.Probe(), ProbeResponse::STATE_READY, kProbeReady);
  CONFORMANCE_TRY(
      CheckProbe(kit, session.Probe(), ProbeResponse::STATE_INITIALIZING, kProbeInitialising));
  session.OpenStream();
  std::vector<SyncRequest> chunks = MakeSnapshot(MakeCluster(), 7);
  for (size_t i = 0; i + 1 < chunks.size(); ++i) session.Send(chunks[i]);
  const auto half = session.Probe();
  CONFORMANCE_TRY(CheckProbe(kit, half, ProbeResponse::STATE_INITIALIZING, kProbeInitialising));
  if (half.message.snapshot_version() != 0) {
    return Wrong(kProbeVersion,
                 absl::StrCat(half.message.snapshot_version(), " before the snapshot is complete"));
  }
  session.Send(chunks.back());
  CONFORMANCE_TRY(session.AwaitReady());
  const auto ready = session.Probe();
  if (ready.message.snapshot_version() != 0 && ready.message.snapshot_version() != 7)
    return Wrong(kProbeVersion, absl::StrCat(ready.message.snapshot_version(), " instead of 7"));
  ProbeRequest whole;
  return CheckProbe(kit, session.Call(whole), ProbeResponse::STATE_READY, kProbeReady);
}

// A check of the session's configuration under the name "another". Errors: `rule` if it has a
// problem, or has none with a wrong one.
absl::Status Check(const Session& session, const Rule& rule, bool is_wrong) {
  ConfigureRequest request = session.Configuration();
  request.set_validate_only(true);
  ProfileConfig* profile = request.mutable_profiles(0);
  profile->set_name("another");
  if (is_wrong) profile->mutable_points(0)->add_plugins("NoSuchPlugin");
  const auto answer = session.Call(request);
  if (!answer.status.ok())
    return Wrong(rule, absl::StrCat("the check returns ", Describe(answer.status)));
  const ConfigProblem* const error = FirstError(answer.message);
  if (is_wrong == (error != nullptr)) return absl::OkStatus();
  return Wrong(rule, is_wrong ? "the check has no problem with an unknown plugin"
                              : absl::StrCat("the check has a problem: ", error->message()));
}

absl::Status ChecksOnly(const Kit& kit) {
  Session unknown(kit);
  CONFORMANCE_TRY(unknown.Connect());
  CONFORMANCE_TRY(Check(unknown, kValidateOnly, false));
  CONFORMANCE_TRY(Check(unknown, kValidateOnly, true));
  CONFORMANCE_TRY(ExpectUnknown(unknown, kValidateUnknown));
  // No session is forgotten for those that are checked.
  Session session(kit);
  CONFORMANCE_TRY(session.Connect());
  CONFORMANCE_TRY(session.Configure());
  for (int i = 0; i < kSessionsInTurn; ++i) {
    Session checked(kit);
    CONFORMANCE_TRY(checked.Connect());
    CONFORMANCE_TRY(Check(checked, kValidateOnly, false));
  }
  CONFORMANCE_TRY(Check(session, kValidateOnly, false));
  if (!IsMirrored(session)) return absl::OkStatus();
  session.OpenStream();
  session.SendSnapshot(MakeCluster(), 1);
  const auto still = session.PreFilter(1, session.cluster().pending[0].uid());
  if (!still.status.ok()) {
    return Wrong(kValidateOnly,
                 absl::StrCat("after the check, PreFilter returns ", Describe(still.status)));
  }
  PreFilterRequest other;
  *other.mutable_header() = session.Header(2);
  other.mutable_header()->set_profile("another");
  other.set_pod_uid(session.cluster().pending[0].uid());
  return ExpectError(session.Call(other), {CallError::REASON_NOT_CONFIGURED}, kValidateOnly);
}

// A host without attempts may forget the session at once.
absl::Status EndsWithoutAttempts(const Kit& kit) {
  Session session(kit);
  Session other(kit);
  for (Session* each : {&session, &other}) {
    CONFORMANCE_TRY(each->Open(MakeCluster()));
    CONFORMANCE_TRY(ExpectAlive(*each, 1));
  }
  EndSessionRequest end;
  end.set_session_id(session.id());
  for (int i = 0; i < 2; ++i) CONFORMANCE_TRY(ExpectOk(session.Call(end)));
  const auto ended = session.Probe();
  CONFORMANCE_TRY(ExpectOk(ended));
  if (ended.message.state() == ProbeResponse::STATE_READY)
    return Wrong(kProbeDraining, "Probe says READY");
  return CheckProbe(kit, other.Probe(), ProbeResponse::STATE_READY, kOneCache);
}

absl::Status SessionEnds(const Kit& kit) {
  if (kit.Can(CAPABILITY_INLINE_NODES) || !kit.HasAlgorithm()) return EndsWithoutAttempts(kit);
  Session session(kit);
  Session other(kit);
  CONFORMANCE_TRY(session.Open(MakeCluster()));
  CONFORMANCE_TRY(other.Open(MakeCluster()));
  const std::string uid = session.cluster().pending[0].uid();
  CONFORMANCE_TRY(ExpectAlive(session, 1));
  CONFORMANCE_TRY(ExpectAlive(other, 1));
  EndSessionRequest end;
  end.set_session_id(session.id());
  for (int i = 0; i < 2; ++i) CONFORMANCE_TRY(ExpectOk(session.Call(end)));
  CONFORMANCE_TRY(CheckProbe(kit, session.Probe(), ProbeResponse::STATE_DRAINING, kProbeDraining));
  CONFORMANCE_TRY(
      ExpectError(session.PreFilter(2, uid), {CallError::REASON_DRAINING}, kEndSession));
  if (kit.Has(EXTENSION_POINT_FILTER)) {
    const auto filter = session.Filter(1);
    if (!filter.status.ok()) {
      return Wrong(kEndSessionAttempts, absl::StrCat("Filter of an attempt in progress returns ",
                                                     Describe(filter.status)));
    }
  }
  CONFORMANCE_TRY(ExpectError(session.Call(session.Configuration()), {CallError::REASON_DRAINING},
                              kConfigureDraining));
  // Only the session ends, and the host stays.
  CONFORMANCE_TRY(CheckProbe(kit, other.Probe(), ProbeResponse::STATE_READY, kOneCache));
  return ExpectAlive(other, 2);
}

absl::Status EndOfUnknownSession(const Kit& kit) {
  Session session(kit);
  CONFORMANCE_TRY(session.Connect());
  EndSessionRequest end;
  end.set_session_id(session.id());
  const auto answer = session.Call(end);
  if (answer.status.ok()) return absl::OkStatus();
  return Wrong(kEndSessionUnknown,
               absl::StrCat("EndSession of an unknown session returns ", Describe(answer.status)));
}

}  // namespace

std::vector<Case> PluginHostCases() {
  static constexpr char kService[] = "PluginHostService";
  return {
      {kService, "handshake", "the handshake is complete", Identity},
      {kService, "handshake-any-version", "a shim of another version gets the same answer",
       HandshakeOfAnyVersion},
      {kService, "info", "GetHostInfo and the plugins' descriptions are complete",
       DescribedPlugins},
      {kService, "info-instance-stays", "the instance stays the same", InstanceStays},
      {kService, "info-start-stays", "the start time stays the same", StartStays},
      {kService, "info-plugins-stay", "the plugins stay the same", PluginsStay},
      {kService, "configure-replaces",
       "a configuration replaces the previous one, and can be repeated", ReplacesAsAWhole},
      {kService, "configure-unknown-plugin", "an unknown plugin is a problem, and nothing changes",
       UnknownPlugin},
      {kService, "configure-wrong-point", "a plugin at a point that it does not have is a problem",
       WrongPoint},
      {kService, "configure-garbage-args", "arguments that are not a JSON object are a problem",
       GarbageArgs},
      {kService, "configure-unknown-args", "an unknown argument is a problem", UnknownArgs},
      {kService, "configure-args-of-unknown-plugin", "arguments of an unknown plugin are a problem",
       ArgsOfUnknownPlugin},
      {kService, "configure-malformed", "invalid session ids are INVALID", MalformedConfigure},
      {kService, "configure-wrong-instance",
       "a configuration for another instance is WRONG_INSTANCE, and changes nothing",
       WrongInstance},
      {kService, "configure-validate-only", "a check has the same problems, and changes nothing",
       ChecksOnly},
      {kService, "sessions-in-turn", "72 sessions in turn beside a permanent one", SessionsInTurn},
      {kService, "probe", "INITIALIZING until the snapshot is complete, then READY", ProbeStates},
      {kService, "end-session", "no new attempts, current ones end, other sessions continue",
       SessionEnds},
      {kService, "end-unknown-session", "the end of an unknown session is not an error",
       EndOfUnknownSession},
  };
}

}  // namespace outboard::conformance
