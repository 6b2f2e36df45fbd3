// The rules that cases quote, in the order of the contract's files; see rules.h.
#ifndef OUTBOARD_CLI_CONFORMANCE_RULE_LIST_H_
#define OUTBOARD_CLI_CONFORMANCE_RULE_LIST_H_

#include "cli/conformance/rule_list_points.h"

// name, file, field, text
#define OUTBOARD_CONFORMANCE_RULES(R)                                                              \
  R(kVersionExact, "call.proto", "CallHeader.exact_version",                                       \
    "a call at version V is evaluated on exactly the state that the change stream reached with V") \
  R(kVersionWaits, "call.proto", "CallHeader.exact_version",                                       \
    "The host waits for it within the call's deadline, else answers STALE")                        \
  R(kVersionBehind, "call.proto", "CallHeader.exact_version",                                      \
    "If the cache is past that version, the host answers STALE at once")                           \
  R(kVersionMinimum, "call.proto", "CallHeader.min_version",                                       \
    "OPTIONAL in other calls: this version or a later one")                                        \
  R(kAttemptRequired, "call.proto", "CallHeader.attempt_id",                                       \
    "REQUIRED in calls about a pod's attempt")                                                     \
  R(kMessageSize, "call.proto", "CallHeader", "A message to a host is at most 16 MiB")             \
  R(kStatusPlugin, "call.proto", "PluginStatus.plugin",                                            \
    "REQUIRED, except in a PreFilter rejection that no single plugin gave")                        \
  R(kStatusReasons, "call.proto", "PluginStatus.reasons", "REQUIRED unless SUCCESS")               \
  R(kStatusLimits, "call.proto", "PluginStatus.reasons", "At most 16, each at most 1 KiB")         \
  R(kErrorDetails, "call.proto", "CallError", "Travels as a detail of the gRPC status")            \
  R(kErrorMessage, "call.proto", "CallError.message", "REQUIRED. For people; at most 1 KiB")       \
  R(kErrorHaveVersion, "call.proto", "CallError.have_version",                                     \
    "With STALE: the version that the host has")                                                   \
  R(kAttemptUnknown, "call.proto", "CallError.Reason.ATTEMPT_UNKNOWN", "The attempt is unknown")   \
  R(kSessionUnknown, "call.proto", "CallError.Reason.SESSION_UNKNOWN",                             \
    "Configure never named this session, or the host forgot it")                                   \
  R(kNotConfigured, "call.proto", "CallError.Reason.NOT_CONFIGURED",                               \
    "Configure has not named this profile")                                                        \
  R(kInvalid, "call.proto", "CallError.Reason.INVALID", "A fault of the caller")                   \
  R(kObjectUnknown, "call.proto", "CallError.Reason.OBJECT_UNKNOWN",                               \
    "The cache has no such pod or node at this version")                                           \
  R(kNodeSetDistinct, "call.proto", "NodeSet.slots", "Slots of nodes, no duplicates")              \
  R(kColumnEntries, "node_columns.proto", "NODE_COLUMNS",                                          \
    "A host answers INVALID to a call with fewer or more entries than nodes")                      \
  R(kColumnsInline, "plugin_host.proto", "Capability.NODE_COLUMNS",                                \
    "With INLINE_NODES, without which the shim rejects the host")                                  \
  R(kPlanFused, "plugin_host.proto", "Capability.BATCH", "Requires FUSED_CYCLE")                   \
  R(kColumnParts, "node_columns.proto", "NODE_COLUMNS", "These parts have no form in columns")     \
  R(kInlineComplete, "inline_node.proto", "INLINE_NODES",                                          \
    "answers INVALID to one of these calls without the pod, or with more or fewer nodes")          \
  R(kInfoAnswers, "handshake.proto", "HandshakeService.Handshake",                                 \
    "Idempotent; answers in every state")                                                          \
  R(kInfoPlugins, "plugin_host.proto", "PluginHostService.GetHostInfo",                            \
    "Idempotent; answers in every state")                                                          \
  R(kInfoVersions, "handshake.proto", "HandshakeResponse.contract_versions",                       \
    "Versions of the contract that the host speaks")                                               \
  R(kInfoInstance, "handshake.proto", "HandshakeResponse.instance",                                \
    "Unique for each start of the process")                                                        \
  R(kInfoBuild, "handshake.proto", "HandshakeResponse.build",                                      \
    "REQUIRED. Version of the host's build")                                                       \
  R(kInfoDigest, "handshake.proto", "HandshakeResponse.build_digest", "At most 128 bytes")         \
  R(kInfoStarted, "handshake.proto", "HandshakeResponse.started_unix_micros",                      \
    "When the instance started, in microseconds since 1970 (UTC)")                                 \
  R(kPluginName, "plugin_host.proto", "PluginInfo.name", "REQUIRED. Unique in the host")           \
  R(kPluginPoints, "plugin_host.proto", "PluginInfo.extension_points",                             \
    "Points that the plugin implements; others in a profile are a configuration error")            \
  R(kPluginSchema, "plugin_host.proto", "PluginInfo.args_schema",                                  \
    "A JSON schema of the plugin's arguments")                                                     \
  R(kPluginFields, "plugin_host.proto", "PluginInfo.needed_fields",                                \
    "Field paths that the plugin reads beyond the contract's own fields")                          \
  R(kEventComplete, "plugin_host.proto", "ClusterEvent.actions", "REQUIRED. At least one")         \
  R(kConfigureNothing, "plugin_host.proto", "PluginHostService.Configure",                         \
    "on an error nothing changes")                                                                 \
  R(kConfigureWhole, "plugin_host.proto", "PluginHostService.Configure",                           \
    "Replaces the session's earlier configuration as a whole")                                     \
  R(kConfigureMalformed, "plugin_host.proto", "PluginHostService.Configure",                       \
    "INVALID_ARGUMENT/INVALID for a malformed request")                                            \
  R(kConfigureDraining, "plugin_host.proto", "PluginHostService.Configure",                        \
    "UNAVAILABLE/DRAINING")                                                                        \
  R(kConfigureInForce, "plugin_host.proto", "ConfigureResponse.problems",                          \
    "Without one of severity ERROR the configuration is in force; otherwise nothing changed")      \
  R(kProblem, "plugin_host.proto", "ConfigProblem", "One fault of a configuration")                \
  R(kArgsStrict, "plugin_host.proto", "PluginArgs.args_json", "Hosts read it strictly")            \
  R(kSessions, "plugin_host.proto", "ConfigureRequest.session_id", "A host keeps at least 8")      \
  R(kSingleReplaced, "plugin_host.proto", "Capability.SINGLE_SESSION",                             \
    "its calls are SESSION_UNKNOWN from then on, and its Sync stream ends with that error")        \
  R(kCurrentSession, "plugin_host.proto", "ProbeResponse.current_session_id",                      \
    "The host's session while its shim is there")                                                  \
  R(kInstance, "plugin_host.proto", "ConfigureRequest.instance",                                   \
    "Another one answers WRONG_INSTANCE and changes nothing")                                      \
  R(kValidateOnly, "plugin_host.proto", "ConfigureRequest.validate_only",                          \
    "Check only: answer as otherwise, and change nothing")                                         \
  R(kValidateUnknown, "plugin_host.proto", "ConfigureRequest.validate_only",                       \
    "The session may be unknown, and stays so")                                                    \
  R(kProbeInitialising, "plugin_host.proto", "ProbeResponse.State.INITIALIZING",                   \
    "Not configured, or no complete snapshot yet")                                                 \
  R(kProbeReady, "plugin_host.proto", "ProbeResponse.State.READY", "Calls are answered")           \
  R(kProbeReason, "plugin_host.proto", "ProbeResponse.reason", "REQUIRED unless READY")            \
  R(kProbeInstance, "plugin_host.proto", "ProbeResponse.instance",                                 \
    "REQUIRED. The instance that answers")                                                         \
  R(kProbeVersion, "plugin_host.proto", "ProbeResponse.snapshot_version",                          \
    "Version that the session's cache has reached; 0: none")                                       \
  R(kEndSession, "plugin_host.proto", "PluginHostService.EndSession",                              \
    "it begins no attempt in this session any more")                                               \
  R(kEndSessionAttempts, "plugin_host.proto", "PluginHostService.EndSession",                      \
    "Attempts in progress may end")                                                                \
  R(kEndSessionUnknown, "plugin_host.proto", "PluginHostService.EndSession",                       \
    "Idempotent, irrevocable; an unknown session succeeds")                                        \
  R(kProbeDraining, "plugin_host.proto", "ProbeResponse.State.DRAINING",                           \
    "EndSession or Drain was called, or the host is about to exit")                                \
  R(kSyncReplaces, "cluster_state.proto", "ClusterStateService.Sync",                              \
    "A new stream of the same session replaces the old one and its cache")                         \
  R(kSyncSession, "cluster_state.proto", "SyncRequest.session_id",                                 \
    "a stream that names no session ends with INVALID_ARGUMENT/INVALID")                           \
  R(kSyncUnknownSession, "cluster_state.proto", "SyncRequest.session_id",                          \
    "one of a session that was not configured with FAILED_PRECONDITION/SESSION_UNKNOWN")           \
  R(kSyncRefuses, "cluster_state.proto", "ClusterStateService.Sync",                               \
    "A host that cannot apply a message ends the stream with FAILED_PRECONDITION/INVALID")         \
  R(kSyncForget, "cluster_state.proto", "SyncRequest.Phase.SNAPSHOT_BEGIN",                        \
    "The first chunk of a snapshot: forget everything before")                                     \
  R(kSyncVersion, "cluster_state.proto", "SyncRequest.version",                                    \
    "The version that the cache has once this message is applied")                                 \
  R(kSyncEnded, "cluster_state.proto", "SyncRequest.ended_attempts",                               \
    "Attempts that are over: the host drops what it keeps under them")                             \
  R(kSyncOrder, "cluster_state.proto", "SyncRequest.node_order",                                   \
    "The order in which nodes are examined")                                                       \
  R(kPushResults, "cluster_state.proto", "SyncRequest.push_results",                               \
    "What became of pushes, in any phase")                                                         \
  R(kSyncUnknownChange, "cluster_state.proto", "Change",                                           \
    "a host ignores changes that it does not know")                                                \
  R(kPodRemoveUnknown, "cluster_state.proto", "PodRemove",                                         \
    "The host ignores a pod that the cache does not have")                                         \
  R(kSlotReused, "cluster_state.proto", "NodeUpsert.slot",                                         \
    "stable while the node lives, reused after it went")                                           \
  R(kSlotFree, "cluster_state.proto", "Change.node_remove", "The node of a slot goes")             \
  R(kBound, "cluster_state.proto", "PlacementState.BOUND",                                         \
    "its node_name is the node's name from now on, and all else about it is as it was sent")       \
  R(kAckSnapshot, "cluster_state.proto", "SyncResponse.ack", "Sent at least for each snapshot")    \
  R(kAckBehind, "cluster_state.proto", "SyncResponse.ack", "at least once a second while behind")  \
  R(kAckApplied, "cluster_state.proto", "Ack", "A version is applied")                             \
  R(kPodOverrides, "cluster_state.proto", "PodUpsert.pod",                                         \
    "it is on that node from now on, whatever place the shim assumed for it before")               \
  R(kPodAssumed, "cluster_state.proto", "PodUpsert.pod",                                           \
    "a place that the shim assumed stays until the shim sends another")                            \
  R(kPodUnknownNode, "cluster_state.proto", "PodUpsert.pod",                                       \
    "the pod is known and has no place until such a node comes")                                   \
  R(kNoSnapshot, "call.proto", "CallError.Reason.SESSION_UNKNOWN",                                 \
    "Without a complete snapshot a session is known")                                              \
  R(kStaleMargin, "call.proto", "CallHeader.exact_version",                                        \
    "with as much of the call's time left as the answer needs to arrive: a fifth, at most 20 ms")  \
  R(kAckEveryVersion, "plugin_host.proto", "Capability.ACKS_EVERY_VERSION",                        \
    "Acknowledges each version as soon as its cache has it")                                       \
  R(kOneCache, "call.proto", "CallHeader.session_id", "A host keeps one cache per session")        \
  R(kReferenceKind, "objects.proto", "ObjectReference.kind", "REQUIRED. Kubernetes' kind")         \
  R(kEventStates, "queueing_hint.proto", "QueueEvent.about",                                       \
    "ignores the event if the cache lacks the states of the object that its action needs")         \
  R(kHintKnown, "queueing_hint.proto", "QueueHint.uid", "REQUIRED. A waiting pod")                 \
  R(kHintPlugin, "queueing_hint.proto", "QueueHint.plugin", "it must have rejected the pod")       \
  R(kHintEvent, "queueing_hint.proto", "QueueHint.event", "REQUIRED unless `number` is 0")         \
  R(kHintsLimit, "queueing_hint.proto", "QueueHints.hints", "REQUIRED. At most 4096")              \
  R(kDecisionComplete, "cluster_state.proto", "WaitDecision", "The attempt that waits")            \
  OUTBOARD_CONFORMANCE_POINT_RULES(R)

#endif  // OUTBOARD_CLI_CONFORMANCE_RULE_LIST_H_
