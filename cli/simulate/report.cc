#include "cli/simulate/report.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

namespace outboard::simulate {

std::string ToJsonLine(const PodReport& report) {
  return diagnostics::Dump(diagnostics::ToJson(report));
}

void Reporter::OnAlgorithm(const kube::PodObject& pod, const framework::AlgorithmProfile& profile,
                           const framework::AlgorithmResult& result,
                           const v1alpha1::CycleResponse& response, absl::Duration elapsed) {
  if (done_.contains(pod.uid())) return;
  PodReport report;
  // Omits nodes after PreFilter that were not examined: a plugin failed there.
  const auto& left = response.pre_filter().node_names().names();
  std::vector<uint32_t> slots = (*cluster_)->node_order();
  std::erase_if(slots, [&](uint32_t slot) {
    return std::binary_search(left.begin(), left.end(), (*cluster_)->NodeAt(slot)->node.name());
  });
  diagnostics::FillNodes(
      {result.examined_slots, result.feasible_positions, result.totals,
       result.diagnosis.absent_nodes_reason, result.tried_slot, result.tried_status,
       response.filter(), response.score(), profile.score_plugins, profile.skipped_score_plugins},
      slots,
      [this](uint32_t slot) -> const std::string& {
        return (*cluster_)->NodeAt(slot)->node.name();
      },
      &report);
  open_[pod.uid()] = std::move(report);
}

void Reporter::OnPreemption(const kube::PodObject& pod, const std::string& node_name,
                            const std::vector<kube::PodPtr>& victims, size_t to_evict) {
  const auto open = open_.find(pod.uid());
  if (open == open_.end()) return;
  open->second.nominated_node = node_name;
  for (const kube::PodPtr& victim : victims) open->second.victims.push_back(victim->key());
}

namespace {

template <typename Write>
nlohmann::ordered_json Named(const Write& write) {
  return {
      {"resource", write.resource()}, {"namespace", write.namespace_()}, {"name", write.name()}};
}

template <typename Write>
nlohmann::ordered_json WithBody(const Write& write) {
  nlohmann::ordered_json json = Named(write);
  json["status"] = write.status();
  json["body"] = nlohmann::ordered_json::parse(write.json(), nullptr, /*allow_exceptions=*/false);
  return json;
}

}  // namespace

void Reporter::OnWrite(const scheduler::EffectOrder& order) {
  if (order.pod == nullptr) return;
  const auto open = open_.find(order.pod->uid());
  if (open == open_.end()) return;
  const v1alpha1::Effect& effect = order.effect;
  const auto add = [&](const char* what, nlohmann::ordered_json write) {
    open->second.effects.push_back(diagnostics::Dump({{what, std::move(write)}}));
  };
  if (effect.has_put_object()) add("put", WithBody(effect.put_object()));
  if (effect.has_patch_object()) add("patch", WithBody(effect.patch_object()));
  if (effect.has_delete_object()) add("delete", Named(effect.delete_object()));
}

void Reporter::OnAttemptEnd(const kube::PodObject& pod, const std::string& profile,
                            scheduler::AttemptResult result, const std::string& node_name,
                            const std::string& message, absl::Duration since_attempt_began) {
  if (!done_.emplace(pod.uid(), true).second) return;
  PodReport report;
  if (auto open = open_.extract(pod.uid()); !open.empty()) report = std::move(open.mapped());
  report.pod = pod.key();
  report.result = diagnostics::ResultName(result);
  report.node = node_name;
  report.message = message;
  ++reported_;
  sink_(report);
}

}  // namespace outboard::simulate
