#include "plugins/gpu_model_match/node_topologies.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "plugins/gpu_model_match/numa_requests.h"

namespace outboard::gpu_model_match {

void NodeTopologies::Set(const v1beta1::GenericObject& object, bool changed,
                         sdk::MalformedValues* malformed) {
  std::unique_ptr<Known>& known = known_[object.name()];
  if (known == nullptr) known = std::make_unique<Known>();
  known->object = ReadNumaObject(object);
  known->until = absl::InfinitePast();
  const std::string named = absl::StrCat("NodeResourceTopology ", object.name());
  malformed->Forget(named);
  if (const auto& bad = known->object.malformed)
    malformed->Warn(named, bad->field, bad->value, bad->wanted);
  const std::optional<sdk::NodeView> node = cluster_.FindNode(object.name());
  if (!node.has_value()) return;
  SetNode(node->slot());
  if (!changed) return;
  known->has.clear();
  for (const sdk::PodRecord* pod : node->pods()) {
    if (pod->pod.start_unix_seconds() > 0) known->has.insert(pod->pod.uid());
  }
}

void NodeTopologies::Remove(const std::string& name) {
  const auto found = known_.find(name);
  if (found == known_.end()) return;
  std::replace(by_slot_.begin(), by_slot_.end(), found->second.get(), static_cast<Known*>(nullptr));
  known_.erase(found);
}

void NodeTopologies::SetNode(sdk::Slot slot) {
  if (slot >= by_slot_.size()) by_slot_.resize(slot + 1, nullptr);
  const auto found = known_.find(cluster_.node(slot).name());
  by_slot_[slot] = found == known_.end() ? nullptr : found->second.get();
}

void NodeTopologies::RemoveNode(sdk::Slot slot) {
  if (slot < by_slot_.size()) by_slot_[slot] = nullptr;
}

void NodeTopologies::Clear() {
  known_.clear();
  by_slot_.clear();
}

NodeTopologies::Found NodeTopologies::Find(const sdk::NodeTable& nodes, sdk::Slot slot,
                                           absl::Time now) {
  Known* known = slot < by_slot_.size() ? by_slot_[slot] : nullptr;
  if (known == nullptr) return {nullptr, nullptr};
  if (known->generation != nodes.generation[slot] || now >= known->until)
    Compute(nodes, slot, now, known);
  return {&known->object.topology, &known->available};
}

NodeTopologies::Found NodeTopologies::FindObject(const std::string& node_name) const {
  const auto found = known_.find(node_name);
  if (found == known_.end()) return {nullptr, nullptr};
  return {&found->second->object.topology, &found->second->object.available};
}

bool NodeTopologies::Has(const Known& known, const v1beta1::Pod& pod, absl::Time now) const {
  if (pod.start_unix_seconds() <= 0) return false;
  return known.has.contains(pod.uid()) ||
         now >= absl::FromUnixSeconds(pod.start_unix_seconds()) + options_.update_period;
}

void NodeTopologies::Compute(const sdk::NodeTable& nodes, sdk::Slot slot, absl::Time now,
                             Known* known) const {
  known->generation = nodes.generation[slot];
  known->until = absl::InfiniteFuture();
  known->available = known->object.available;
  std::vector<const v1beta1::Pod*> missing;
  for (const sdk::PodRecord* record : nodes.pods[slot]) {
    const v1beta1::Pod& pod = record->pod;
    if (Has(*known, pod, now)) continue;
    missing.push_back(&pod);
    if (pod.start_unix_seconds() <= 0) continue;
    known->until = std::min(
        known->until, absl::FromUnixSeconds(pod.start_unix_seconds()) + options_.update_period);
  }
  // The kubelet admits pods in the order in which it sees them; that of their creation is close,
  // and does not depend on the order in which the cache learned of them.
  std::sort(missing.begin(), missing.end(), [](const v1beta1::Pod* a, const v1beta1::Pod* b) {
    return std::pair(a->creation_unix_seconds(), a->uid()) <
           std::pair(b->creation_unix_seconds(), b->uid());
  });
  const NumaTopology& topology = known->object.topology;
  for (const v1beta1::Pod* pod : missing) {
    const NumaRequests requests = NumaRequestsOf(*pod);
    if (requests.empty()) continue;
    if (options_.every_zone) {
      TakeFromEveryZone(requests, topology, &known->available);
    } else {
      TakeAsKubelet(requests, topology, &known->available);
    }
  }
}

}  // namespace outboard::gpu_model_match
