// Converts Kubernetes' wire messages to the contract's objects.proto, one function per kind; see
// from_wire.h for the rules. To select a kind at run time, use object_kinds.h.
//
// Threading: pure functions.
// Errors: InvalidArgument with the object and the field's path.
#ifndef OUTBOARD_SHIM_KUBE_WIRE_FROM_WIRE_OBJECTS_H_
#define OUTBOARD_SHIM_KUBE_WIRE_FROM_WIRE_OBJECTS_H_

#include "absl/status/statusor.h"
#include "shim/kube/objects.h"
#include "shim/kube/wire/apps_v1.pb.h"
#include "shim/kube/wire/core_v1_objects.pb.h"
#include "shim/kube/wire/policy_v1.pb.h"
#include "shim/kube/wire/resource_v1.pb.h"
#include "shim/kube/wire/storage_v1.pb.h"

namespace outboard::kube {

absl::StatusOr<ClusterObjectPtr> ServiceFromWire(const wire::Service& service);
absl::StatusOr<ClusterObjectPtr> ReplicationControllerFromWire(
    const wire::ReplicationController& controller);
absl::StatusOr<ClusterObjectPtr> ReplicaSetFromWire(const wire::ReplicaSet& set);
absl::StatusOr<ClusterObjectPtr> StatefulSetFromWire(const wire::StatefulSet& set);
absl::StatusOr<ClusterObjectPtr> PodDisruptionBudgetFromWire(
    const wire::PodDisruptionBudget& budget);
absl::StatusOr<ClusterObjectPtr> DeviceClassFromWire(const wire::DeviceClass& device_class);

absl::StatusOr<ClusterObjectPtr> PersistentVolumeFromWire(const wire::PersistentVolume& volume);
absl::StatusOr<ClusterObjectPtr> PersistentVolumeClaimFromWire(
    const wire::PersistentVolumeClaim& claim);
absl::StatusOr<ClusterObjectPtr> StorageClassFromWire(const wire::StorageClass& storage_class);
absl::StatusOr<ClusterObjectPtr> CsiNodeFromWire(const wire::CSINode& node);
absl::StatusOr<ClusterObjectPtr> CsiDriverFromWire(const wire::CSIDriver& driver);
absl::StatusOr<ClusterObjectPtr> CsiStorageCapacityFromWire(
    const wire::CSIStorageCapacity& capacity);
absl::StatusOr<ClusterObjectPtr> VolumeAttachmentFromWire(const wire::VolumeAttachment& attachment);

}  // namespace outboard::kube

#endif  // OUTBOARD_SHIM_KUBE_WIRE_FROM_WIRE_OBJECTS_H_
