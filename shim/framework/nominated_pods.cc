#include "shim/framework/nominated_pods.h"

#include <algorithm>
#include <cstdint>

#include "absl/container/flat_hash_set.h"

namespace outboard::framework {

using v1beta1::NominatedPods;

std::vector<NominatedPods> NominatedBeside(const cache::ClusterState& cluster,
                                           const kube::PodObject& pod) {
  std::vector<NominatedPods> all;
  for (const auto& [slot, others] : cluster.NominatedBeside(pod)) {
    NominatedPods& node = all.emplace_back();
    node.set_slot(slot);
    for (const kube::PodPtr& other : others) node.add_pod_uids(other->uid());
  }
  std::sort(all.begin(), all.end(),
            [](const NominatedPods& a, const NominatedPods& b) { return a.slot() < b.slot(); });
  return all;
}

void AddNominated(absl::Span<const NominatedPods> all, v1beta1::NodeSearch* search) {
  if (all.empty()) return;
  const absl::flat_hash_set<uint32_t> slots(search->nodes().slots().begin(),
                                            search->nodes().slots().end());
  for (const NominatedPods& node : all) {
    if (!search->has_nodes() || slots.contains(node.slot())) *search->add_nominated() = node;
  }
}

void AddNominated(absl::Span<const NominatedPods> all, v1beta1::NodeSimulation* simulation) {
  if (all.empty()) return;
  absl::flat_hash_set<uint32_t> slots;
  for (const v1beta1::SimulatedNode& node : simulation->nodes()) slots.insert(node.slot());
  for (const NominatedPods& node : all) {
    if (slots.contains(node.slot())) *simulation->add_nominated() = node;
  }
}

}  // namespace outboard::framework
