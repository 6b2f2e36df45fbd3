// Rules about the placements of groups, for rule_list_points.h.
#ifndef OUTBOARD_CLI_CONFORMANCE_RULE_LIST_GROUPS_H_
#define OUTBOARD_CLI_CONFORMANCE_RULE_LIST_GROUPS_H_

#define OUTBOARD_CONFORMANCE_GROUP_RULES(R)                                                        \
  R(kGroupPods, "group.proto", "PendingGroup.pod_uids",                                            \
    "Its pods that wait for a node, each once, at most 4096; the attempt's pod first")             \
  R(kGroupNeeded, "group.proto", "PendingGroup.needed",                                            \
    "How many of them have to get a node, from 1")                                                 \
  R(kGenerateOutcome, "group.proto", "GeneratePlacementsResponse.outcome", "REQUIRED")             \
  R(kGenerateRejection, "group.proto", "GeneratePlacementsResponse.rejection",                     \
    "The group cannot be placed: ERROR, UNSCHEDULABLE, UNSCHEDULABLE_AND_UNRESOLVABLE or PENDING") \
  R(kGeneratedCount, "group.proto", "GeneratedPlacements.placements",                              \
    "In order of preference, 1 to 256")                                                            \
  R(kGroupPlacementName, "group.proto", "GroupPlacement.name",                                     \
    "Unique in the answer, at most 253 bytes")                                                     \
  R(kGroupPlacementNodes, "group.proto", "GroupPlacement.nodes",                                   \
    "At least one node of the cluster")                                                            \
  R(kGroupReadOnly, "group.proto", "GroupService.ScorePlacements", "Read-only")                    \
  R(kPlacementScoresAll, "group.proto", "ScorePlacementsResponse.plugins",                         \
    "All plugins of the host at placementScore, in profile order")                                 \
  R(kPlacementScores, "group.proto", "PlacementScores.scores",                                     \
    "One byte per placement of the request, in its order: 0..100")                                 \
  R(kExcludedOnce, "group.proto", "PlacementScores.excluded",                                      \
    "Placements that must not be used, each once")                                                 \
  R(kExcludedReason, "group.proto", "ExcludedPlacement.reason", "For people, at most 1 KiB")       \
  R(kStepAlone, "plan.proto", "PlanRequest.group_step",                                            \
    "If the pod is not in a group, the answer is that of a request without this field")            \
  R(kStepDescribe, "plan.proto", "GroupStep.describe", "The answer is `group`, or `rejection`")    \
  R(kStepTry, "plan.proto", "GroupStep.try_placements",                                            \
    "The answer is `group` if the group fits into one of them, else `rejection`")                  \
  R(kStepPlace, "plan.proto", "GroupStep.place_on",                                                \
    "the answer is `plan` or `rejection`, as without a step")                                      \
  R(kStepSame, "plan.proto", "GroupTrial.group", "The same in all steps of an attempt")            \
  R(kTried, "plan.proto", "GroupTrial.tried", "one per placement, in their order")                 \
  R(kTriedNodes, "plan.proto", "TriedPlacement.assignments",                                       \
    "nodes of the placement for at least `needed` pods, the request's pod among them")             \
  R(kMisfitReason, "plan.proto", "GroupMisfit.reason", "For people, at most 1 KiB")                \
  R(kPlanNodeSet, "plan.proto", "CyclePlan.node_set", "All nodes of the plan are in it")

#endif  // OUTBOARD_CLI_CONFORMANCE_RULE_LIST_GROUPS_H_
