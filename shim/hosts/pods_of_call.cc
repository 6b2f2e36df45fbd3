#include "shim/hosts/pods_of_call.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "shim/cache/node_guard.h"

namespace outboard::hosts {

void FillRequested(const std::vector<kube::PodPtr>& pods, v1beta1::ResourceList* out) {
  cache::NodeUsage usage;
  for (const kube::PodPtr& pod : pods) usage.Add(cache::DemandOf(pod->pod));
  usage.FillList(out);
}

absl::Status ForEachSimulated(
    const cache::ClusterState& cluster, const v1beta1::NodeSimulation& simulation,
    absl::FunctionRef<void(uint32_t slot, const std::vector<kube::PodPtr>& pods)> visit) {
  std::vector<kube::PodPtr> pods;
  for (const v1beta1::SimulatedNode& simulated : simulation.nodes()) {
    if (cluster.NodeAt(simulated.slot()) == nullptr) return NoNodeIn(simulated.slot());
    if (!simulated.continues()) {
      pods.clear();
      cluster.ForEachPodOn(simulated.slot(),
                           [&](const kube::PodPtr& other) { pods.push_back(other); });
    }
    for (const std::string& uid : simulated.removed_pod_uids()) {
      std::erase_if(pods, [&](const kube::PodPtr& other) { return other->uid() == uid; });
    }
    for (const std::string& uid : simulated.added_pod_uids()) {
      if (kube::PodPtr other = cluster.FindPod(uid); other != nullptr)
        pods.push_back(std::move(other));
    }
    visit(simulated.slot(), pods);
  }
  return absl::OkStatus();
}

absl::Status NoNodeIn(uint32_t slot) {
  return absl::InternalError(absl::StrCat("no node is in slot ", slot));
}

}  // namespace outboard::hosts
