#include "shim/framework/algorithm.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shim/clock.h"
#include "shim/framework/multi_host/extension_point_runner.h"
#include "shim/framework/rejections.h"
#include "shim/framework/select_node.h"

namespace outboard::framework {
namespace {

using Outcome = AlgorithmResult::Outcome;
using v1beta1::CallError;
using v1beta1::CallHeader;
using v1beta1::PluginStatus;

// Whether the pod's group was answered for.
bool HasGroup(const v1beta1::PlanResponse& response) {
  return response.rejection().has_group() || response.plan().has_group();
}

// A plugin's failure as the error that kube-scheduler reports.
absl::Status PluginError(const PluginStatus& status) {
  return absl::UnknownError(absl::StrJoin(status.reasons(), ", "));
}

}  // namespace

void Algorithm::Fail(Outcome outcome, absl::Status status) {
  result_.outcome = outcome;
  result_.status = std::move(status);
}

const AlgorithmResult& Algorithm::Run(const AlgorithmRequest& request) {
  // Keeps the memory of the node lists.
  AlgorithmResult result;
  for (const auto list : {&AlgorithmResult::examined_slots, &AlgorithmResult::feasible_positions}) {
    (result_.*list).clear();
    result.*list = std::move(result_.*list);
  }
  result_ = std::move(result);
  fused_answer_.reset();
  result_.snapshot_version = request.hosts[0].version;
  result_.diagnosis.num_all_nodes = static_cast<uint32_t>(cluster_->node_order().size());
  const absl::Time deadline = SteadyNow() + request.budget;
  const std::string& nominated_name = request.pod->pod.nominated_node_name();
  const uint32_t nominated =
      nominated_name.empty() ? cache::ClusterState::kNoSlot : cluster_->SlotOf(nominated_name);
  ExtensionPointRunner runner(&request.hosts, request.profile, request.attempt_id, deadline);
  runner.UseNominations(cluster_, request.pod);
  runner.SetExplain(request.explain);
  runner.UseLastScores(&last_scores_, request.pod->pod.controller().uid());
  if (nominated == cache::ClusterState::kNoSlot) runner.SetRecorder(request.recorder);
  absl::Status called;
  if (nominated != cache::ClusterState::kNoSlot) {
    // Members of a group are placed together, even if each has a nominated node. One by one, some
    // would take their nodes and others would find theirs taken.
    const bool may_be_in_group = CanPlaceGroup(request);
    if (may_be_in_group) called = AskAtOnce(request, deadline);
    const bool is_answered = may_be_in_group && (HasGroup(response_) || response_.has_rejection());
    if (called.ok() && !is_answered) {
      fused_answer_.reset();
      absl::StatusOr<bool> taken = TryNominatedNode(request, nominated, &runner);
      if (taken.ok() && *taken) {
        result_.ignored_failures = runner.ignored_failures();
        return result_;
      }
      called = taken.ok() ? FilterAndScore(request, &runner) : taken.status();
    }
  } else if (IsFused(request.hosts)) {
    called = AskAtOnce(request, deadline);
  } else {
    const std::optional<size_t> main = request.profile->main_host;
    if (main.has_value() && request.hosts[*main].client != nullptr) {
      FillCycle(request, *main);
      runner.AskMainAtOnce(&request_, &main_response_);
    }
    called = RunPointByPoint(request, &runner);
    if (runner.main_search_stands()) fused_answer_ = {*main, &request_, &main_response_};
  }
  result_.ignored_failures = runner.ignored_failures();
  if (!called.ok()) {
    Fail(Outcome::kNoAnswer, std::move(called));
    result_.failed_host = runner.failed_host();
    return result_;
  }
  Evaluate(request);
  return result_;
}

bool Algorithm::CanPlaceGroup(const AlgorithmRequest& request) {
  return request.place_group && IsFused(request.hosts) &&
         HasCapability(request.hosts[0].client->info(), v1beta1::CAPABILITY_GROUP_PLAN);
}

absl::Status Algorithm::AskGroupSteps(const AlgorithmRequest& request, absl::Time deadline) {
  FillCycle(request, 0);
  request_.set_place_group(true);
  GroupStepsOutcome outcome =
      RunGroupSteps(request.hosts[0].client, request.group_points, *cluster_, *request.pod,
                    deadline, &request_, &response_);
  // A shadow is asked what leads to the same answer in one message.
  if (response_.has_evaluation()) fused_answer_ = {0, &request_, &response_};
  result_.failed_group_host = std::move(outcome.failed_host);
  result_.rejected_at_group_point = outcome.rejected_at_point;
  return outcome.status;
}

absl::Status Algorithm::AskAtOnce(const AlgorithmRequest& request, absl::Time deadline) {
  if (request.group_points != nullptr && CanPlaceGroup(request) &&
      HasCapability(request.hosts[0].client->info(), v1beta1::CAPABILITY_GROUP_PLACEMENTS))
    return AskGroupSteps(request, deadline);
  FillCycle(request, 0);
  HostClient& client = *request.hosts[0].client;
  request_.set_place_group(CanPlaceGroup(request));
  if (HasCapability(client.info(), v1beta1::CAPABILITY_BATCH)) {
    request_.mutable_next_pod_uids()->Assign(request.next_pod_uids.begin(),
                                             request.next_pod_uids.end());
  }
  fused_answer_ = {0, &request_, &response_};
  return CallCycle(&client, request_, deadline, &response_);
}

void Algorithm::FillCycle(const AlgorithmRequest& request, size_t host) {
  request_.Clear();
  v1beta1::CycleRequest& cycle = *request_.mutable_cycle();
  CallHeader* const header = cycle.mutable_header();
  header->set_attempt_id(request.attempt_id);
  header->set_exact_version(request.hosts[host].version);
  header->set_profile(request.profile->name);
  cycle.set_deadline_micros(absl::ToInt64Microseconds(request.budget));
  cycle.set_explain(request.explain);
  cycle.set_pod_uid(request.pod->uid());
  cycle.set_percentage_of_nodes_to_score(request.profile->percentage_of_nodes_to_score);
  v1beta1::NodeSearch* const search = cycle.mutable_search();
  search->set_start_offset(request.start_offset);
  if (request.profile->score_plugins.empty()) search->set_num_feasible_nodes_to_find(1);
}

absl::Status Algorithm::AskPreFilter(const AlgorithmRequest& request,
                                     ExtensionPointRunner* runner) {
  response_.Clear();
  auto answer = runner->PreFilter(request.pod->uid());
  if (!answer.ok()) return answer.status();
  v1beta1::PreFilterResponse* const pre_filter =
      answer->has_rejection() ? response_.mutable_rejection()->mutable_pre_filter()
                              : response_.mutable_evaluation()->mutable_pre_filter();
  *pre_filter = *std::move(answer);
  return absl::OkStatus();
}

absl::Status Algorithm::RunPointByPoint(const AlgorithmRequest& request,
                                        ExtensionPointRunner* runner) {
  if (absl::Status asked = AskPreFilter(request, runner); !asked.ok()) return asked;
  return FilterAndScore(request, runner);
}

absl::StatusOr<bool> Algorithm::TryNominatedNode(const AlgorithmRequest& request, uint32_t slot,
                                                 ExtensionPointRunner* runner) {
  v1beta1::NodeSearch only;
  only.mutable_nodes()->add_slots(slot);
  only.set_num_feasible_nodes_to_find(1);
  v1beta1::FilterResponse filtered;
  if (IsFused(request.hosts)) {
    FillCycle(request, 0);
    *request_.mutable_cycle()->mutable_search() = std::move(only);
    absl::Status called =
        CallCycle(request.hosts[0].client, request_, runner->deadline(), &response_);
    if (!called.ok()) return called;
    if (response_.has_rejection()) return false;
    filtered = std::move(*response_.mutable_evaluation()->mutable_filter());
    // It is not about the nodes of the pod's search.
    response_.mutable_evaluation()->clear_filter();
  } else {
    if (absl::Status asked = AskPreFilter(request, runner); !asked.ok()) return asked;
    if (response_.has_rejection()) return false;
    auto answer = runner->Filter(std::move(only), {slot}, 1);
    if (!answer.ok()) return answer.status();
    filtered = *std::move(answer);
  }
  std::vector<uint32_t> feasible;
  absl::Status checked = CheckFilter(filtered, 1, 1, &feasible);
  checked.Update(CheckNames(filtered, request.profile->filter_plugins));
  if (!checked.ok()) return checked;
  // kube-scheduler only logs a plugin's failure here and tries the other nodes.
  if (filtered.has_error()) return false;
  if (feasible.empty()) {
    result_.tried_slot = slot;
    const uint32_t reason = *RejectedNodes().NextReason(filtered, 0);
    result_.tried_status = filtered.reasons(static_cast<int>(reason));
    result_.diagnosis.AddRejection(result_.tried_status, 1);
    return false;
  }
  result_.outcome = Outcome::kPlaced;
  result_.slot = slot;
  result_.evaluated_nodes = result_.feasible_nodes = 1;
  return true;
}

absl::Status Algorithm::FilterAndScore(const AlgorithmRequest& request,
                                       ExtensionPointRunner* runner) {
  if (response_.has_rejection()) return absl::OkStatus();
  v1beta1::CycleEvaluation& evaluation = *response_.mutable_evaluation();
  if (absl::Status checked = CheckPreFilter(evaluation.pre_filter()); !checked.ok()) return checked;
  FindCandidates();
  v1beta1::NodeSearch search;
  search.set_start_offset(request.start_offset);
  if (evaluation.pre_filter().has_node_names())
    search.mutable_nodes()->mutable_slots()->Add(candidates_.begin(), candidates_.end());
  const uint32_t num_to_find = NumToFind(*request.profile, candidates_.size());
  search.set_num_feasible_nodes_to_find(std::max(num_to_find, 1u));
  auto filtered = runner->Filter(std::move(search), candidates_, num_to_find);
  if (!filtered.ok()) return filtered.status();
  *evaluation.mutable_filter() = *std::move(filtered);

  std::vector<uint32_t> feasible;
  if (absl::Status checked = CheckFilter(
          evaluation.filter(), static_cast<uint32_t>(candidates_.size()), num_to_find, &feasible);
      !checked.ok()) {
    return checked;
  }
  if (evaluation.filter().has_error() || feasible.size() < 2 ||
      request.profile->score_plugins.empty()) {
    return absl::OkStatus();
  }
  v1beta1::NodeSet nodes;
  for (const uint32_t position : feasible) {
    nodes.add_slots(candidates_[(request.start_offset + position) % candidates_.size()]);
  }
  if (!request.profile->pre_score_plugins.empty()) {
    auto answer = runner->PreScore(nodes);
    if (!answer.ok()) return answer.status();
    *evaluation.mutable_pre_score() = *std::move(answer);
    if (evaluation.pre_score().has_error()) return absl::OkStatus();
  }
  auto scored = runner->Score(nodes);
  if (!scored.ok()) return scored.status();
  *evaluation.mutable_score() = *std::move(scored);
  return absl::OkStatus();
}

v1beta1::JudgedNodes Algorithm::JudgedNodes() const {
  v1beta1::JudgedNodes judged;
  if (response_.has_rejection()) {
    judged.set_others(PreFilterOf(response_).rejection().code());
    return judged;
  }
  judged.set_others(v1beta1::CODE_UNSCHEDULABLE_AND_UNRESOLVABLE);
  const v1beta1::FilterResponse& filter = response_.evaluation().filter();
  RejectedNodes rejected;
  for (uint32_t i = 0; i < filter.processed(); ++i) {
    const uint32_t reason = *rejected.NextReason(filter, i);  // None is feasible.
    judged.add_slots(result_.examined_slots[i]);
    judged.add_codes(filter.reasons(static_cast<int>(reason)).code());
  }
  if (result_.tried_slot.has_value()) {
    judged.add_slots(*result_.tried_slot);
    judged.add_codes(result_.tried_status.code());
  }
  return judged;
}

void Algorithm::FindCandidates() {
  const auto& order = cluster_->node_order();
  const v1beta1::PreFilterResponse& pre_filter = PreFilterOf(response_);
  if (!pre_filter.has_node_names()) {
    candidates_.assign(order.begin(), order.end());
    return;
  }
  std::set<uint32_t> wanted;
  for (const std::string& name : pre_filter.node_names().names()) {
    if (const uint32_t slot = cluster_->SlotOf(name); slot != cache::ClusterState::kNoSlot)
      wanted.insert(slot);
  }
  candidates_.clear();
  if (wanted.size() == 1) {
    candidates_.push_back(*wanted.begin());
    return;
  }
  for (const uint32_t slot : order) {
    if (wanted.contains(slot)) candidates_.push_back(slot);
  }
}

uint32_t Algorithm::NumToFind(const AlgorithmProfile& profile, size_t num_nodes) {
  if (profile.score_plugins.empty()) return 1;
  return NumFeasibleNodesToFind(static_cast<uint32_t>(num_nodes),
                                profile.percentage_of_nodes_to_score);
}

void Algorithm::Evaluate(const AlgorithmRequest& request) {
  const v1beta1::PreFilterResponse& pre_filter = PreFilterOf(response_);
  absl::Status checked;
  // Otherwise made from an answer that was checked.
  if (!result_.rejected_at_group_point) {
    checked = CheckPreFilterOf(response_, request.profile->pre_filter_plugins,
                               request.profile->filter_plugins);
  }
  if (!checked.ok()) return Fail(Outcome::kNoAnswer, std::move(checked));
  for (const std::string& plugin : pre_filter.rejected_by()) {
    result_.diagnosis.unschedulable_plugins.insert(plugin);
  }
  if (pre_filter.has_rejection()) {
    if (pre_filter.rejection().code() == v1beta1::CODE_ERROR) {
      return Fail(Outcome::kError, PluginError(pre_filter.rejection()));
    }
    if (response_.rejection().has_group()) {
      const v1beta1::PlannedGroup& group = response_.rejection().group();
      if (absl::Status usable = CheckRejectedGroup(group, request.pod->uid()); !usable.ok())
        return Fail(Outcome::kNoAnswer, std::move(usable));
      result_.rejected_with.assign(group.pod_uids().begin(), group.pod_uids().end());
    }
    result_.outcome = Outcome::kUnschedulable;
    result_.diagnosis.pre_filter_message = absl::StrJoin(pre_filter.rejection().reasons(), ", ");
    result_.diagnosis.AddPlugin(pre_filter.rejection());
    return;
  }
  if (response_.has_plan()) return EvaluatePlacements(request);
  FindCandidates();
  if (pre_filter.has_node_names()) {
    std::set<std::string> plugins(pre_filter.restricted_by().begin(),
                                  pre_filter.restricted_by().end());
    // As in kube-scheduler, which has one set for both.
    if (result_.tried_slot.has_value() && !result_.tried_status.plugin().empty())
      plugins.insert(result_.tried_status.plugin());
    result_.diagnosis.unschedulable_plugins.insert(plugins.begin(), plugins.end());
    result_.diagnosis.absent_nodes_reason =
        absl::StrCat("node(s) didn't satisfy plugin(s) [", absl::StrJoin(plugins, " "), "]");
  }
  EvaluateFilter(request, NumToFind(*request.profile, candidates_.size()));
}

void AddExplanation(const v1beta1::PlannedPlacement& placement,
                    const std::vector<WeightedPlugin>& score_plugins, AlgorithmResult* result) {
  if (!placement.has_scored()) return;
  const auto& slots = placement.scored().slots();
  result->examined_slots.assign(slots.begin(), slots.end());
  result->feasible_positions.resize(static_cast<size_t>(slots.size()));
  std::iota(result->feasible_positions.begin(), result->feasible_positions.end(), 0);
  result->explained = placement.score();
  CheckScores(placement.score(), static_cast<uint32_t>(slots.size()), score_plugins,
              &result->totals)
      .IgnoreError();
}

void Algorithm::EvaluatePlacements(const AlgorithmRequest& request) {
  const v1beta1::CyclePlan& plan = response_.plan();
  absl::Status checked =
      CheckPlacements(plan, request.pod->uid(), request.next_pod_uids, request_.place_group());
  for (const v1beta1::PlannedPlacement& placement : plan.placements()) {
    if (cluster_->NodeAt(placement.slot()) == nullptr)
      checked.Update(absl::InternalError(absl::StrCat("no node in slot ", placement.slot())));
  }
  std::vector<int64_t> totals;
  for (const v1beta1::PlannedPlacement& placement : plan.placements()) {
    if (!request.explain || !placement.has_scored()) continue;
    for (const uint32_t slot : placement.scored().slots()) {
      if (cluster_->NodeAt(slot) == nullptr)
        checked.Update(absl::InternalError(absl::StrCat("no node in slot ", slot)));
    }
    checked.Update(CheckScores(placement.score(),
                               static_cast<uint32_t>(placement.scored().slots_size()),
                               request.profile->score_plugins, &totals));
  }
  if (!checked.ok()) return Fail(Outcome::kNoAnswer, std::move(checked));
  result_.outcome = Outcome::kPlaced;
  if (request.explain) AddExplanation(plan.placements(0), request.profile->score_plugins, &result_);
  result_.is_group = plan.has_group();
  result_.placed_together = true;
  result_.slot = plan.placements(0).slot();
  result_.feasible_nodes = plan.placements(0).feasible();
  result_.evaluated_nodes = result_.processed_nodes = plan.placements(0).processed();
  result_.others.assign(plan.placements().begin() + 1, plan.placements().end());
}

void Algorithm::EvaluateFilter(const AlgorithmRequest& request, uint32_t num_to_find) {
  const v1beta1::CycleEvaluation& evaluation = response_.evaluation();
  const v1beta1::FilterResponse& filter = evaluation.filter();
  const uint32_t num_nodes = static_cast<uint32_t>(candidates_.size());
  std::vector<uint32_t>& feasible = result_.feasible_positions;
  absl::Status checked = CheckFilter(filter, num_nodes, num_to_find, &feasible);
  checked.Update(CheckNames(filter, request.profile->filter_plugins));
  if (!checked.ok()) return Fail(Outcome::kNoAnswer, std::move(checked));
  // A nominated node that was tried first counts once, with the last verdict on it. The list starts
  // at the offset and wraps around.
  if (filter.processed() > 0) {
    const uint32_t start = request.start_offset % num_nodes;
    const uint32_t before_end = std::min(filter.processed(), num_nodes - start);
    const auto nodes = candidates_.begin();
    result_.examined_slots.insert(result_.examined_slots.end(), nodes + start,
                                  nodes + start + before_end);
    result_.examined_slots.insert(result_.examined_slots.end(), nodes,
                                  nodes + (filter.processed() - before_end));
  }
  const bool seen_again = result_.tried_slot.has_value() &&
                          std::find(result_.examined_slots.begin(), result_.examined_slots.end(),
                                    *result_.tried_slot) != result_.examined_slots.end();
  if (seen_again) {
    result_.tried_slot = std::nullopt;
    result_.diagnosis.reasons.clear();
    result_.diagnosis.num_rejected_nodes = 0;
  }
  std::vector<uint32_t> counts(filter.reasons_size(), 0);
  for (int i = 0; i < filter.rejected_for_size(); ++i)
    counts[i] = CountSetBits(filter.rejected_for(i));
  for (const uint32_t reason : filter.rejected()) ++counts[reason];
  for (int i = 0; i < filter.reasons_size(); ++i) {
    if (counts[i] > 0) result_.diagnosis.AddRejection(filter.reasons(i), counts[i]);
  }
  result_.feasible_nodes = static_cast<uint32_t>(feasible.size());
  result_.evaluated_nodes = result_.feasible_nodes + result_.diagnosis.num_rejected_nodes;
  result_.processed_nodes = result_.evaluated_nodes;
  if (filter.has_error()) return Fail(Outcome::kError, PluginError(filter.error()));
  if (feasible.empty()) {
    result_.outcome = Outcome::kUnschedulable;
    return;
  }
  if (feasible.size() == 1 || request.profile->score_plugins.empty()) {
    result_.outcome = Outcome::kPlaced;
    result_.slot = result_.examined_slots[feasible[0]];
    return;
  }
  if (absl::Status checked = CheckPreScore(evaluation.pre_score()); !checked.ok()) {
    return Fail(Outcome::kNoAnswer, std::move(checked));
  }
  if (evaluation.pre_score().has_error()) {
    return Fail(Outcome::kError, PluginError(evaluation.pre_score().error()));
  }
  checked = CheckScores(evaluation.score(), result_.feasible_nodes, request.profile->score_plugins,
                        &result_.totals);
  if (!checked.ok()) return Fail(Outcome::kNoAnswer, std::move(checked));
  if (evaluation.score().has_error()) {
    return Fail(Outcome::kError, PluginError(evaluation.score().error()));
  }
  result_.outcome = Outcome::kPlaced;
  result_.slot = result_.examined_slots[feasible[SelectNode(result_.totals)]];
}

}  // namespace outboard::framework
