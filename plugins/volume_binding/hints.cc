#include "plugins/volume_binding/hints.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "plugin_host/sdk/volumes.h"

namespace outboard::volume_binding {
namespace {

bool SameRequirement(const v1beta1::SelectorRequirement& a, const v1beta1::SelectorRequirement& b) {
  return a.key() == b.key() &&
         std::equal(a.values().begin(), a.values().end(), b.values().begin(), b.values().end());
}

// Includes the order, as in kube-scheduler.
bool SameTopologies(const v1beta1::StorageClass& a, const v1beta1::StorageClass& b) {
  return std::equal(a.allowed_topologies().begin(), a.allowed_topologies().end(),
                    b.allowed_topologies().begin(), b.allowed_topologies().end(),
                    [](const auto& x, const auto& y) {
                      return std::equal(x.match_expressions().begin(), x.match_expressions().end(),
                                        y.match_expressions().begin(), y.match_expressions().end(),
                                        SameRequirement);
                    });
}

bool SameMigration(const v1beta1::CsiNode& a, const v1beta1::CsiNode& b) {
  return std::equal(a.migrated_plugins().begin(), a.migrated_plugins().end(),
                    b.migrated_plugins().begin(), b.migrated_plugins().end());
}

// The largest volume that can be provisioned; nullopt: unknown.
std::optional<int64_t> VolumeLimit(const v1beta1::CsiStorageCapacity& capacity) {
  if (capacity.has_maximum_volume_bytes()) return capacity.maximum_volume_bytes();
  if (capacity.has_capacity_bytes()) return capacity.capacity_bytes();
  return std::nullopt;
}

bool LimitGrew(const v1beta1::CsiStorageCapacity& before,
               const v1beta1::CsiStorageCapacity& after) {
  const std::optional<int64_t> had = VolumeLimit(before);
  const std::optional<int64_t> has = VolumeLimit(after);
  return has && (!had || *has > *had);
}

// Whether the driver of an inline volume of the pod stopped reporting its capacity.
bool StoppedLimiting(const v1beta1::Pod& pod, const v1beta1::CsiDriver& before,
                     const v1beta1::CsiDriver& after) {
  return before.storage_capacity() && !after.storage_capacity() &&
         std::any_of(pod.volumes().begin(), pod.volumes().end(), [&](const auto& volume) {
           return volume.source() == "csi" && volume.csi_driver() == after.name();
         });
}

bool AfterUpdate(const v1beta1::Pod& pod, const v1beta1::ClusterObject& before,
                 const v1beta1::ClusterObject& after) {
  switch (after.object_case()) {
    case v1beta1::ClusterObject::kStorageClass:
      return !SameTopologies(before.storage_class(), after.storage_class());
    case v1beta1::ClusterObject::kCsiNode:
      return !SameMigration(before.csi_node(), after.csi_node());
    case v1beta1::ClusterObject::kCsiStorageCapacity:
      return LimitGrew(before.csi_storage_capacity(), after.csi_storage_capacity());
    case v1beta1::ClusterObject::kCsiDriver:
      return StoppedLimiting(pod, before.csi_driver(), after.csi_driver());
    default:
      return true;  // A PersistentVolume.
  }
}

}  // namespace

sdk::Hint HintOf(const v1beta1::Pod& pod, const sdk::ObjectChange& change) {
  bool helps = true;
  if (change.new_object != nullptr && change.new_object->has_persistent_volume_claim()) {
    helps = sdk::UsesClaim(pod, change.new_object->persistent_volume_claim());
  } else if (change.new_object != nullptr && change.old_object != nullptr) {
    helps = AfterUpdate(pod, *change.old_object, *change.new_object);
  }
  return helps ? sdk::Hint::kQueue : sdk::Hint::kSkip;
}

}  // namespace outboard::volume_binding
