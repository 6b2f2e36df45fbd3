#include "shim/cache/cluster_events.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_split.h"
#include "shim/cache/contract_content.h"
#include "shim/cache/node_guard.h"

namespace outboard::cache {
namespace {

using queue::ClusterEvent;

template <typename Map>
bool SameMap(const Map& a, const Map& b) {
  if (a.size() != b.size()) return false;
  return std::all_of(a.begin(), a.end(), [&](const auto& entry) {
    const auto it = b.find(entry.first);
    return it != b.end() && it->second == entry.second;
  });
}

bool SameConditions(const std::string& a, const std::string& b) {
  if (a == b) return true;
  std::vector<absl::string_view> x = absl::StrSplit(a, ',');
  std::vector<absl::string_view> y = absl::StrSplit(b, ',');
  std::sort(x.begin(), x.end());
  std::sort(y.begin(), y.end());
  return x == y;
}

bool SameTaints(const v1beta1::Node& a, const v1beta1::Node& b) {
  return std::equal(a.taints().begin(), a.taints().end(), b.taints().begin(), b.taints().end(),
                    [](const auto& x, const auto& y) {
                      return x.key() == y.key() && x.value() == y.value() &&
                             x.effect() == y.effect();
                    });
}

bool AsksForLess(const v1beta1::Pod& before, const v1beta1::Pod& after) {
  const PodDemand old_demand = DemandOf(before);
  const PodDemand new_demand = DemandOf(after);
  if (old_demand.cpu_millis > new_demand.cpu_millis ||
      old_demand.memory_bytes > new_demand.memory_bytes ||
      old_demand.ephemeral_storage_bytes > new_demand.ephemeral_storage_bytes) {
    return true;
  }
  return std::any_of(
      old_demand.extended.begin(), old_demand.extended.end(), [&](const auto& old_entry) {
        const auto it =
            std::find_if(new_demand.extended.begin(), new_demand.extended.end(),
                         [&](const auto& entry) { return entry.first == old_entry.first; });
        return it == new_demand.extended.end() || it->second < old_entry.second;
      });
}

}  // namespace

std::vector<ClusterEvent> NodeUpdateEvents(const kube::NodeObject& before,
                                           const kube::NodeObject& after) {
  std::vector<ClusterEvent> events;
  const v1beta1::Node& a = before.node;
  const v1beta1::Node& b = after.node;
  const auto add = [&](queue::Action action) { events.push_back(queue::NodeEvent(action)); };
  // Uncordoning removes the effect of a taint; cordoning helps no pod.
  if (a.unschedulable() && !b.unschedulable()) add(queue::kUpdateNodeTaint);
  if (!SameMessage(a.allocatable(), b.allocatable())) add(queue::kUpdateNodeAllocatable);
  if (!SameMap(a.labels(), b.labels())) add(queue::kUpdateNodeLabel);
  if (!SameTaints(a, b)) add(queue::kUpdateNodeTaint);
  if (!SameConditions(before.conditions, after.conditions)) add(queue::kUpdateNodeCondition);
  if (!SameMap(a.annotations(), b.annotations())) add(queue::kUpdateNodeAnnotation);
  if (!std::equal(a.declared_features().begin(), a.declared_features().end(),
                  b.declared_features().begin(), b.declared_features().end())) {
    add(queue::kUpdateNodeDeclaredFeature);
  }
  return events;
}

std::vector<ClusterEvent> PodUpdateEvents(const kube::PodObject& before,
                                          const kube::PodObject& after) {
  std::vector<ClusterEvent> events;
  const v1beta1::Pod& a = before.pod;
  const v1beta1::Pod& b = after.pod;
  const std::string resource(b.node_name().empty() ? queue::kUnscheduledPod : queue::kAssignedPod);
  const auto add = [&](queue::Action action) {
    events.push_back({.resource = resource, .actions = action, .custom_label = ""});
  };
  if (!SameMap(a.labels(), b.labels())) add(queue::kUpdatePodLabel);
  if (AsksForLess(a, b)) add(queue::kUpdatePodScaleDown);
  if (b.scheduling_gates().empty() && !a.scheduling_gates().empty()) {
    add(queue::kUpdatePodSchedulingGatesEliminated);
  }
  // Tolerations can only be added.
  if (a.tolerations_size() != b.tolerations_size()) add(queue::kUpdatePodToleration);
  if (events.empty() && !SameSpec(a, b)) add(queue::kUpdate);
  return events;
}

std::optional<ClusterEvent> ObjectEvent(const kube::ClusterObject& object, queue::Action action) {
  using Object = v1beta1::ClusterObject;
  switch (object.object.object_case()) {
    case Object::kPersistentVolume:
    case Object::kPersistentVolumeClaim:
    case Object::kStorageClass:
    case Object::kCsiNode:
    case Object::kCsiDriver:
    case Object::kCsiStorageCapacity:
    case Object::kVolumeAttachment:
    case Object::kDeviceClass:
    case Object::kGenericObject:
      return ClusterEvent{
          .resource = kube::KindOf(object.object), .actions = action, .custom_label = ""};
    default:
      return std::nullopt;
  }
}

}  // namespace outboard::cache
