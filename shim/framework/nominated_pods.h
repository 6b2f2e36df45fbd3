// Which nodes Filter evaluates twice for a pod, as questions name them.
#ifndef OUTBOARD_SHIM_FRAMEWORK_NOMINATED_PODS_H_
#define OUTBOARD_SHIM_FRAMEWORK_NOMINATED_PODS_H_

#include <vector>

#include "absl/types/span.h"
#include "outboard/v1beta1/filter.pb.h"
#include "shim/cache/cluster_state.h"
#include "shim/kube/objects.h"

namespace outboard::framework {

// The nodes with nominated pods that count when `pod` is evaluated, ascending by slot. Pure.
std::vector<v1beta1::NominatedPods> NominatedBeside(const cache::ClusterState& cluster,
                                                    const kube::PodObject& pod);

// Adds to a question those of its nodes that are in `all`. Pure.
void AddNominated(absl::Span<const v1beta1::NominatedPods> all, v1beta1::NodeSearch* search);
void AddNominated(absl::Span<const v1beta1::NominatedPods> all,
                  v1beta1::NodeSimulation* simulation);

}  // namespace outboard::framework

#endif  // OUTBOARD_SHIM_FRAMEWORK_NOMINATED_PODS_H_
