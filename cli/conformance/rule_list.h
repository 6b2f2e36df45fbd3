// The rules that cases quote, in the order of the contract's files; see rules.h.
#ifndef OUTBOARD_CLI_CONFORMANCE_RULE_LIST_H_
#define OUTBOARD_CLI_CONFORMANCE_RULE_LIST_H_

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
  R(kInstance, "call.proto", "CallHeader.instance", "another one answers WRONG_INSTANCE")          \
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
  R(kFilterVerdicts, "filter.proto", "FilterResponse.verdicts",                                    \
    "A simpler form of `processed`, `feasible`, `rejected` and `rejected_for`, which are then not" \
    " set")                                                                                        \
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
  R(kSortKeys, "queue_sort.proto", "SortKeysResponse.keys",                                        \
    "One for each requested pod, in that order; at most 64 bytes each")                            \
  R(kSortKeysHold, "queue_sort.proto", "QueueSortService.SortKeys",                                \
    "Keys are valid until a SortKeysChanged for the pod")                                          \
  R(kSortKeysLimit, "queue_sort.proto", "SortKeysRequest.pod_uids", "REQUIRED. At most 4096")      \
  R(kVerdicts, "pre_enqueue.proto", "PreEnqueueResponse.verdicts",                                 \
    "One for each requested pod, in that order")                                                   \
  R(kVerdictSuccess, "pre_enqueue.proto", "PreEnqueueResponse.verdicts",                           \
    "SUCCESS with no plugin, or the first rejection")                                              \
  R(kPreEnqueueLimit, "pre_enqueue.proto", "PreEnqueueRequest.pod_uids", "REQUIRED. At most 4096") \
  R(kPreFilterAgain, "filter.proto", "PreFilterService.PreFilter",                                 \
    "Calling again restarts the attempt")                                                          \
  R(kPreFilterRejection, "filter.proto", "PreFilterResponse.rejection",                            \
    "Absent: success. Otherwise the verdict; no node is evaluated")                                \
  R(kRejectedBy, "filter.proto", "PreFilterResponse.rejected_by",                                  \
    "the one in `rejection` and other UNSCHEDULABLE ones")                                         \
  R(kRestrictedBy, "filter.proto", "PreFilterResponse.restricted_by",                              \
    "Plugins that restricted the nodes, in profile order")                                         \
  R(kNodeNames, "filter.proto", "NodeNames.names", "Sorted, no duplicates")                        \
  R(kFilterReadOnly, "filter.proto", "FilterService.Filter", "Read-only")                          \
  R(kFilterWhat, "filter.proto", "FilterRequest.what", "REQUIRED")                                 \
  R(kFilterNodes, "filter.proto", "NodeSearch.nodes", "The nodes to evaluate, in order")           \
  R(kFilterAll, "filter.proto", "NodeSearch.nodes", "Absent: every node in node order")            \
  R(kFilterOffset, "filter.proto", "NodeSearch.start_offset",                                      \
    "Position in that list at which to begin, modulo its length")                                  \
  R(kFilterEnough, "filter.proto", "NodeSearch.num_feasible_nodes_to_find",                        \
    "The search ends at one more feasible node than this, which is not counted")                   \
  R(kHypotheses, "filter.proto", "NodeSimulation.nodes", "Evaluated in order, as nodes of a list") \
  R(kHypothesesLimit, "filter.proto", "NodeSimulation.nodes", "At most 65,536")                    \
  R(kHypothesisContinues, "filter.proto", "SimulatedNode.continues",                               \
    "Begin where the previous simulated node in the list ended, which has the same node")          \
  R(kHypothesisRemoved, "filter.proto", "SimulatedNode.removed_pod_uids",                          \
    "Pods that leave the node. They are on it")                                                    \
  R(kProcessed, "filter.proto", "FilterResponse.processed",                                        \
    "Nodes examined before the search ended: feasible plus rejected")                              \
  R(kFeasibleSize, "filter.proto", "FilterResponse.feasible", "⌈processed/8⌉ bytes")               \
  R(kFeasibleUnused, "filter.proto", "FilterResponse.feasible", "unused bits are 0")               \
  R(kRejected, "filter.proto", "FilterResponse.rejected", "in order, an index into `reasons`")     \
  R(kReasonsOnce, "filter.proto", "FilterResponse.reasons", "each distinct verdict once")          \
  R(kReasonsCodes, "filter.proto", "FilterResponse.reasons",                                       \
    "Codes UNSCHEDULABLE, UNSCHEDULABLE_AND_UNRESOLVABLE, PENDING")                                \
  R(kFilterError, "filter.proto", "FilterResponse.error",                                          \
    "Absent unless a plugin failed on a node that was reached")                                    \
  R(kOnlyWithout, "filter.proto", "FilterResponse.only_without_nominated",                         \
    "as increasing positions among the rejected nodes")                                            \
  R(kRejectedFor, "filter.proto", "FilterResponse.rejected_for",                                   \
    "which nodes were rejected for it: bitmaps as `feasible`, no node in two")                     \
  R(kScoreSkipped, "score.proto", "PreScoreResponse.skipped",                                      \
    "Plugins that have nothing to score for this pod")                                             \
  R(kScoreReadOnly, "score.proto", "ScoreService.Score", "Read-only")                              \
  R(kScorePlugins, "score.proto", "ScoreResponse.plugins", "REQUIRED. In profile order")           \
  R(kScoreAll, "score.proto", "ScoreResponse.plugins",                                             \
    "Scores of all plugins of the host at Score, except those that PreScore skipped")              \
  R(kScoreBytes, "score.proto", "PluginScores.scores",                                             \
    "One byte per node of the set, in its order")                                                  \
  R(kScoreRange, "score.proto", "PluginScores.scores", "the normalised score, 0..100")             \
  R(kTieKeys, "score.proto", "PluginScores.tie_keys", "One integer per node")                      \
  R(kFusedEqual, "cycle.proto", "CycleService.Cycle",                                              \
    "equal what the plain services would have answered")                                           \
  R(kFusedOrder, "cycle.proto", "CycleService.Cycle", "Answers come in the order of requests")     \
  R(kFusedErrors, "cycle.proto", "CycleService.Cycle", "Errors: within CycleResponse")             \
  R(kFusedAttempt, "cycle.proto", "CycleResponse.attempt_id", "REQUIRED. Of the request")          \
  R(kFusedDeadline, "cycle.proto", "CycleRequest.deadline_micros",                                 \
    "Microseconds that the host may spend, waiting for the version included")                      \
  R(kFusedOutcome, "cycle.proto", "CycleResponse.outcome", "REQUIRED")                             \
  R(kFusedRejection, "cycle.proto", "CycleRejection.pre_filter", "With its `rejection`")           \
  R(kFusedEvaluation, "cycle.proto", "CycleEvaluation.pre_filter", "Without `rejection`")          \
  R(kFusedPercentage, "cycle.proto", "CycleRequest.percentage_of_nodes_to_score",                  \
    "How many of the n nodes that PreFilter left must be feasible before the search ends")         \
  R(kFusedScore, "cycle.proto", "CycleEvaluation.score", "Absent unless nodes were scored")        \
  R(kFusedSingle, "cycle.proto", "CycleRequest.score_single_node",                                 \
    "Score also where a single node is feasible")                                                  \
  R(kFusedFilter, "cycle.proto", "CycleEvaluation.filter", "REQUIRED")                             \
  R(kPostFilterOutcome, "post_filter.proto", "PostFilterResponse.outcome", "REQUIRED")             \
  R(kQuestionsAllowed, "post_filter.proto", "PostFilterResponse.questions",                        \
    "Only if the request has others_filter")                                                       \
  R(kCandidates, "post_filter.proto", "PreemptionCandidates.candidates", "Best first, 1 to 32")    \
  R(kPostFilterRejection, "post_filter.proto", "PreemptionRejection.status",                       \
    "UNSCHEDULABLE, UNSCHEDULABLE_AND_UNRESOLVABLE or ERROR of the first plugin that objected")    \
  R(kVictims, "post_filter.proto", "PreemptionCandidate.victim_uids",                              \
    "the most important first; at least one, each once")                                           \
  R(kCompanions, "post_filter.proto", "PreemptionCandidate.companion_uids",                        \
    "each once, none among victim_uids")                                                           \
  R(kVictimsKnown, "post_filter.proto", "PostFilterService.PostFilter",                            \
    "only victims that it knows on the named nodes, of lower priority than the pod")               \
  R(kCandidateSlot, "post_filter.proto", "PreemptionCandidate.slot",                               \
    "The node's slot at the call's version")                                                       \
  R(kCandidatePlugin, "post_filter.proto", "PreemptionCandidate.plugin",                           \
    "REQUIRED. The plugin that proposes it")                                                       \
  R(kReserveAgain, "reserve.proto", "ReserveService.Reserve", "Repeating one is harmless")         \
  R(kReserveBegins, "reserve.proto", "ReserveService.Reserve",                                     \
    "On a host without a plugin of the profile from preFilter to score, it begins the attempt")    \
  R(kReserveRejection, "reserve.proto", "ReserveResponse.rejection",                               \
    "Absent: success. Otherwise the first rejection or error")                                     \
  R(kUnreserveUnknown, "reserve.proto", "ReserveService.Unreserve",                                \
    "Idempotent; an unknown attempt succeeds")                                                     \
  R(kEffectKey, "effect.proto", "Effect.key", "[a-z0-9-]{1,63}")                                   \
  R(kEffectPlugin, "effect.proto", "Effect.plugin", "REQUIRED. The plugin that wants it")          \
  R(kPermitAgain, "permit.proto", "PermitService.Permit", "Repeating one is harmless")             \
  R(kPermitBegins, "permit.proto", "PermitService.Permit", "it begins the attempt")                \
  R(kPermitResumed, "permit.proto", "PermitRequest.resumed", "Answer as at first")                 \
  R(kPermitRejection, "permit.proto", "PermitResponse.rejection",                                  \
    "Absent: no plugin objects. Otherwise the first rejection or error")                           \
  R(kPermitWaits, "permit.proto", "PermitResponse.waits", "Plugins that want the pod held")        \
  R(kPermitTimeout, "permit.proto", "PermitWait.timeout_millis",                                   \
    "Milliseconds until the pod is rejected")                                                      \
  R(kDecisionComplete, "cluster_state.proto", "WaitDecision", "The attempt that waits")            \
  R(kPreBindCache, "pre_bind.proto", "PreBindService.PreBind", "repeating a call is harmless")     \
  R(kPreBindResults, "pre_bind.proto", "PreBindRequest.results",                                   \
    "Their results, in the same order")                                                            \
  R(kBindOutcome, "bind.proto", "BindResponse.outcome", "An answer without an outcome")            \
  R(kBindPlugin, "bind.proto", "BindRequest.plugin", "The plugin that is asked")                   \
  R(kBindAnnotations, "bind.proto", "ShimBinds.annotations",                                       \
    "At most 64, together at most 64 KiB")                                                         \
  R(kPostBindAgain, "post_bind.proto", "PostBindService.PostBind", "Repeating one is harmless")

#endif  // OUTBOARD_CLI_CONFORMANCE_RULE_LIST_H_
