// The rules that cases quote about extension points; see rule_list.h.
#ifndef OUTBOARD_CLI_CONFORMANCE_RULE_LIST_POINTS_H_
#define OUTBOARD_CLI_CONFORMANCE_RULE_LIST_POINTS_H_

#include "cli/conformance/rule_list_groups.h"

// name, file, field, text
#define OUTBOARD_CONFORMANCE_POINT_RULES(R)                                                        \
  R(kFilterVerdicts, "filter.proto", "FilterResponse.verdicts",                                    \
    "A simpler form of `processed`, `feasible`, `rejected` and `rejected_for`, which are then not" \
    " set")                                                                                        \
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
  R(kFilterTwice, "filter.proto", "FilterService.Filter",                                          \
    "Nodes with nominated pods of at least the pod's priority are evaluated twice")                \
  R(kFilterWhat, "filter.proto", "FilterRequest.what", "REQUIRED")                                 \
  R(kFilterNodes, "filter.proto", "NodeSearch.nodes", "The nodes to evaluate, in order")           \
  R(kFilterAll, "filter.proto", "NodeSearch.nodes", "Absent: every node in node order")            \
  R(kFilterOffset, "filter.proto", "NodeSearch.start_offset",                                      \
    "Position in that list at which to begin, modulo its length")                                  \
  R(kFilterEnough, "filter.proto", "NodeSearch.num_feasible_nodes_to_find",                        \
    "The search ends at one more feasible node than this, which is not counted")                   \
  R(kHypotheses, "filter.proto", "NodeSimulation.nodes", "Evaluated in order, as nodes of a list") \
  R(kSimulatedFailure, "filter.proto", "NodeSimulation.nodes",                                     \
    "a plugin that fails on a node rejects it with UNSCHEDULABLE_AND_UNRESOLVABLE")                \
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
  R(kScorePlugins, "score.proto", "ScoreResponse.plugins",                                         \
    "REQUIRED, except with `error`. In profile order")                                             \
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
  R(kPlanEqual, "plan.proto", "PlanService.Plan",                                                  \
    "Without next_pod_uids and place_group the answer is what Cycle would have answered")          \
  R(kPlanErrors, "plan.proto", "PlanService.Plan", "Errors: within PlanResponse")                  \
  R(kPlanAttempt, "plan.proto", "PlanResponse.attempt_id", "REQUIRED. Of the request")             \
  R(kPlanNext, "plan.proto", "PlanRequest.next_pod_uids", "each as a request of its own would")    \
  R(kPlanGroupIgnored, "plan.proto", "PlanRequest.place_group",                                    \
    "Ignored together with `cycle.search.nodes`")                                                  \
  R(kPlanPreFilter, "plan.proto", "CyclePlan.pre_filter", "REQUIRED. Without `rejection`")         \
  R(kPlanFirst, "plan.proto", "CyclePlan.placements", "REQUIRED. The request's pod first")         \
  R(kPlanOthers, "plan.proto", "CyclePlan.placements",                                             \
    "Without `group` the other pods are the first of next_pod_uids, in order")                     \
  R(kPlanAttempts, "plan.proto", "CyclePlan.placements",                                           \
    "Placement i is attempt attempt_id + i, which has begun on the host")                          \
  R(kPlanGroup, "plan.proto", "CyclePlan.group",                                                   \
    "The placements are for one group: pods that wait for a node")                                 \
  R(kPlanSlot, "plan.proto", "PlannedPlacement.slot", "The node's slot at the call's version")     \
  R(kPlanFeasible, "plan.proto", "PlannedPlacement.feasible",                                      \
    "How many of them were feasible; from 1")                                                      \
  R(kPlanRejectedWith, "plan.proto", "PlannedGroup.pod_uids",                                      \
    "other pods of the group that wait for a node, each once, at most 4096")                       \
  OUTBOARD_CONFORMANCE_GROUP_RULES(R)                                                              \
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
  R(kNominations, "post_filter.proto", "PreemptionCandidate.nominations",                          \
    "Other pods of the pod's group that wait for a node, each once")                               \
  R(kNominationSlot, "post_filter.proto", "Nomination.slot",                                       \
    "The node's slot at the call's version")                                                       \
  R(kPostFilterReadOnly, "post_filter.proto", "PostFilterService.PostFilter",                      \
    "Read-only: the shim evicts, under its own rights")                                            \
  R(kReserveAgain, "reserve.proto", "ReserveService.Reserve", "Repeating one is harmless")         \
  R(kReserveBegins, "reserve.proto", "ReserveService.Reserve",                                     \
    "On a host without a plugin of the profile from preFilter to score, it begins the attempt")    \
  R(kReserveRejection, "reserve.proto", "ReserveResponse.rejection",                               \
    "Absent: success. Otherwise the first rejection or error")                                     \
  R(kReserveStates, "reserve.proto", "ReserveResponse.states",                                     \
    "at most one per plugin, and 16 KiB of bytes together")                                        \
  R(kUnreserveUnknown, "reserve.proto", "ReserveService.Unreserve",                                \
    "Idempotent; an unknown attempt succeeds")                                                     \
  R(kEffectKey, "effect.proto", "Effect.key", "[a-z0-9-]{1,63}")                                   \
  R(kEffectPlugin, "effect.proto", "Effect.plugin", "REQUIRED. The plugin that wants it")          \
  R(kStatePlugin, "cluster_state.proto", "PluginState.plugin",                                     \
    "A plugin that the pod's profile has at reserve")                                              \
  R(kStateBytes, "cluster_state.proto", "PluginState.state", "1 byte to 4 KiB")                    \
  R(kPermitAgain, "permit.proto", "PermitService.Permit", "Repeating one is harmless")             \
  R(kPermitBegins, "permit.proto", "PermitService.Permit", "it begins the attempt")                \
  R(kPermitResumed, "permit.proto", "PermitRequest.resumed", "Answer as at first")                 \
  R(kPermitRejection, "permit.proto", "PermitResponse.rejection",                                  \
    "Absent: no plugin objects. Otherwise the first rejection or error")                           \
  R(kPermitWaits, "permit.proto", "PermitResponse.waits", "Plugins that want the pod held")        \
  R(kPermitTimeout, "permit.proto", "PermitWait.timeout_micros",                                   \
    "Microseconds until the pod is rejected")                                                      \
  R(kPreBindCache, "pre_bind.proto", "PreBindService.PreBind", "repeating a call is harmless")     \
  R(kPreBindResults, "pre_bind.proto", "PreBindRequest.results",                                   \
    "Their results, in the same order")                                                            \
  R(kBindOutcome, "bind.proto", "BindResponse.outcome", "An answer without an outcome")            \
  R(kBindPlugin, "bind.proto", "BindRequest.plugin", "The plugin that is asked")                   \
  R(kBindAnnotations, "bind.proto", "ShimBinds.annotations",                                       \
    "At most 256, keys and values together at most 256 KiB")                                       \
  R(kPostBindAgain, "post_bind.proto", "PostBindService.PostBind", "Repeating one is harmless")

#endif  // OUTBOARD_CLI_CONFORMANCE_RULE_LIST_POINTS_H_
