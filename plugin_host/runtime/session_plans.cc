// The part of a session about several pods at once.
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "plugin_host/runtime/cut_text.h"
#include "plugin_host/runtime/group_parts.h"
#include "plugin_host/runtime/group_search.h"
#include "plugin_host/runtime/session.h"

namespace outboard::runtime {
namespace {

// Limit of a search for a group's preemption; the shim waits for a second.
constexpr absl::Duration kGroupPreemption = absl::Milliseconds(500);
// See PlannedGroup.pod_uids.
constexpr int kMaxRejectedWith = 4096;

}  // namespace

SearchOptions Session::SearchOf(const v1beta1::CycleRequest& request) {
  return {request.search().start_offset(), request.percentage_of_nodes_to_score(),
          request.search().num_feasible_nodes_to_find()};
}

PlanContext Session::ContextOf(const v1beta1::CycleRequest& request, const Target& target,
                               absl::Time now) const {
  PlanContext context;
  context.profile = target.attempt->profile;
  context.now = Clock(now);
  context.options = SearchOf(request);
  context.explain = request.explain();
  // Reserves time for the answer's transport.
  context.deadline = absl::Now() + absl::Microseconds(request.deadline_micros()) / 2;
  return context;
}

void Session::PlaceNext(const v1beta1::PlanRequest& request, const Target& target, absl::Time now,
                        v1beta1::PlanResponse* response) {
  const v1beta1::CycleRequest& cycle = request.cycle();
  PlannedPod first;
  first.pod = target.pod;
  const v1beta1::CycleEvaluation& evaluation = response->evaluation();
  const bool scored = evaluation.score().plugins_size() > 0;
  first.slot = feasible_[scored ? evaluator_.SelectNode(*target.attempt, feasible_.size()) : 0];
  first.processed = evaluation.filter().processed();
  first.feasible = static_cast<uint32_t>(feasible_.size());
  std::vector<const sdk::PodRecord*> pods;
  for (const std::string& uid : request.next_pod_uids()) {
    const sdk::PodRecord* pod = cache_.FindPod(uid);
    if (pod == nullptr || pod->place != sdk::Place::kNone || pod == target.pod) break;
    pods.push_back(pod);
  }
  PlanContext context = ContextOf(cycle, target, now);
  context.options.start_offset = (context.options.start_offset + first.processed) %
                                 static_cast<uint32_t>(cache_.view().node_order().size());
  const uint64_t id = cycle.header().attempt_id();
  std::vector<PlannedPod> placed = planner_.PlaceNext(context, first, pods, id + 1);
  if (placed.empty()) return;
  placed.insert(placed.begin(), std::move(first));
  Keep(id, std::move(placed), response);
}

std::optional<Session::KnownGroup> Session::FindGroup(const Target& target, absl::Time now) const {
  const Profile& profile = *target.attempt->profile;
  for (const uint32_t index : profile.group_plugins()) {
    std::optional<sdk::GroupToPlace> group =
        profile.plugins()[index].group->Group(View(target, index, now));
    if (!group) continue;
    KnownGroup known{index, *std::move(group)};
    known.fault = FaultOf(known.group, *target.pod);
    // A group that needs more pods than an answer can place is scheduled individually.
    if (known.fault.empty() && !LimitMembers(*target.pod, &known.group)) continue;
    return known;
  }
  return std::nullopt;
}

bool Session::PlaceGroup(const v1beta1::CycleRequest& request, const Target& target, absl::Time now,
                         v1beta1::PlanResponse* response) {
  const std::optional<KnownGroup> known = FindGroup(target, now);
  if (!known) return false;
  AnswerGroup(request, target, now, *known,
              known->is_searched()
                  ? planner_.PlaceGroup(ContextOf(request, target, now), known->group, *target.pod)
                  : OutcomeWithoutSearch(target, *known),
              response);
  return true;
}

GroupOutcome Session::OutcomeWithoutSearch(const Target& target, const KnownGroup& known) {
  GroupOutcome outcome;
  outcome.error = known.fault;
  if (!known.fault.empty()) return outcome;
  outcome.reason = known.group.short_of;
  for (const sdk::PodRecord* pod : known.group.pending) {
    if (pod != target.pod) outcome.also.push_back(pod->pod.uid());
  }
  for (std::string& name : PluginsOfRoom(*target.attempt->profile))
    outcome.rejected_by.insert(std::move(name));
  return outcome;
}

void Session::AnswerGroup(const v1beta1::CycleRequest& request, const Target& target,
                          absl::Time now, const KnownGroup& known, GroupOutcome outcome,
                          v1beta1::PlanResponse* response) {
  const ProfilePlugin& plugin = target.attempt->profile->plugins()[known.plugin];
  v1beta1::PlannedGroup told;
  told.set_name(TextForPeople(known.group.name));
  told.set_needed(static_cast<uint32_t>(known.group.needed));
  told.set_max_schedulable(outcome.fitting);
  if (!outcome.placed.empty()) {
    *Keep(request.header().attempt_id(), std::move(outcome.placed), response)->mutable_group() =
        std::move(told);
    return;
  }
  v1beta1::PreFilterResponse* answer = response->mutable_rejection()->mutable_pre_filter();
  plugin.group->GroupRejected(View(target, known.plugin, now),
                              outcome.error.empty() ? outcome.reason : outcome.error,
                              !outcome.error.empty());
  if (!outcome.error.empty()) {
    FillErrorStatus(plugin.name, outcome.error, answer->mutable_rejection());
    *response->mutable_rejection()->mutable_group() = std::move(told);
    return;
  }
  for (const std::string& uid : outcome.also) {
    if (told.pod_uids_size() < kMaxRejectedWith) told.add_pod_uids(uid);
  }
  *response->mutable_rejection()->mutable_group() = std::move(told);
  target.attempt->group_plugin = known.plugin;
  FillStatus(plugin.name,
             sdk::Verdict::Unresolvable(absl::StrCat(known.group.name, ": ", outcome.reason)),
             answer->mutable_rejection());
  target.attempt->other_nodes = v1beta1::CODE_UNSCHEDULABLE_AND_UNRESOLVABLE;
  outcome.rejected_by.insert(plugin.name);
  for (const std::string& name : outcome.rejected_by) answer->add_rejected_by(name);
}

v1beta1::CyclePlan* Session::Keep(uint64_t first_id, std::vector<PlannedPod> pods,
                                  v1beta1::PlanResponse* response) {
  v1beta1::PreFilterResponse pre_filter =
      std::move(*response->mutable_evaluation()->mutable_pre_filter());
  v1beta1::CyclePlan* const plan = response->mutable_plan();
  *plan->mutable_pre_filter() = std::move(pre_filter);
  const std::shared_ptr<const Profile> profile = attempts_.find(first_id)->second->profile;
  for (size_t i = 0; i < pods.size(); ++i) {
    PlannedPod& planned = pods[i];
    v1beta1::PlannedPlacement* placement = plan->add_placements();
    if (planned.scores != nullptr) placement->Swap(planned.scores.get());
    placement->set_pod_uid(planned.pod->pod.uid());
    placement->set_slot(planned.slot);
    placement->set_processed(planned.processed);
    placement->set_feasible(planned.feasible);
    if (i > 0) planned_.insert(planned.pod->pod.uid());
    if (i == 0 && planned.attempt == nullptr) continue;  // Has begun already.
    if (planned.attempt == nullptr) {
      Begin(first_id + i, planned.pod->pod.uid(), profile);
      continue;
    }
    planned.attempt->id = first_id + i;
    attempts_[first_id + i] = std::move(planned.attempt);
  }
  return plan;
}

bool Session::PostFilterGroup(const Target& target, sdk::ExtensionPoint point, absl::Time now,
                              v1beta1::PostFilterResponse* response) {
  const uint32_t index = *target.attempt->group_plugin;
  std::optional<sdk::GroupToPlace> group =
      target.attempt->profile->plugins()[index].group->Group(View(target, index, now));
  if (!group || !FaultOf(*group, *target.pod).empty() || !LimitMembers(*target.pod, &*group))
    return false;
  PreemptForGroup(target, point, *group, now, response);
  return true;
}

void Session::PreemptForGroup(const Target& target, sdk::ExtensionPoint point,
                              const sdk::GroupToPlace& group, absl::Time now,
                              v1beta1::PostFilterResponse* response) {
  PlanContext context;
  context.profile = target.attempt->profile;
  context.now = Clock(now);
  context.deadline = absl::Now() + kGroupPreemption;
  const auto ask = [&](absl::Span<const sdk::Slot> among) {
    context.among = among;
    const std::unique_ptr<sdk::GroupDryRun> dry_run =
        planner_.MakeDryRun(context, group, *target.pod);
    evaluator_.PostFilterGroup(*target.attempt, *target.pod, Clock(now), point, group,
                               dry_run.get(), response);
  };
  if (target.attempt->group_node_sets.empty()) return ask({});
  // The group has to fit into one of them, in order of preference.
  for (const std::vector<sdk::Slot>& nodes : target.attempt->group_node_sets) {
    ask(nodes);
    if (response->has_candidates()) return;
  }
}

}  // namespace outboard::runtime
