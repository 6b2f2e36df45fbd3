#include "shim/framework/multi_host/node_evaluator.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shim/clock.h"
#include "shim/framework/rejections.h"
#include "shim/framework/select_node.h"

namespace outboard::framework {
namespace {

using v1beta1::FilterResponse;
using v1beta1::PluginStatus;

// Positions of the nodes that PreFilter left.
std::vector<size_t> Left(const v1beta1::PreFilterResponse& pre_filter,
                         absl::Span<const uint32_t> slots, NodeEvaluator::NameOf name_of) {
  std::vector<size_t> left;
  left.reserve(slots.size());
  if (!pre_filter.has_node_names()) {
    left.resize(slots.size());
    std::iota(left.begin(), left.end(), 0);
    return left;
  }
  absl::flat_hash_set<absl::string_view> wanted(pre_filter.node_names().names().begin(),
                                                pre_filter.node_names().names().end());
  for (size_t i = 0; i < slots.size(); ++i) {
    if (wanted.contains(name_of(slots[i]))) left.push_back(i);
  }
  return left;
}

// For nodes that PreFilter excluded; kube-scheduler's message, for any plugin.
PluginStatus ExcludedStatus(const v1beta1::PreFilterResponse& pre_filter) {
  PluginStatus status;
  status.set_code(v1beta1::CODE_UNSCHEDULABLE_AND_UNRESOLVABLE);
  status.add_reasons(absl::StrCat("node(s) didn't satisfy plugin(s) [",
                                  absl::StrJoin(pre_filter.restricted_by(), " "), "]"));
  return status;
}

// The weighted mean on NodeEvaluation's scale. `total` is at most 100 times the weights.
int64_t Mean(int64_t total, int64_t weights) {
  if (weights <= 0) return 0;
  constexpr int64_t kStep = NodeEvaluation::kMaxScore / 100;
  return std::clamp<int64_t>((total * kStep + weights / 2) / weights, 0, NodeEvaluation::kMaxScore);
}

}  // namespace

NodeEvaluator::NodeEvaluator(EvaluateRequest request)
    : request_(std::move(request)),
      runner_(&request_.hosts, request_.profile, request_.attempt_id,
              SteadyNow() + request_.budget) {
  if (request_.pod != nullptr) runner_.UseNominations(request_.cluster, request_.pod);
}

absl::Status NodeEvaluator::PluginFailed(const PluginStatus& status) {
  plugin_failed_ = true;
  return absl::UnknownError(absl::StrJoin(status.reasons(), ", "));
}

absl::Status NodeEvaluator::Ask(const v1beta1::NodeSet& nodes) {
  if (!IsFused(request_.hosts)) return AskPointByPoint(nodes);
  v1beta1::PlanRequest request;
  v1beta1::CycleRequest& cycle = *request.mutable_cycle();
  cycle.mutable_header()->set_attempt_id(request_.attempt_id);
  cycle.mutable_header()->set_exact_version(request_.hosts[0].version);
  cycle.mutable_header()->set_profile(request_.profile->name);
  cycle.set_deadline_micros(absl::ToInt64Microseconds(request_.budget));
  cycle.set_score_single_node(true);
  cycle.set_pod_uid(request_.pod_uid);
  *cycle.mutable_search() = SearchEach(nodes.slots());
  v1beta1::PlanResponse response;
  absl::Status called = CallCycle(request_.hosts[0].client, request, runner_.deadline(), &response);
  if (!called.ok()) return called;
  answers_ = AnswersOf(std::move(response));
  return absl::OkStatus();
}

absl::Status NodeEvaluator::AskPointByPoint(const v1beta1::NodeSet& nodes) {
  // On the second call PreFilter was already asked.
  if (!answers_.has_pre_filter()) {
    auto pre_filtered = runner_.PreFilter(request_.pod_uid);
    if (!pre_filtered.ok()) return pre_filtered.status();
    *answers_.mutable_pre_filter() = *std::move(pre_filtered);
    if (answers_.pre_filter().has_rejection() || answers_.pre_filter().has_node_names())
      return absl::OkStatus();
  }
  const std::vector<uint32_t> slots(nodes.slots().begin(), nodes.slots().end());
  const uint32_t count = static_cast<uint32_t>(slots.size());
  auto filtered = runner_.Filter(SearchEach(slots), slots, count);
  if (!filtered.ok()) return filtered.status();
  *answers_.mutable_filter() = *std::move(filtered);
  std::vector<uint32_t> feasible;
  if (absl::Status checked = CheckFilter(answers_.filter(), count, count, &feasible);
      !checked.ok()) {
    return checked;
  }
  if (answers_.filter().has_error() || feasible.empty() ||
      request_.profile->score_plugins.empty()) {
    return absl::OkStatus();
  }
  v1beta1::NodeSet scored;
  for (const uint32_t position : feasible) scored.add_slots(slots[position]);
  if (!request_.profile->pre_score_plugins.empty()) {
    auto answer = runner_.PreScore(scored);
    if (!answer.ok()) return answer.status();
    *answers_.mutable_pre_score() = *std::move(answer);
    if (answers_.pre_score().has_error()) return absl::OkStatus();
  }
  auto answer = runner_.Score(scored);
  if (!answer.ok()) return answer.status();
  *answers_.mutable_score() = *std::move(answer);
  return absl::OkStatus();
}

absl::Status NodeEvaluator::Evaluate(absl::Span<const uint32_t> slots, NameOf name_of,
                                     NodeEvaluation* out) {
  *out = NodeEvaluation();
  out->verdicts.assign(slots.size(), NodeEvaluation::kFeasible);
  out->scores.assign(slots.size(), 0);
  if (slots.empty()) return absl::OkStatus();
  answers_.Clear();
  v1beta1::NodeSet nodes;
  nodes.mutable_slots()->Add(slots.begin(), slots.end());
  absl::Status asked = Ask(nodes);
  if (!asked.ok()) return asked;
  const v1beta1::PreFilterResponse& pre_filter = answers_.pre_filter();
  absl::Status checked = CheckPreFilter(pre_filter);
  checked.Update(CheckNames(pre_filter, request_.profile->pre_filter_plugins));
  if (!checked.ok()) return checked;
  if (pre_filter.has_rejection()) {
    if (pre_filter.rejection().code() == v1beta1::CODE_ERROR)
      return PluginFailed(pre_filter.rejection());
    out->reasons.push_back(pre_filter.rejection());
    out->verdicts.assign(slots.size(), 0);
    return absl::OkStatus();
  }
  const std::vector<size_t> left = Left(pre_filter, slots, name_of);
  if (left.size() < slots.size()) {
    out->reasons.push_back(ExcludedStatus(pre_filter));
    out->verdicts.assign(slots.size(), 0);
    for (const size_t i : left) out->verdicts[i] = NodeEvaluation::kFeasible;
  }
  if (left.empty()) return absl::OkStatus();
  if (left.size() < slots.size() || !answers_.has_filter()) {
    // The answers were about other nodes.
    nodes.clear_slots();
    for (const size_t i : left) nodes.add_slots(slots[i]);
    asked = Ask(nodes);
    if (!asked.ok()) return asked;
  }
  return TakeAnswer(slots, left, out);
}

absl::Status NodeEvaluator::TakeAnswer(absl::Span<const uint32_t> slots,
                                       absl::Span<const size_t> asked, NodeEvaluation* out) {
  const FilterResponse& filter = answers_.filter();
  const uint32_t count = static_cast<uint32_t>(asked.size());
  std::vector<uint32_t> feasible;
  absl::Status checked = CheckFilter(filter, count, count, &feasible);
  checked.Update(CheckNames(filter, request_.profile->filter_plugins));
  if (!checked.ok()) return checked;
  if (filter.has_error()) return PluginFailed(filter.error());
  const int first_reason = static_cast<int>(out->reasons.size());
  out->reasons.insert(out->reasons.end(), filter.reasons().begin(), filter.reasons().end());
  RejectedNodes rejected;
  size_t next = 0;
  for (uint32_t i = 0; i < count; ++i) {
    if (next < feasible.size() && feasible[next] == i) {
      ++next;
      continue;
    }
    out->verdicts[asked[i]] = first_reason + static_cast<int>(*rejected.NextReason(filter, i));
  }
  if (feasible.empty() || request_.profile->score_plugins.empty()) return absl::OkStatus();
  if (absl::Status pre_scored = CheckPreScore(answers_.pre_score()); !pre_scored.ok())
    return pre_scored;
  const v1beta1::ScoreResponse& score = answers_.score();
  if (answers_.pre_score().has_error() || score.has_error()) {
    const PluginStatus& error = score.has_error() ? score.error() : answers_.pre_score().error();
    out->scoring = absl::UnknownError(absl::StrJoin(error.reasons(), ", "));
    return absl::OkStatus();
  }
  std::vector<int64_t> totals;
  checked = CheckScores(score, static_cast<uint32_t>(feasible.size()),
                        request_.profile->score_plugins, &totals);
  if (!checked.ok()) return checked;
  int64_t weights = 0;
  for (const WeightedPlugin& plugin : request_.profile->score_plugins) {
    for (const v1beta1::PluginScores& scores : score.plugins()) {
      if (scores.plugin() == plugin.name) weights += plugin.weight;
    }
  }
  for (size_t i = 0; i < feasible.size(); ++i)
    out->scores[asked[feasible[i]]] = Mean(totals[i], weights);
  return absl::OkStatus();
}

absl::Status NodeEvaluator::EvaluateHypotheses(
    const google::protobuf::RepeatedPtrField<v1beta1::SimulatedNode>& hypotheses, NameOf name_of,
    std::vector<bool>* fits) {
  fits->assign(static_cast<size_t>(hypotheses.size()), false);
  if (hypotheses.empty()) return absl::OkStatus();
  auto pre_filtered = runner_.PreFilter(request_.pod_uid);
  if (!pre_filtered.ok()) return pre_filtered.status();
  absl::Status checked = CheckPreFilter(*pre_filtered);
  checked.Update(CheckNames(*pre_filtered, request_.profile->pre_filter_plugins));
  if (!checked.ok()) return checked;
  if (pre_filtered->has_rejection()) {
    if (pre_filtered->rejection().code() == v1beta1::CODE_ERROR)
      return PluginFailed(pre_filtered->rejection());
    return absl::OkStatus();
  }
  std::vector<uint32_t> slots;
  slots.reserve(static_cast<size_t>(hypotheses.size()));
  for (const v1beta1::SimulatedNode& hypothesis : hypotheses) slots.push_back(hypothesis.slot());
  const std::vector<size_t> left = Left(*pre_filtered, slots, name_of);
  if (left.empty()) return absl::OkStatus();
  google::protobuf::RepeatedPtrField<v1beta1::SimulatedNode> asked;
  for (const size_t i : left) *asked.Add() = hypotheses[static_cast<int>(i)];
  const uint32_t count = static_cast<uint32_t>(left.size());
  if (request_.profile->filter_plugins.empty()) {
    for (const size_t i : left) (*fits)[i] = true;
    return absl::OkStatus();
  }
  if (!request_.profile->shares.empty()) {
    auto objections = runner_.EvaluateHypotheses(asked, /*excepted=*/request_.hosts.size());
    if (!objections.ok()) return objections.status();
    for (size_t i = 0; i < left.size(); ++i) (*fits)[left[i]] = (*objections)[i].empty();
    return absl::OkStatus();
  }
  v1beta1::NodeSimulation simulation;
  *simulation.mutable_nodes() = std::move(asked);
  auto answer = runner_.Simulate(std::move(simulation));
  if (!answer.ok()) return answer.status();
  std::vector<uint32_t> feasible;
  checked = CheckFilter(*answer, count, count, &feasible);
  checked.Update(CheckNames(*answer, request_.profile->filter_plugins));
  if (!checked.ok()) return checked;
  if (answer->has_error()) return absl::InternalError("Filter failed for all hypotheses");
  for (const uint32_t i : feasible) (*fits)[left[i]] = true;
  return absl::OkStatus();
}

}  // namespace outboard::framework
