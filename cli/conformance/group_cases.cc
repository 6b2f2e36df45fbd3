// Where groups of pods may be placed: the plugins at placementGenerate and placementScore, and the
// steps of a group's plan.
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/conformance/answers.h"
#include "cli/conformance/fused.h"
#include "cli/conformance/session.h"

namespace outboard::conformance {
namespace {

using namespace v1beta1;  // NOLINT: the contract's messages are this file's vocabulary.

constexpr char kService[] = "GroupService";
constexpr int kMaxPlacements = 256;
constexpr size_t kMaxName = 253;
constexpr size_t kMaxText = 1024;
constexpr int kMaxPods = 4096;
constexpr int kMembers = 3;
constexpr uint32_t kNeeded = 2;

// The first pending pods as a group; whether they are one for a plugin that knows groups does not
// matter.
PendingGroup GroupOf(const Session& session) {
  PendingGroup group;
  group.set_name("conformance default/group");
  group.set_namespace_(session.cluster().pending[0].namespace_());
  for (int i = 0; i < kMembers; ++i) group.add_pod_uids(session.cluster().pending[i].uid());
  group.set_needed(kNeeded);
  return group;
}

// Two halves of the cluster.
std::vector<GroupPlacement> Halves(const Session& session) {
  std::vector<GroupPlacement> halves(2);
  const auto num_nodes = static_cast<uint32_t>(session.cluster().nodes.size());
  for (uint32_t slot = 0; slot < num_nodes; ++slot)
    halves[slot < num_nodes / 2 ? 0 : 1].mutable_nodes()->add_slots(slot);
  for (size_t i = 0; i < halves.size(); ++i) halves[i].set_name(absl::StrCat("half-", i));
  return halves;
}

GeneratePlacementsRequest GenerateFor(const Session& session, uint64_t attempt) {
  GeneratePlacementsRequest request;
  *request.mutable_header() = session.Header(attempt);
  *request.mutable_group() = GroupOf(session);
  return request;
}

ScorePlacementsRequest ScoreOf(const Session& session, uint64_t attempt,
                               const std::vector<GroupPlacement>& placements) {
  ScorePlacementsRequest request;
  *request.mutable_header() = session.Header(attempt);
  *request.mutable_group() = GroupOf(session);
  for (const GroupPlacement& placement : placements) {
    PlacementCandidate* candidate = request.add_placements();
    *candidate->mutable_placement() = placement;
    for (uint32_t pod = 0; pod < kNeeded; ++pod) {
      candidate->mutable_assignments()->add_pods(pod);
      candidate->mutable_assignments()->add_slots(placement.nodes().slots(0));
    }
  }
  return request;
}

absl::Status CheckNodes(const Session& session, const NodeSet& nodes, const std::string& what) {
  std::set<uint32_t> distinct;
  for (const uint32_t slot : nodes.slots()) {
    if (slot >= session.cluster().nodes.size() || !distinct.insert(slot).second)
      return Wrong(kGroupPlacementNodes,
                   absl::StrCat(what, " names slot ", slot, ", which is unknown or named twice"));
  }
  return distinct.empty() ? Wrong(kGroupPlacementNodes, absl::StrCat(what, " has no node"))
                          : absl::OkStatus();
}

absl::Status CheckGenerated(const Session& session, const GeneratePlacementsResponse& answer) {
  switch (answer.outcome_case()) {
    case GeneratePlacementsResponse::OUTCOME_NOT_SET:
      return Wrong(kGenerateOutcome, "there is none");
    case GeneratePlacementsResponse::kAny:
      return absl::OkStatus();
    case GeneratePlacementsResponse::kRejection:
      return CheckStatus(
          answer.rejection(), "GeneratePlacementsResponse.rejection",
          session.kit().At(EXTENSION_POINT_PLACEMENT_GENERATE),
          {CODE_ERROR, CODE_UNSCHEDULABLE, CODE_UNSCHEDULABLE_AND_UNRESOLVABLE, CODE_PENDING},
          kGenerateRejection);
    case GeneratePlacementsResponse::kPlacements:
      break;
  }
  const auto& placements = answer.placements().placements();
  if (placements.empty() || placements.size() > kMaxPlacements)
    return Wrong(kGeneratedCount, absl::StrCat(placements.size(), " placements"));
  std::set<std::string> names;
  for (const GroupPlacement& placement : placements) {
    if (placement.name().empty() || placement.name().size() > kMaxName ||
        !names.insert(placement.name()).second)
      return Wrong(kGroupPlacementName, absl::StrCat("\"", placement.name().substr(0, 100), "\""));
    CONFORMANCE_TRY(CheckNodes(session, placement.nodes(), placement.name()));
  }
  return absl::OkStatus();
}

absl::Status CheckScoresOf(const PlacementScores& scores, size_t num_placements) {
  if (scores.scores().size() != num_placements)
    return Wrong(kPlacementScores, absl::StrCat(scores.scores().size(), " scores of ",
                                                num_placements, " placements"));
  std::set<uint32_t> excluded;
  for (const ExcludedPlacement& placement : scores.excluded()) {
    if (placement.placement() >= num_placements || !excluded.insert(placement.placement()).second)
      return Wrong(kExcludedOnce, absl::StrCat("placement ", placement.placement()));
    if (placement.reason().empty() || placement.reason().size() > kMaxText)
      return Wrong(kExcludedReason, absl::StrCat(placement.reason().size(), " bytes"));
  }
  for (size_t i = 0; i < num_placements; ++i) {
    const auto score = static_cast<uint8_t>(scores.scores()[i]);
    if (score > 100 && excluded.count(static_cast<uint32_t>(i)) == 0)
      return Wrong(kPlacementScores, absl::StrCat(scores.plugin(), " gives ", score));
  }
  return absl::OkStatus();
}

absl::Status CheckScored(const Session& session, const ScorePlacementsResponse& answer,
                         size_t num_placements) {
  const Plugins plugins = session.kit().At(EXTENSION_POINT_PLACEMENT_SCORE);
  if (answer.has_error()) {
    return CheckStatus(
        answer.error(), "ScorePlacementsResponse.error", plugins,
        {CODE_ERROR, CODE_UNSCHEDULABLE, CODE_UNSCHEDULABLE_AND_UNRESOLVABLE, CODE_PENDING},
        kGenerateRejection);
  }
  Plugins answered;
  for (const PlacementScores& scores : answer.plugins()) answered.push_back(scores.plugin());
  if (answered != plugins)
    return Wrong(kPlacementScoresAll, absl::StrCat(answered.size(), " plugins, or other ones"));
  for (const PlacementScores& scores : answer.plugins())
    CONFORMANCE_TRY(CheckScoresOf(scores, num_placements));
  return absl::OkStatus();
}

// Asks each point once. `answers`: both answers as bytes.
absl::Status AskOnce(const Session& session, uint64_t attempt, std::string* answers) {
  std::vector<GroupPlacement> placements = Halves(session);
  if (session.kit().Has(EXTENSION_POINT_PLACEMENT_GENERATE)) {
    const auto generated = session.Call(GenerateFor(session, attempt));
    CONFORMANCE_TRY(ExpectOk(generated));
    CONFORMANCE_TRY(Malformed(kService, CheckGenerated(session, generated.message)));
    absl::StrAppend(answers, generated.message.SerializeAsString());
    if (generated.message.has_placements()) {
      placements.assign(generated.message.placements().placements().begin(),
                        generated.message.placements().placements().end());
    }
  }
  if (!session.kit().Has(EXTENSION_POINT_PLACEMENT_SCORE)) return absl::OkStatus();
  const auto scored = session.Call(ScoreOf(session, attempt, placements));
  CONFORMANCE_TRY(ExpectOk(scored));
  CONFORMANCE_TRY(Malformed(kService, CheckScored(session, scored.message, placements.size())));
  absl::StrAppend(answers, scored.message.SerializeAsString());
  return absl::OkStatus();
}

absl::Status WellFormed(const Kit& kit) {
  Session session(kit);
  CONFORMANCE_TRY(session.Open(MakeCluster()));
  std::string ignored;
  return AskOnce(session, 1, &ignored);
}

absl::Status Again(const Kit& kit) {
  Session session(kit);
  CONFORMANCE_TRY(session.Open(MakeCluster()));
  std::string first, second;
  CONFORMANCE_TRY(AskOnce(session, 1, &first));
  CONFORMANCE_TRY(AskOnce(session, 1, &second));
  return first == second ? absl::OkStatus()
                         : Wrong(kGroupReadOnly, "the same question has two answers");
}

template <typename Request>
absl::Status ExpectErrorsOf(const Session& session, const Request& good) {
  Request request = good;
  request.mutable_group()->set_pod_uids(1, "unknown");
  CONFORMANCE_TRY(
      ExpectError(session.Call(request), {CallError::REASON_OBJECT_UNKNOWN}, kObjectUnknown));
  request = good;
  request.mutable_header()->set_session_id("unknown");
  return ExpectError(session.Call(request), {CallError::REASON_SESSION_UNKNOWN}, kSessionUnknown);
}

absl::Status Errors(const Kit& kit) {
  Session session(kit);
  CONFORMANCE_TRY(session.Open(MakeCluster(9)));
  if (kit.Has(EXTENSION_POINT_PLACEMENT_GENERATE))
    CONFORMANCE_TRY(ExpectErrorsOf(session, GenerateFor(session, 1)));
  if (!kit.Has(EXTENSION_POINT_PLACEMENT_SCORE)) return absl::OkStatus();
  ScorePlacementsRequest request = ScoreOf(session, 1, Halves(session));
  CONFORMANCE_TRY(ExpectErrorsOf(session, request));
  request.mutable_placements(0)->mutable_placement()->mutable_nodes()->add_slots(99);
  return ExpectError(session.Call(request), {CallError::REASON_OBJECT_UNKNOWN}, kObjectUnknown);
}

// --- Steps of a group's plan

using PlanStream = FusedStream<PlanRpc>;

absl::Status CheckGroup(const Session& session, const PendingGroup& group,
                        const std::string& first) {
  const auto& pending = session.cluster().pending;
  if (group.pod_uids().empty() || group.pod_uids(0) != first || group.pod_uids_size() > kMaxPods)
    return Wrong(kGroupPods, absl::StrCat("not ", first, " first, or too many"));
  std::set<std::string> distinct;
  for (const std::string& uid : group.pod_uids()) {
    const bool waits = std::any_of(pending.begin(), pending.end(),
                                   [&](const Pod& pod) { return pod.uid() == uid; });
    if (!waits || !distinct.insert(uid).second)
      return Wrong(kGroupPods, absl::StrCat(uid, " does not wait, or is named twice"));
  }
  if (group.needed() == 0 || group.needed() > static_cast<uint32_t>(group.pod_uids_size()))
    return Wrong(kGroupNeeded, absl::StrCat(group.needed(), " of ", group.pod_uids_size()));
  return absl::OkStatus();
}

absl::Status CheckTried(const TriedPlacement& tried, const PendingGroup& group,
                        const NodeSet& nodes) {
  if (!tried.has_assignments()) {
    const std::string& reason = tried.misfit().reason();
    if (reason.empty() || reason.size() > kMaxText)
      return Wrong(kMisfitReason, absl::StrCat(reason.size(), " bytes"));
    return absl::OkStatus();
  }
  const GroupAssignments& fits = tried.assignments();
  std::set<uint32_t> pods(fits.pods().begin(), fits.pods().end());
  const std::set<uint32_t> slots(nodes.slots().begin(), nodes.slots().end());
  if (fits.pods_size() != fits.slots_size() || pods.size() != static_cast<size_t>(fits.pods_size()))
    return Wrong(kTriedNodes, "pods and slots differ in number, or a pod is named twice");
  if (pods.size() < group.needed() || pods.count(0) == 0 ||
      *pods.rbegin() >= static_cast<uint32_t>(group.pod_uids_size()))
    return Wrong(kTriedNodes, absl::StrCat(pods.size(), " pods, ", group.needed(), " needed"));
  for (const uint32_t slot : fits.slots()) {
    if (slots.count(slot) == 0)
      return Wrong(kTriedNodes, absl::StrCat("slot ", slot, " is not in the placement"));
  }
  return absl::OkStatus();
}

absl::Status CheckTrial(const GroupTrial& trial, const PendingGroup& group,
                        const GroupNodeSets& sets) {
  if (trial.group().SerializeAsString() != group.SerializeAsString())
    return Wrong(kStepSame, "another group than the one described");
  if (trial.tried_size() != sets.placements_size())
    return Wrong(kTried, absl::StrCat(trial.tried_size(), " of ", sets.placements_size()));
  bool any_fits = false;
  for (int i = 0; i < trial.tried_size(); ++i) {
    any_fits |= trial.tried(i).has_assignments();
    CONFORMANCE_TRY(CheckTried(trial.tried(i), group, sets.placements(i)));
  }
  return any_fits ? absl::OkStatus() : Wrong(kStepTry, "it fits into none, and is not rejected");
}

absl::Status CheckPlacedOn(const CyclePlan& plan, const GroupNodeSets& sets) {
  if (!plan.has_group() || plan.placements().empty())
    return Wrong(kStepPlace, "the plan is not for a group");
  if (plan.node_set() >= static_cast<uint32_t>(sets.placements_size()))
    return Wrong(kPlanNodeSet, absl::StrCat("there is no set ", plan.node_set()));
  const auto& slots = sets.placements(static_cast<int>(plan.node_set())).slots();
  for (const PlannedPlacement& place : plan.placements()) {
    if (std::find(slots.begin(), slots.end(), place.slot()) == slots.end())
      return Wrong(kPlanNodeSet, absl::StrCat("slot ", place.slot(), " is not in it"));
  }
  return absl::OkStatus();
}

// The steps for one pod. `attempt`: the last one used.
absl::Status TakeSteps(const Session& session, PlanStream* stream, const std::string& uid,
                       uint64_t* attempt, bool* is_in_group) {
  const auto ask = [&](const GroupStep& step, PlanResponse* response) {
    PlanRequest request = stream->MakeRequest(*attempt += 1000, uid);
    request.set_place_group(true);
    *request.mutable_group_step() = step;
    return stream->Exchange(request, response);
  };
  GroupStep step;
  step.mutable_describe();
  PlanResponse described;
  CONFORMANCE_TRY(ask(step, &described));
  if (described.has_plan()) return Wrong(kStepDescribe, "the host selects nodes");
  *is_in_group = described.has_group();
  if (!described.has_group()) {
    PlanRequest request = stream->MakeRequest(described.attempt_id(), uid);
    request.set_place_group(true);
    PlanResponse alone;
    CONFORMANCE_TRY(stream->Exchange(request, &alone));
    if (described.has_rejection() || described.has_error()) return absl::OkStatus();
    return alone.evaluation().filter().SerializeAsString() ==
                   described.evaluation().filter().SerializeAsString()
               ? absl::OkStatus()
               : Wrong(kStepAlone, absl::StrCat("for ", uid, " the answers differ"));
  }
  const PendingGroup& group = described.group().group();
  CONFORMANCE_TRY(CheckGroup(session, group, uid));
  GroupNodeSets* sets = step.mutable_try_placements();
  for (const GroupPlacement& half : Halves(session)) *sets->add_placements() = half.nodes();
  PlanResponse attempted;
  CONFORMANCE_TRY(ask(step, &attempted));
  if (!attempted.has_group() && !attempted.has_rejection())
    return Wrong(kStepTry, "neither group nor rejection");
  if (attempted.has_group()) CONFORMANCE_TRY(CheckTrial(attempted.group(), group, *sets));
  const GroupNodeSets copy = *sets;
  *step.mutable_place_on() = copy;
  PlanResponse placed;
  CONFORMANCE_TRY(ask(step, &placed));
  if (placed.has_rejection() != attempted.has_rejection())
    return Wrong(kStepPlace, "tried and placed, the group has different outcomes");
  if (placed.has_rejection()) return absl::OkStatus();
  if (!placed.has_plan()) return Wrong(kStepPlace, "neither plan nor rejection");
  return CheckPlacedOn(placed.plan(), copy);
}

absl::Status Steps(const Kit& kit) {
  if (!kit.Can(CAPABILITY_GROUP_PLACEMENTS))
    return Skipped("without the capability GROUP_PLACEMENTS");
  Session session(kit);
  CONFORMANCE_TRY(session.Open(MakeCluster()));
  PlanStream stream(session);
  uint64_t attempt = 0;
  for (const Pod& pod : session.cluster().pending) {
    bool is_in_group = false;
    CONFORMANCE_TRY(TakeSteps(session, &stream, pod.uid(), &attempt, &is_in_group));
  }
  return absl::OkStatus();
}

absl::Status StepErrors(const Kit& kit) {
  if (!kit.Can(CAPABILITY_GROUP_PLACEMENTS))
    return Skipped("without the capability GROUP_PLACEMENTS");
  Session session(kit);
  CONFORMANCE_TRY(session.Open(MakeCluster(9)));
  PlanStream stream(session);
  PlanRequest request = stream.MakeRequest(1, session.cluster().pending[0].uid());
  request.set_place_group(true);
  request.mutable_group_step()->mutable_place_on()->add_placements()->add_slots(99);
  PlanResponse response;
  CONFORMANCE_TRY(stream.Exchange(request, &response));
  return ExpectErrorMessage("Plan", response.error(), {CallError::REASON_OBJECT_UNKNOWN},
                            kObjectUnknown);
}

}  // namespace

std::vector<Case> GroupCases() {
  return {
      {kService, "well-formed", "placements are nodes of the cluster, and all are scored",
       WellFormed},
      {kService, "again", "the same question has the same answer", Again},
      {kService, "errors", "unknown pods, nodes and sessions return an error", Errors},
      {"PlanService", "group-steps", "a group is described, tried and placed on given nodes",
       Steps},
      {"PlanService", "group-step-errors", "an unknown node in a placement returns an error",
       StepErrors},
  };
}

}  // namespace outboard::conformance
