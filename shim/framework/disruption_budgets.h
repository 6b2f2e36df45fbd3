// Counts evictions that break PodDisruptionBudgets.
#ifndef OUTBOARD_SHIM_FRAMEWORK_DISRUPTION_BUDGETS_H_
#define OUTBOARD_SHIM_FRAMEWORK_DISRUPTION_BUDGETS_H_

#include <cstddef>
#include <vector>

#include "shim/cache/cluster_state.h"
#include "shim/kube/objects.h"

namespace outboard::framework {

// How many of these evictions break a budget, charged in this order, as kube-scheduler counts them.
// It prefers victims without, and does not promise it. Pure.
size_t CountBudgetViolations(const std::vector<kube::PodPtr>& victims,
                             const cache::ClusterState& cluster);

}  // namespace outboard::framework

#endif  // OUTBOARD_SHIM_FRAMEWORK_DISRUPTION_BUDGETS_H_
