#include "shim/simulate/report.h"

#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace outboard::simulate {
namespace {

using cycle::AlgorithmResult;
using cycle::AttemptResult;

std::string CodeName(v1alpha1::Code code) {
  switch (code) {
    case v1alpha1::UNSCHEDULABLE:
      return "Unschedulable";
    case v1alpha1::UNSCHEDULABLE_AND_UNRESOLVABLE:
      return "UnschedulableAndUnresolvable";
    case v1alpha1::PENDING:
      return "Pending";
    default:
      return "Error";
  }
}

const std::string& NodeName(const cycle::ClusterState& cluster, uint32_t slot) {
  return cluster.NodeAt(slot)->node.name();
}

std::string ResultName(AttemptResult result) {
  switch (result) {
    case AttemptResult::kScheduled:
      return "scheduled";
    case AttemptResult::kUnschedulable:
      return "unschedulable";
    default:
      return "error";
  }
}

}  // namespace

std::string ToJsonLine(const PodReport& report) {
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
  }
  line["nominatedNode"] = report.nominated_node;
  line["victims"] = report.victims;
  // Names and messages come from files; whatever they hold, the line stays valid JSON.
  return line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

void Reporter::OnAlgorithm(const kube::PodObject& pod, const cycle::AlgorithmProfile& profile,
                           const AlgorithmResult& result, const v1alpha1::CycleResponse& response,
                           absl::Duration elapsed) {
  if (done_.contains(pod.uid())) return;
  PodReport report;
  const std::set<uint32_t> feasible(result.feasible_positions.begin(),
                                    result.feasible_positions.end());
  int next_rejection = 0;
  const v1alpha1::FilterResponse& filter = response.filter();
  for (uint32_t i = 0; i < result.examined_slots.size(); ++i) {
    if (feasible.contains(i) || next_rejection >= filter.rejected_size()) continue;
    const v1alpha1::PluginStatus& status =
        filter.reasons(static_cast<int>(filter.rejected(next_rejection++)));
    report.filter[NodeName(**cluster_, result.examined_slots[i])] = {
        CodeName(status.code()),
        status.plugin(),
        {status.reasons().begin(), status.reasons().end()}};
  }
  if (!result.diagnosis.absent_nodes_reason.empty()) {
    const std::set<uint32_t> examined(result.examined_slots.begin(), result.examined_slots.end());
    for (const uint32_t slot : (*cluster_)->node_order()) {
      if (examined.contains(slot)) continue;
      report.filter[NodeName(**cluster_, slot)] = {
          CodeName(v1alpha1::UNSCHEDULABLE_AND_UNRESOLVABLE),
          "",
          {result.diagnosis.absent_nodes_reason}};
    }
  }
  for (size_t i = 0; i < result.totals.size(); ++i) {
    NodeScores& scores =
        report.scores[NodeName(**cluster_, result.examined_slots[result.feasible_positions[i]])];
    scores.total = result.totals[i];
    for (const v1alpha1::PluginScores& plugin : response.score().plugins()) {
      for (const cycle::WeightedPlugin& weighted : profile.score_plugins) {
        if (weighted.name != plugin.plugin()) continue;
        scores.plugins[plugin.plugin()] =
            weighted.weight * static_cast<uint8_t>(plugin.scores()[i]);
      }
    }
  }
  open_[pod.uid()] = std::move(report);
}

void Reporter::OnPreemption(const kube::PodObject& pod, const std::string& node_name,
                            const std::vector<kube::PodPtr>& victims, size_t to_evict) {
  const auto open = open_.find(pod.uid());
  if (open == open_.end()) return;
  open->second.nominated_node = node_name;
  for (const kube::PodPtr& victim : victims) open->second.victims.push_back(victim->key());
}

void Reporter::OnAttemptEnd(const kube::PodObject& pod, const std::string& profile,
                            AttemptResult result, const std::string& node_name,
                            const std::string& message, absl::Duration since_attempt_began) {
  if (!done_.emplace(pod.uid(), true).second) return;
  PodReport report;
  if (auto open = open_.extract(pod.uid()); !open.empty()) report = std::move(open.mapped());
  report.pod = pod.key();
  report.result = ResultName(result);
  report.node = node_name;
  report.message = message;
  ++reported_;
  sink_(report);
}

}  // namespace outboard::simulate
