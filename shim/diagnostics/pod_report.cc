#include "shim/diagnostics/pod_report.h"

#include <nlohmann/json.hpp>
#include <set>

#include "shim/framework/rejections.h"

namespace outboard::diagnostics {
namespace {

std::string CodeName(v1beta1::Code code) {
  switch (code) {
    case v1beta1::CODE_UNSCHEDULABLE:
      return "Unschedulable";
    case v1beta1::CODE_UNSCHEDULABLE_AND_UNRESOLVABLE:
      return "UnschedulableAndUnresolvable";
    case v1beta1::CODE_PENDING:
      return "Pending";
    default:
      return "Error";
  }
}

}  // namespace

std::string ResultName(scheduler::AttemptResult result) {
  switch (result) {
    case scheduler::AttemptResult::kScheduled:
      return "scheduled";
    case scheduler::AttemptResult::kUnschedulable:
      return "unschedulable";
    default:
      return "error";
  }
}

nlohmann::ordered_json ToJson(const PodReport& report) {
  nlohmann::ordered_json line;
  line["pod"] = report.pod;
  line["result"] = report.result;
  line["node"] = report.node;
  line["message"] = report.message;
  line["filter"] = nlohmann::ordered_json::object();
  for (const auto& [node, verdict] : report.filter) {
    line["filter"][node] = {
        {"code", verdict.code}, {"plugin", verdict.plugin}, {"reasons", verdict.reasons}};
  }
  line["scores"] = nlohmann::ordered_json::object();
  for (const auto& [node, scores] : report.scores) {
    line["scores"][node] = {{"total", scores.total}, {"plugins", scores.plugins}};
    for (const auto& [plugin, terms] : scores.terms) {
      for (const auto& [name, value] : terms) line["scores"][node]["terms"][plugin][name] = value;
    }
  }
  line["nominatedNode"] = report.nominated_node;
  line["victims"] = report.victims;
  for (const std::string& effect : report.effects)
    line["effects"].push_back(nlohmann::ordered_json::parse(effect));
  return line;
}

std::string Dump(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

void FillNodes(const AlgorithmView& view, const std::vector<uint32_t>& all_slots,
               const std::function<const std::string&(uint32_t slot)>& node_name,
               PodReport* report) {
  const std::set<uint32_t> feasible(view.feasible_positions.begin(), view.feasible_positions.end());
  framework::RejectedNodes rejected;
  for (uint32_t i = 0; i < view.examined_slots.size(); ++i) {
    if (feasible.contains(i)) continue;
    const auto reason = rejected.NextReason(view.filter, i);
    if (!reason.has_value()) continue;
    const v1beta1::PluginStatus& status = view.filter.reasons(static_cast<int>(*reason));
    report->filter[node_name(view.examined_slots[i])] = {
        CodeName(status.code()),
        status.plugin(),
        {status.reasons().begin(), status.reasons().end()}};
  }
  if (!view.absent_nodes_reason.empty()) {
    const std::set<uint32_t> examined(view.examined_slots.begin(), view.examined_slots.end());
    for (const uint32_t slot : all_slots) {
      if (examined.contains(slot)) continue;
      report->filter[node_name(slot)] = {
          CodeName(v1beta1::CODE_UNSCHEDULABLE_AND_UNRESOLVABLE), "", {view.absent_nodes_reason}};
    }
  }
  if (view.tried_slot.has_value()) {
    const v1beta1::PluginStatus& status = view.tried_status;
    report->filter[node_name(*view.tried_slot)] = {
        CodeName(status.code()),
        status.plugin(),
        {status.reasons().begin(), status.reasons().end()}};
  }
  for (size_t i = 0; i < view.totals.size(); ++i) {
    NodeScores& scores = report->scores[node_name(view.examined_slots[view.feasible_positions[i]])];
    scores.total = view.totals[i];
    for (const std::string& plugin : view.skipped_score_plugins) scores.plugins[plugin] = 0;
    for (const v1beta1::PluginScores& plugin : view.score.plugins()) {
      for (const framework::WeightedPlugin& weighted : view.score_plugins) {
        if (weighted.name != plugin.plugin()) continue;
        scores.plugins[plugin.plugin()] =
            weighted.weight * static_cast<uint8_t>(plugin.scores()[i]);
      }
      if (plugin.terms().empty()) continue;
      for (const v1beta1::ScoreTerm& term : plugin.terms(static_cast<int>(i)).terms())
        scores.terms[plugin.plugin()].emplace_back(term.name(), term.value());
    }
  }
}

}  // namespace outboard::diagnostics
