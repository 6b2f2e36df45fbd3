// Objects other than nodes and pods, such as services and volumes, as the cache keeps them.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_CLUSTER_OBJECTS_H_
#define OUTBOARD_PLUGIN_HOST_SDK_CLUSTER_OBJECTS_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "outboard/v1beta1/objects.pb.h"

namespace outboard::sdk {

// Keys of objects within their kind.
inline std::string NamespacedKey(absl::string_view ns, absl::string_view name) {
  return absl::StrCat(ns, "/", name);
}
// For a workload: kind, namespace and name.
inline std::string WorkloadKey(absl::string_view kind, absl::string_view ns,
                               absl::string_view name) {
  return absl::StrCat(kind, "/", ns, "/", name);
}
// For a custom object: RESOURCE.VERSION.GROUP, namespace (empty if not namespaced) and name.
inline std::string CustomKey(absl::string_view resource, absl::string_view ns,
                             absl::string_view name) {
  return absl::StrCat(resource, "/", ns, "/", name);
}
// The key of an object of any kind: `namespace/name`, a workload's is WorkloadKey, a custom
// object's CustomKey, and only the name if the kind is not namespaced. Empty if the kind is
// unknown.
std::string ObjectKey(const v1beta1::ClusterObject& object);
// Names the object as the contract does. Empty if the kind is unknown.
v1beta1::ObjectReference ReferenceTo(const v1beta1::ClusterObject& object);

// All objects of the kinds of objects.proto.
//
//   const v1beta1::StorageClass* c = objects.Find<v1beta1::StorageClass>("fast");
//   objects.ForEach<v1beta1::Service>([&](const v1beta1::Service& service) { … });
//
// Plugins that look up objects by other properties keep an index (ClusterObserver).
//
// Threading: thread-compatible; the cache's thread.
// Lifetime:  objects are stable until they change; within one call of a plugin.
// Errors:    none; null if not found.
class ClusterObjects {
 public:
  template <typename T>
  const T* Find(absl::string_view key) const {
    const Map& map = Of<T>();
    auto it = map.find(key);
    return it == map.end() ? nullptr : &Get<T>(*it->second);
  }
  // In no particular order.
  template <typename T, typename Fn>
  void ForEach(Fn&& fn) const {
    for (const auto& [key, object] : Of<T>()) fn(Get<T>(*object));
  }
  template <typename T>
  size_t Count() const {
    return Of<T>().size();
  }

  // For the cache. False if the object's kind is unknown.
  bool Upsert(const v1beta1::ClusterObject& object);
  // The object with the kind and key of `object`; null if not found.
  const v1beta1::ClusterObject* FindSame(const v1beta1::ClusterObject& object) const;
  // By kind, namespace and name. Not by uid: the object may have been replaced meanwhile.
  bool Remove(const v1beta1::ObjectReference& reference);
  const v1beta1::ClusterObject* FindNamed(const v1beta1::ObjectReference& reference) const;
  void Clear();
  template <typename Fn>
  void ForEachObject(Fn&& fn) const {
    for (const Map& map : maps_) {
      for (const auto& [key, object] : map) fn(*object);
    }
  }

  // The object of type T in `object`, which must hold one.
  template <typename T>
  static const T& Get(const v1beta1::ClusterObject& object);

 private:
  using Map = absl::flat_hash_map<std::string, std::unique_ptr<v1beta1::ClusterObject>>;
  static constexpr size_t kKinds = 16;

  template <typename T>
  static v1beta1::ClusterObject::ObjectCase KindOf();
  template <typename T>
  const Map& Of() const {
    return maps_[KindOf<T>()];
  }

  std::array<Map, kKinds> maps_;  // By ObjectCase.
};

#define OUTBOARD_CLUSTER_OBJECT(Type, field, kCase)                                       \
  template <>                                                                             \
  inline const v1beta1::Type& ClusterObjects::Get(const v1beta1::ClusterObject& object) { \
    return object.field();                                                                \
  }                                                                                       \
  template <>                                                                             \
  inline v1beta1::ClusterObject::ObjectCase ClusterObjects::KindOf<v1beta1::Type>() {     \
    return v1beta1::ClusterObject::kCase;                                                 \
  }
OUTBOARD_CLUSTER_OBJECT(Service, service, kService)
OUTBOARD_CLUSTER_OBJECT(PodController, pod_controller, kPodController)
OUTBOARD_CLUSTER_OBJECT(PodDisruptionBudget, pod_disruption_budget, kPodDisruptionBudget)
OUTBOARD_CLUSTER_OBJECT(PersistentVolume, persistent_volume, kPersistentVolume)
OUTBOARD_CLUSTER_OBJECT(PersistentVolumeClaim, persistent_volume_claim, kPersistentVolumeClaim)
OUTBOARD_CLUSTER_OBJECT(StorageClass, storage_class, kStorageClass)
OUTBOARD_CLUSTER_OBJECT(CsiNode, csi_node, kCsiNode)
OUTBOARD_CLUSTER_OBJECT(CsiDriver, csi_driver, kCsiDriver)
OUTBOARD_CLUSTER_OBJECT(CsiStorageCapacity, csi_storage_capacity, kCsiStorageCapacity)
OUTBOARD_CLUSTER_OBJECT(VolumeAttachment, volume_attachment, kVolumeAttachment)
OUTBOARD_CLUSTER_OBJECT(DeviceClass, device_class, kDeviceClass)
OUTBOARD_CLUSTER_OBJECT(GenericObject, generic_object, kGenericObject)
#undef OUTBOARD_CLUSTER_OBJECT

}  // namespace outboard::sdk

#endif  // OUTBOARD_PLUGIN_HOST_SDK_CLUSTER_OBJECTS_H_
