#include "plugin_host/sdk/disruption_budgets.h"

#include <algorithm>
#include <utility>

namespace outboard::sdk {

void DisruptionBudgets::OnObjectChanged(const v1beta1::ClusterObject& object) {
  if (object.has_pod_disruption_budget()) Set(object.pod_disruption_budget());
}

void DisruptionBudgets::OnObjectRemoved(const v1beta1::ClusterObject& object) {
  if (!object.has_pod_disruption_budget()) return;
  const v1beta1::PodDisruptionBudget& budget = object.pod_disruption_budget();
  Remove(budget.namespace_(), budget.name());
}

bool DisruptionBudgets::Count(const v1beta1::Pod& pod) const {
  const auto budgets = by_namespace_.find(pod.namespace_());
  if (budgets == by_namespace_.end() || pod.labels().empty()) return false;
  return std::any_of(budgets->second.begin(), budgets->second.end(), [&](const auto& named) {
    return named.second.selector.Matches(pod.labels());
  });
}

void DisruptionBudgets::Set(const v1beta1::PodDisruptionBudget& proto) {
  Remove(proto.namespace_(), proto.name());
  // An absent, empty or malformed selector counts no pod.
  if (!proto.has_selector()) return;
  auto selector = CompiledLabelSelector::Parse(proto.selector());
  if (!selector.ok() || selector->matches_everything()) return;
  Budget budget{*std::move(selector), proto.disruptions_allowed(), {}};
  budget.disrupted.insert(proto.disrupted_pods().begin(), proto.disrupted_pods().end());
  by_namespace_[proto.namespace_()][proto.name()] = std::move(budget);
}

void DisruptionBudgets::Remove(absl::string_view ns, const std::string& name) {
  const auto it = by_namespace_.find(ns);
  if (it == by_namespace_.end()) return;
  it->second.erase(name);
  if (it->second.empty()) by_namespace_.erase(it);
}

std::vector<bool> DisruptionBudgets::Violated(const std::vector<PodRecord*>& pods) const {
  std::vector<bool> violated(pods.size(), false);
  if (by_namespace_.empty()) return violated;
  absl::flat_hash_map<const Budget*, int64_t> left;
  for (size_t i = 0; i < pods.size(); ++i) {
    const v1beta1::Pod& pod = pods[i]->pod;
    if (pod.labels().empty()) continue;
    const auto budgets = by_namespace_.find(pod.namespace_());
    if (budgets == by_namespace_.end()) continue;
    for (const auto& [name, budget] : budgets->second) {
      if (!budget.selector.Matches(pod.labels())) continue;
      // Its eviction is in progress and already counted by the budget.
      if (budget.disrupted.contains(pod.name())) continue;
      // Decrements every budget that counts the pod, also after the first violation.
      if (--left.try_emplace(&budget, budget.allowed).first->second < 0) violated[i] = true;
    }
  }
  return violated;
}

}  // namespace outboard::sdk
