#include "plugin_host/sdk/cluster_objects.h"

namespace outboard::sdk {

using v1beta1::ClusterObject;

std::string ObjectKey(const ClusterObject& object) {
  switch (object.object_case()) {
    case ClusterObject::kService:
      return NamespacedKey(object.service().namespace_(), object.service().name());
    case ClusterObject::kPodController: {
      const v1beta1::PodController& workload = object.pod_controller();
      return WorkloadKey(workload.kind(), workload.namespace_(), workload.name());
    }
    case ClusterObject::kPodDisruptionBudget:
      return NamespacedKey(object.pod_disruption_budget().namespace_(),
                           object.pod_disruption_budget().name());
    case ClusterObject::kPersistentVolume:
      return object.persistent_volume().name();
    case ClusterObject::kPersistentVolumeClaim:
      return NamespacedKey(object.persistent_volume_claim().namespace_(),
                           object.persistent_volume_claim().name());
    case ClusterObject::kStorageClass:
      return object.storage_class().name();
    case ClusterObject::kCsiNode:
      return object.csi_node().name();
    case ClusterObject::kCsiDriver:
      return object.csi_driver().name();
    case ClusterObject::kCsiStorageCapacity:
      return NamespacedKey(object.csi_storage_capacity().namespace_(),
                           object.csi_storage_capacity().name());
    case ClusterObject::kVolumeAttachment:
      return object.volume_attachment().name();
    case ClusterObject::kDeviceClass:
      return object.device_class().name();
    case ClusterObject::kGenericObject: {
      const v1beta1::GenericObject& custom = object.generic_object();
      return CustomKey(custom.resource(), custom.namespace_(), custom.name());
    }
    case ClusterObject::OBJECT_NOT_SET:
      return "";
  }
  return "";
}

bool ClusterObjects::Upsert(const ClusterObject& object) {
  std::string key = ObjectKey(object);
  if (key.empty()) return false;
  std::unique_ptr<ClusterObject>& stored = maps_[object.object_case()][std::move(key)];
  if (stored == nullptr) stored = std::make_unique<ClusterObject>();
  *stored = object;
  return true;
}

bool ClusterObjects::Remove(const ClusterObject& named) {
  return maps_[named.object_case()].erase(ObjectKey(named)) > 0;
}

const ClusterObject* ClusterObjects::FindSame(const ClusterObject& named) const {
  const Map& map = maps_[named.object_case()];
  auto it = map.find(ObjectKey(named));
  return it == map.end() ? nullptr : it->second.get();
}

void ClusterObjects::Clear() {
  for (Map& map : maps_) map.clear();
}

}  // namespace outboard::sdk
