#include "shim/kube/wire/object_kinds.h"

#include "absl/strings/str_cat.h"
#include "shim/kube/wire/from_wire_objects.h"

namespace outboard::kube {
namespace {

using google::protobuf::Message;

// Gives all conversions, which take different message types, one signature.
template <typename Wire, absl::StatusOr<ClusterObjectPtr> (*kConvert)(const Wire&)>
constexpr ObjectKind Kind(absl::string_view api_version, absl::string_view kind,
                          absl::string_view resource, bool namespaced) {
  return ObjectKind{
      api_version,
      kind,
      resource,
      namespaced,
      []() -> const Message& { return Wire::default_instance(); },
      [](const Message& message) { return kConvert(static_cast<const Wire&>(message)); }};
}

const ObjectKind kKinds[] = {
    Kind<wire::Service, ServiceFromWire>("v1", "Service", "services", true),
    Kind<wire::ReplicationController, ReplicationControllerFromWire>(
        "v1", "ReplicationController", "replicationcontrollers", true),
    Kind<wire::ReplicaSet, ReplicaSetFromWire>("apps/v1", "ReplicaSet", "replicasets", true),
    Kind<wire::StatefulSet, StatefulSetFromWire>("apps/v1", "StatefulSet", "statefulsets", true),
    Kind<wire::PodDisruptionBudget, PodDisruptionBudgetFromWire>("policy/v1", "PodDisruptionBudget",
                                                                 "poddisruptionbudgets", true),
    Kind<wire::PersistentVolume, PersistentVolumeFromWire>("v1", "PersistentVolume",
                                                           "persistentvolumes", false),
    Kind<wire::PersistentVolumeClaim, PersistentVolumeClaimFromWire>(
        "v1", "PersistentVolumeClaim", "persistentvolumeclaims", true),
    Kind<wire::StorageClass, StorageClassFromWire>("storage.k8s.io/v1", "StorageClass",
                                                   "storageclasses", false),
    Kind<wire::CSINode, CsiNodeFromWire>("storage.k8s.io/v1", "CSINode", "csinodes", false),
    Kind<wire::CSIDriver, CsiDriverFromWire>("storage.k8s.io/v1", "CSIDriver", "csidrivers", false),
    Kind<wire::CSIStorageCapacity, CsiStorageCapacityFromWire>(
        "storage.k8s.io/v1", "CSIStorageCapacity", "csistoragecapacities", true),
    Kind<wire::VolumeAttachment, VolumeAttachmentFromWire>("storage.k8s.io/v1", "VolumeAttachment",
                                                           "volumeattachments", false),
    Kind<wire::DeviceClass, DeviceClassFromWire>("resource.k8s.io/v1", "DeviceClass",
                                                 "deviceclasses", false),
};

}  // namespace

absl::string_view ObjectKind::group() const {
  const size_t slash = api_version.find('/');
  return slash == absl::string_view::npos ? absl::string_view() : api_version.substr(0, slash);
}

std::string ObjectKind::path() const {
  return absl::StrCat(group().empty() ? "/api/" : "/apis/", api_version, "/", resource);
}

absl::Span<const ObjectKind> ObjectKinds() { return kKinds; }

const ObjectKind* FindObjectKind(absl::string_view group, absl::string_view kind) {
  for (const ObjectKind& candidate : kKinds) {
    if (candidate.kind == kind && candidate.group() == group) return &candidate;
  }
  return nullptr;
}

}  // namespace outboard::kube
