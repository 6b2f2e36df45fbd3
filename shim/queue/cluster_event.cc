#include "shim/queue/cluster_event.h"

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"

namespace outboard::queue {
namespace {

constexpr int kLastAction = v1beta1::ClusterEvent::ACTION_UPDATE_NODE_DECLARED_FEATURE;

absl::string_view ActionLabel(uint32_t actions) {
  switch (actions) {
    case kAdd:
      return "Add";
    case kDelete:
      return "Delete";
    case kUpdateNodeAllocatable:
      return "UpdateNodeAllocatable";
    case kUpdateNodeLabel:
      return "UpdateNodeLabel";
    case kUpdateNodeTaint:
      return "UpdateNodeTaint";
    case kUpdateNodeCondition:
      return "UpdateNodeCondition";
    case kUpdateNodeAnnotation:
      return "UpdateNodeAnnotation";
    case kUpdatePodLabel:
      return "UpdatePodLabel";
    case kUpdatePodScaleDown:
      return "UpdatePodScaleDown";
    case kUpdatePodToleration:
      return "UpdatePodToleration";
    case kUpdatePodSchedulingGatesEliminated:
      return "UpdatePodSchedulingGatesEliminated";
    case kUpdate:
      return "Update";
    case kUpdateNodeDeclaredFeature:
      return "UpdateNodeDeclaredFeature";
    case kAllActions:
      return "All";
    default:
      return "";
  }
}

// kube-scheduler's resource names in labels: with the API group, except for the core group.
// Registrations and the contract omit all groups.
std::string ResourceLabel(absl::string_view resource) {
  static const auto& groups = *new absl::flat_hash_map<absl::string_view, absl::string_view>{
      {"CSINode", "storage.k8s.io/"},
      {"CSIDriver", "storage.k8s.io/"},
      {"CSIStorageCapacity", "storage.k8s.io/"},
      {"StorageClass", "storage.k8s.io/"},
      {"VolumeAttachment", "storage.k8s.io/"},
      {"DeviceClass", "resource.k8s.io/"},
      {"ResourceClaim", "resource.k8s.io/"},
      {"ResourceSlice", "resource.k8s.io/"}};
  if (resource == kUnscheduledPod) return "UnschedulablePod";
  const auto it = groups.find(resource);
  return absl::StrCat(it == groups.end() ? "" : it->second, resource);
}

bool ResourceMatches(absl::string_view registered, absl::string_view incoming) {
  return registered == kAnyResource || registered == incoming ||
         (registered == kPod && (incoming == kAssignedPod || incoming == kUnscheduledPod));
}

ClusterEvent Make(absl::string_view resource, uint32_t actions) {
  return {.resource = std::string(resource), .actions = actions, .custom_label = ""};
}

}  // namespace

std::string ClusterEvent::Label() const {
  if (!custom_label.empty()) return custom_label;
  return absl::StrCat(ResourceLabel(resource), ActionLabel(actions));
}

ClusterEvent AssignedPodAdd() { return Make(kAssignedPod, kAdd); }
ClusterEvent AssignedPodDelete() { return Make(kAssignedPod, kDelete); }
ClusterEvent UnscheduledPodAdd() { return Make(kUnscheduledPod, kAdd); }
ClusterEvent NodeEvent(Action action) { return Make(kNode, action); }

bool IsKnownAction(int action) {
  return action >= v1beta1::ClusterEvent::ACTION_ADD && action <= kLastAction;
}

ClusterEvent FromContract(const v1beta1::ClusterEvent& event) {
  ClusterEvent result = Make(event.resource(), kNoAction);
  for (const int action : event.actions()) {
    result.actions |=
        IsKnownAction(action) ? 1u << (action - v1beta1::ClusterEvent::ACTION_ADD) : kAllActions;
  }
  return result;
}

v1beta1::ClusterEvent ToContract(const ClusterEvent& event) {
  v1beta1::ClusterEvent result;
  result.set_resource(event.resource);
  for (int action = v1beta1::ClusterEvent::ACTION_ADD; action <= kLastAction; ++action) {
    if ((event.actions & (1u << (action - v1beta1::ClusterEvent::ACTION_ADD))) != 0) {
      result.add_actions(static_cast<v1beta1::ClusterEvent::Action>(action));
    }
  }
  return result;
}

bool Matches(const ClusterEvent& registered, const ClusterEvent& incoming) {
  if (registered.is_wildcard()) return true;
  // An incoming wildcard is a command to move pods; it matches no ordinary registration.
  if (incoming.is_wildcard()) return false;
  return (registered.actions & incoming.actions) != 0 &&
         ResourceMatches(registered.resource, incoming.resource);
}

}  // namespace outboard::queue
