#include "plugin_host/sdk/cluster_objects.h"

#include <algorithm>
#include <iterator>

namespace outboard::sdk {

using v1beta1::ClusterObject;
using v1beta1::ObjectReference;

namespace {

// A kind with a message of its own, as references name it.
struct Kind {
  absl::string_view name;
  ClusterObject::ObjectCase object_case;
  bool is_namespaced;
};
constexpr Kind kKinds[] = {
    {"Service", ClusterObject::kService, true},
    {"ReplicationController", ClusterObject::kPodController, true},
    {"ReplicaSet", ClusterObject::kPodController, true},
    {"StatefulSet", ClusterObject::kPodController, true},
    {"PodDisruptionBudget", ClusterObject::kPodDisruptionBudget, true},
    {"PersistentVolume", ClusterObject::kPersistentVolume, false},
    {"PersistentVolumeClaim", ClusterObject::kPersistentVolumeClaim, true},
    {"StorageClass", ClusterObject::kStorageClass, false},
    {"CSINode", ClusterObject::kCsiNode, false},
    {"CSIDriver", ClusterObject::kCsiDriver, false},
    {"CSIStorageCapacity", ClusterObject::kCsiStorageCapacity, true},
    {"VolumeAttachment", ClusterObject::kVolumeAttachment, false},
    {"DeviceClass", ClusterObject::kDeviceClass, false},
};

// Null: the resource of a GenericObject, or a kind of a later contract.
const Kind* FindKind(absl::string_view name) {
  const Kind* kind = std::find_if(std::begin(kKinds), std::end(kKinds),
                                  [&](const Kind& known) { return known.name == name; });
  return kind == std::end(kKinds) ? nullptr : kind;
}

ClusterObject::ObjectCase CaseOf(const ObjectReference& reference) {
  const Kind* kind = FindKind(reference.kind());
  return kind == nullptr ? ClusterObject::kGenericObject : kind->object_case;
}

std::string KeyOf(const ObjectReference& reference) {
  const Kind* kind = FindKind(reference.kind());
  if (kind == nullptr) return CustomKey(reference.kind(), reference.namespace_(), reference.name());
  if (kind->object_case == ClusterObject::kPodController)
    return WorkloadKey(reference.kind(), reference.namespace_(), reference.name());
  return kind->is_namespaced ? NamespacedKey(reference.namespace_(), reference.name())
                             : reference.name();
}

template <typename T>
ObjectReference MakeReference(const std::string& kind, const T& object) {
  ObjectReference reference;
  reference.set_kind(kind);
  if constexpr (requires { object.namespace_(); }) reference.set_namespace_(object.namespace_());
  reference.set_name(object.name());
  if constexpr (requires { object.uid(); }) reference.set_uid(object.uid());
  return reference;
}

}  // namespace

ObjectReference ReferenceTo(const ClusterObject& object) {
  switch (object.object_case()) {
    case ClusterObject::kService:
      return MakeReference("Service", object.service());
    case ClusterObject::kPodController:
      return MakeReference(object.pod_controller().kind(), object.pod_controller());
    case ClusterObject::kPodDisruptionBudget:
      return MakeReference("PodDisruptionBudget", object.pod_disruption_budget());
    case ClusterObject::kPersistentVolume:
      return MakeReference("PersistentVolume", object.persistent_volume());
    case ClusterObject::kPersistentVolumeClaim:
      return MakeReference("PersistentVolumeClaim", object.persistent_volume_claim());
    case ClusterObject::kStorageClass:
      return MakeReference("StorageClass", object.storage_class());
    case ClusterObject::kCsiNode:
      return MakeReference("CSINode", object.csi_node());
    case ClusterObject::kCsiDriver:
      return MakeReference("CSIDriver", object.csi_driver());
    case ClusterObject::kCsiStorageCapacity:
      return MakeReference("CSIStorageCapacity", object.csi_storage_capacity());
    case ClusterObject::kVolumeAttachment:
      return MakeReference("VolumeAttachment", object.volume_attachment());
    case ClusterObject::kDeviceClass:
      return MakeReference("DeviceClass", object.device_class());
    case ClusterObject::kGenericObject:
      return MakeReference(object.generic_object().resource(), object.generic_object());
    case ClusterObject::OBJECT_NOT_SET:
      return ObjectReference();
  }
  return ObjectReference();
}

std::string ObjectKey(const ClusterObject& object) {
  return object.object_case() == ClusterObject::OBJECT_NOT_SET ? "" : KeyOf(ReferenceTo(object));
}

bool ClusterObjects::Upsert(const ClusterObject& object) {
  std::string key = ObjectKey(object);
  if (key.empty()) return false;
  std::unique_ptr<ClusterObject>& stored = maps_[object.object_case()][std::move(key)];
  if (stored == nullptr) stored = std::make_unique<ClusterObject>();
  *stored = object;
  return true;
}

bool ClusterObjects::Remove(const ObjectReference& reference) {
  return maps_[CaseOf(reference)].erase(KeyOf(reference)) > 0;
}

const ClusterObject* ClusterObjects::FindSame(const ClusterObject& object) const {
  const Map& map = maps_[object.object_case()];
  auto it = map.find(ObjectKey(object));
  return it == map.end() ? nullptr : it->second.get();
}

const ClusterObject* ClusterObjects::FindNamed(const ObjectReference& reference) const {
  const Map& map = maps_[CaseOf(reference)];
  auto it = map.find(KeyOf(reference));
  return it == map.end() ? nullptr : it->second.get();
}

void ClusterObjects::Clear() {
  for (Map& map : maps_) map.clear();
}

}  // namespace outboard::sdk
