// The part of a session about where groups may be placed: the steps of a group's plan, and the
// plugins at placementGenerate, placementScore and podGroupPostFilter.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "plugin_host/runtime/cut_text.h"
#include "plugin_host/runtime/session.h"

namespace outboard::runtime {
namespace {

using v1beta1::CallError;

// The contract's limit (group.proto). Groups are within its limit of pods since LimitMembers.
constexpr int kMaxPlacements = 256;

// The group's pods in the order in which answers refer to them: the attempt's pod first.
std::vector<const sdk::PodRecord*> InOrder(const sdk::GroupToPlace& group,
                                           const sdk::PodRecord& first) {
  std::vector<const sdk::PodRecord*> pods = {&first};
  for (const sdk::PodRecord* pod : group.pending) {
    if (pod != &first) pods.push_back(pod);
  }
  return pods;
}

void Describe(const sdk::GroupToPlace& group, const std::vector<const sdk::PodRecord*>& pods,
              v1beta1::PendingGroup* out) {
  out->set_name(TextForPeople(group.name));
  out->set_namespace_(pods.front()->pod.namespace_());
  for (const sdk::PodRecord* pod : pods) out->add_pod_uids(pod->pod.uid());
  out->set_needed(static_cast<uint32_t>(group.needed));
  for (const sdk::Slot slot : group.placed) out->add_placed_slots(slot);
}

// A failure of the plugin, as at other points.
void FillFailure(absl::string_view point, const std::string& plugin, const std::string& what,
                 v1beta1::PluginStatus* status) {
  FillErrorStatus(plugin, absl::StrCat("running ", point, " plugin \"", plugin, "\": ", what),
                  status);
}

}  // namespace

CallStatus Session::TakeNodeSets(const v1beta1::GroupNodeSets& sets,
                                 std::vector<std::vector<sdk::Slot>>* out) {
  if (sets.placements().empty() || sets.placements_size() > kMaxPlacements) {
    return CallStatus(CallError::REASON_INVALID,
                      absl::StrCat(sets.placements_size(), " placements"));
  }
  for (const v1beta1::NodeSet& set : sets.placements()) {
    if (set.slots().empty())
      return CallStatus(CallError::REASON_INVALID, "a placement without nodes");
    if (CallStatus status = TakeNodes(set); !status.ok()) return status;
    out->push_back(nodes_);
  }
  return CallStatus::Ok();
}

CallStatus Session::TakeGroupStep(const v1beta1::PlanRequest& request, const Target& target,
                                  absl::Time now, v1beta1::PlanResponse* response,
                                  bool* is_answered) {
  const v1beta1::GroupStep& step = request.group_step();
  std::vector<std::vector<sdk::Slot>> node_sets;
  if (step.step_case() == v1beta1::GroupStep::STEP_NOT_SET)
    return CallStatus(CallError::REASON_INVALID, "a group's step is missing");
  if (!step.has_describe()) {
    CallStatus status =
        TakeNodeSets(step.has_place_on() ? step.place_on() : step.try_placements(), &node_sets);
    if (!status.ok()) return status;
  }
  const std::optional<KnownGroup> known = FindGroup(target, now);
  *is_answered = known.has_value();
  if (!known) return CallStatus::Ok();
  if (!known->is_searched()) {
    AnswerGroup(request.cycle(), target, now, *known, OutcomeWithoutSearch(target, *known),
                response);
    return CallStatus::Ok();
  }
  target.attempt->group_node_sets = std::move(node_sets);
  if (!step.has_describe()) {
    TryPlacements(request, target, now, *known, response);
    return CallStatus::Ok();
  }
  v1beta1::PreFilterResponse pre_filter =
      std::move(*response->mutable_evaluation()->mutable_pre_filter());
  v1beta1::GroupTrial* const trial = response->mutable_group();
  *trial->mutable_pre_filter() = std::move(pre_filter);
  Describe(known->group, InOrder(known->group, *target.pod), trial->mutable_group());
  return CallStatus::Ok();
}

void Session::TryPlacements(const v1beta1::PlanRequest& request, const Target& target,
                            absl::Time now, const KnownGroup& known,
                            v1beta1::PlanResponse* response) {
  const bool places = request.group_step().has_place_on();
  const std::vector<std::vector<sdk::Slot>>& node_sets = target.attempt->group_node_sets;
  const std::vector<const sdk::PodRecord*> pods = InOrder(known.group, *target.pod);
  absl::flat_hash_map<const sdk::PodRecord*, uint32_t> position;
  for (uint32_t i = 0; i < pods.size(); ++i) position[pods[i]] = i;
  PlanContext context = ContextOf(request.cycle(), target, now);
  // Failures are remembered for a search on all nodes.
  context.remembers = false;
  v1beta1::GroupTrial trial;
  GroupOutcome failure;  // of all placements, with the first one's reason
  bool any_fits = false;
  for (size_t i = 0; i < node_sets.size(); ++i) {
    v1beta1::GroupMisfit* const misfit = trial.add_tried()->mutable_misfit();
    misfit->set_reason("not tried within the time of the search");
    if (i > 0 && absl::Now() > context.deadline) continue;
    context.among = node_sets[i];
    GroupOutcome outcome = planner_.PlaceGroup(context, known.group, *target.pod);
    if (!outcome.error.empty())
      return AnswerGroup(request.cycle(), target, now, known, std::move(outcome), response);
    if (outcome.placed.empty()) {
      misfit->set_reason(TextForPeople(outcome.reason));
      misfit->set_max_schedulable(outcome.fitting);
      if (failure.reason.empty()) {
        failure.reason = std::move(outcome.reason);
        failure.also = std::move(outcome.also);
      }
      failure.fitting = std::max(failure.fitting, outcome.fitting);
      failure.rejected_by.merge(outcome.rejected_by);
      continue;
    }
    if (places) {
      AnswerGroup(request.cycle(), target, now, known, std::move(outcome), response);
      response->mutable_plan()->set_node_set(static_cast<uint32_t>(i));
      return;
    }
    any_fits = true;
    v1beta1::GroupAssignments* const fits =
        trial.mutable_tried(static_cast<int>(i))->mutable_assignments();
    for (const PlannedPod& planned : outcome.placed) {
      fits->add_pods(position.at(planned.pod));
      fits->add_slots(planned.slot);
    }
  }
  if (any_fits) {
    *trial.mutable_pre_filter() = std::move(*response->mutable_evaluation()->mutable_pre_filter());
    Describe(known.group, pods, trial.mutable_group());
    *response->mutable_group() = std::move(trial);
    return;
  }
  failure.reason =
      absl::StrCat("0/", node_sets.size(),
                   " placements are available, first placement status: ", failure.reason);
  AnswerGroup(request.cycle(), target, now, known, std::move(failure), response);
}

CallStatus Session::FindForGroup(const v1beta1::CallHeader& header,
                                 const v1beta1::PendingGroup& group, Placement* placed,
                                 sdk::PendingGroup* found) {
  found->name = group.name();
  found->ns = group.namespace_();
  found->needed = group.needed();
  for (const std::string& uid : group.pod_uids()) {
    const sdk::PodRecord* const pod = cache_.FindPod(uid);
    if (pod == nullptr)
      return CallStatus(CallError::REASON_OBJECT_UNKNOWN, absl::StrCat("unknown pod ", uid));
    found->pending.push_back(pod);
  }
  if (found->pending.empty() || group.needed() == 0 ||
      group.needed() > static_cast<uint32_t>(group.pod_uids_size()))
    return CallStatus(CallError::REASON_INVALID,
                      absl::StrCat("a group that needs ", group.needed(), " of ",
                                   group.pod_uids_size(), " pods"));
  const sdk::NodeTable& nodes = cache_.view().nodes();
  for (const uint32_t slot : group.placed_slots()) {
    if (slot >= nodes.occupied.size() || !nodes.occupied[slot])
      return CallStatus(CallError::REASON_OBJECT_UNKNOWN, absl::StrCat("no node in slot ", slot));
    found->placed.push_back(slot);
  }
  Target* const target = &placed->target;
  if (FindAttempt(header, target).ok()) return CallStatus::Ok();
  std::shared_ptr<const Profile> profile = FindProfile(header.profile());
  if (profile == nullptr) return CallStatus(CallError::REASON_NOT_CONFIGURED, header.profile());
  target->pod = found->pending.front();
  placed->restored.Begin(header.attempt_id(), group.pod_uids(0), std::move(profile));
  target->attempt = &placed->restored;
  return CallStatus::Ok();
}

CallStatus Session::GeneratePlacements(const v1beta1::GeneratePlacementsRequest& request,
                                       absl::Time now,
                                       v1beta1::GeneratePlacementsResponse* response) {
  Placement placed;
  sdk::PendingGroup group;
  if (CallStatus status = FindForGroup(request.header(), request.group(), &placed, &group);
      !status.ok())
    return status;
  const Profile& profile = *placed.target.attempt->profile;
  const std::vector<uint32_t>& enabled = profile.at(v1beta1::EXTENSION_POINT_PLACEMENT_GENERATE);
  if (enabled.size() != 1) {
    return CallStatus(CallError::REASON_NOT_CONFIGURED,
                      "the profile has no placementGenerate plugin here");
  }
  const ProfilePlugin& plugin = profile.plugins()[enabled.front()];
  std::vector<sdk::GroupPlacement> placements;
  const sdk::Attempt view = View(placed.target, enabled.front(), now);
  const sdk::Verdict verdict = profile.times().Measure(
      enabled.front(), v1beta1::EXTENSION_POINT_PLACEMENT_GENERATE, sdk::LogName(view),
      [&] { return plugin.placement_generate->GeneratePlacements(view, group, &placements); });
  response->Clear();
  if (verdict.rejected()) {
    FillStatus(plugin.name, verdict, response->mutable_rejection());
  } else if (!verdict.ok()) {
    FillFailure("PlacementGenerate", plugin.name, ErrorText(verdict),
                response->mutable_rejection());
  } else if (placements.empty()) {
    response->mutable_any();
  } else {
    for (sdk::GroupPlacement& placement : placements) {
      v1beta1::GroupPlacement* const out = response->mutable_placements()->add_placements();
      out->set_name(std::move(placement.name));
      out->mutable_nodes()->mutable_slots()->Assign(placement.nodes.begin(), placement.nodes.end());
    }
  }
  return CallStatus::Ok();
}

CallStatus Session::ScorePlacements(const v1beta1::ScorePlacementsRequest& request, absl::Time now,
                                    v1beta1::ScorePlacementsResponse* response) {
  Placement placed;
  sdk::PendingGroup group;
  if (CallStatus status = FindForGroup(request.header(), request.group(), &placed, &group);
      !status.ok())
    return status;
  std::vector<std::vector<sdk::Slot>> nodes;
  std::vector<sdk::PlacementCandidate> candidates;
  for (const v1beta1::PlacementCandidate& asked : request.placements()) {
    if (CallStatus status = TakeNodes(asked.placement().nodes()); !status.ok()) return status;
    nodes.push_back(nodes_);
    sdk::PlacementCandidate& candidate = candidates.emplace_back();
    candidate.name = asked.placement().name();
    const v1beta1::GroupAssignments& assigned = asked.assignments();
    if (assigned.pods_size() != assigned.slots_size())
      return CallStatus(CallError::REASON_INVALID, "pods and slots differ in number");
    for (int i = 0; i < assigned.pods_size(); ++i) {
      if (assigned.pods(i) >= group.pending.size())
        return CallStatus(CallError::REASON_INVALID, absl::StrCat("no pod ", assigned.pods(i)));
      candidate.places.emplace_back(group.pending[assigned.pods(i)], assigned.slots(i));
    }
  }
  if (candidates.empty()) return CallStatus(CallError::REASON_INVALID, "no placements");
  for (size_t i = 0; i < candidates.size(); ++i) candidates[i].nodes = nodes[i];
  const Profile& profile = *placed.target.attempt->profile;
  response->Clear();
  for (const uint32_t index : profile.at(v1beta1::EXTENSION_POINT_PLACEMENT_SCORE)) {
    const ProfilePlugin& plugin = profile.plugins()[index];
    std::vector<sdk::PlacementScore> scores(candidates.size());
    const sdk::Attempt view = View(placed.target, index, now);
    const sdk::Verdict verdict = profile.times().Measure(
        index, v1beta1::EXTENSION_POINT_PLACEMENT_SCORE, sdk::LogName(view), [&] {
          return plugin.placement_score->ScorePlacements(view, group, candidates,
                                                         absl::MakeSpan(scores));
        });
    std::string fault = verdict.ok() ? "" : ErrorText(verdict);
    v1beta1::PlacementScores* const out = response->add_plugins();
    out->set_plugin(plugin.name);
    for (uint32_t i = 0; i < scores.size(); ++i) {
      const sdk::PlacementScore& score = scores[i];
      if (!score.excluded.empty()) {
        v1beta1::ExcludedPlacement* const excluded = out->add_excluded();
        excluded->set_placement(i);
        excluded->set_reason(TextForPeople(score.excluded));
      } else if ((score.score < 0 || score.score > sdk::kMaxScore) && fault.empty()) {
        fault = absl::StrCat("the score ", score.score, " of placement ", candidates[i].name,
                             " is not in 0..100");
      }
      out->mutable_scores()->push_back(static_cast<char>(score.excluded.empty() ? score.score : 0));
    }
    if (verdict.ok() && fault.empty()) continue;
    response->Clear();
    FillFailure("PlacementScore", plugin.name, fault, response->mutable_error());
    return CallStatus::Ok();
  }
  return CallStatus::Ok();
}

CallStatus Session::PodGroupPostFilter(const v1beta1::PostFilterRequest& request, absl::Time now,
                                       v1beta1::PostFilterResponse* response) {
  constexpr sdk::ExtensionPoint kPoint = v1beta1::EXTENSION_POINT_POD_GROUP_POST_FILTER;
  Placement placed;
  sdk::PendingGroup asked;
  // The pods are those that the rejection covers; they may be fewer than are needed.
  v1beta1::PendingGroup described = request.group();
  described.set_needed(
      std::clamp<uint32_t>(described.needed(), 1, std::max(described.pod_uids_size(), 1)));
  if (CallStatus status = FindForGroup(request.header(), described, &placed, &asked); !status.ok())
    return status;
  const Target& target = placed.target;
  if (target.attempt->group_plugin && PostFilterGroup(target, kPoint, now, response))
    return CallStatus::Ok();
  sdk::GroupToPlace group;
  group.name = asked.name;
  group.pending = asked.pending;
  group.needed = asked.needed;
  group.placed = asked.placed;
  PreemptForGroup(target, kPoint, group, now, response);
  return CallStatus::Ok();
}

}  // namespace outboard::runtime
