#include "shim/framework/disruption_budgets.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "shim/framework/selectors.h"

namespace outboard::framework {

size_t CountBudgetViolations(const std::vector<kube::PodPtr>& victims,
                             const cache::ClusterState& cluster) {
  struct Budget {
    kube::ClusterObjectPtr object;
    int64_t left;
  };
  std::vector<Budget> budgets;
  cluster.ForEachDisruptionBudget([&](const kube::ClusterObjectPtr& object) {
    const v1beta1::PodDisruptionBudget& budget = object->object.pod_disruption_budget();
    // Without requirements it counts no pods here.
    if (budget.selector().match_labels().empty() && budget.selector().match_expressions().empty())
      return;
    budgets.push_back({object, budget.disruptions_allowed()});
  });
  size_t violations = 0;
  for (const kube::PodPtr& victim : victims) {
    const v1beta1::Pod& pod = victim->pod;
    bool is_violation = false;
    for (Budget& known : budgets) {
      const v1beta1::PodDisruptionBudget& budget = known.object->object.pod_disruption_budget();
      if (budget.namespace_() != pod.namespace_() || pod.labels().empty() ||
          !Matches(budget.selector(), pod.labels()) ||
          absl::c_linear_search(budget.disrupted_pods(), pod.name()))
        continue;
      is_violation |= --known.left < 0;
    }
    violations += is_violation ? 1 : 0;
  }
  return violations;
}

}  // namespace outboard::framework
