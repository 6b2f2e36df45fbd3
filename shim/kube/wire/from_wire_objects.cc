// Owners of pods, disruption budgets and device classes.
#include "shim/kube/wire/from_wire_objects.h"

#include <algorithm>
#include <memory>

#include "shim/kube/wire/from_wire_parts.h"

namespace outboard::kube {
namespace {

namespace api = ::outboard::v1beta1;

// A new workload; the caller sets the selector.
absl::StatusOr<std::shared_ptr<ClusterObject>> NewWorkload(absl::string_view api_version,
                                                           absl::string_view kind,
                                                           const wire::ObjectMeta& meta) {
  absl::StatusOr<std::shared_ptr<ClusterObject>> object = NewClusterObject(kind, meta);
  if (!object.ok()) return object.status();
  api::PodController* workload = (*object)->object.mutable_pod_controller();
  workload->set_api_version(std::string(api_version));
  workload->set_kind(std::string(kind));
  CopyText(meta.namespace_(), workload->mutable_namespace_());
  CopyText(meta.name(), workload->mutable_name());
  CopyText(meta.uid(), workload->mutable_uid());
  return object;
}

}  // namespace

absl::StatusOr<ClusterObjectPtr> ServiceFromWire(const wire::Service& from) {
  const wire::ObjectMeta& meta = from.metadata();
  absl::StatusOr<std::shared_ptr<ClusterObject>> object = NewClusterObject("Service", meta);
  if (!object.ok()) return object.status();
  api::Service* service = (*object)->object.mutable_service();
  CopyText(meta.namespace_(), service->mutable_namespace_());
  CopyText(meta.name(), service->mutable_name());
  CopyTexts(from.spec().selector(), service->mutable_selector());
  return *object;
}

absl::StatusOr<ClusterObjectPtr> ReplicationControllerFromWire(
    const wire::ReplicationController& from) {
  auto object = NewWorkload("v1", "ReplicationController", from.metadata());
  if (!object.ok()) return object.status();
  CopyTexts(from.spec().selector(),
            (*object)->object.mutable_pod_controller()->mutable_selector()->mutable_match_labels());
  return *object;
}

absl::StatusOr<ClusterObjectPtr> ReplicaSetFromWire(const wire::ReplicaSet& from) {
  auto object = NewWorkload("apps/v1", "ReplicaSet", from.metadata());
  if (!object.ok()) return object.status();
  if (from.spec().has_selector()) {
    ConvertLabelSelector(from.spec().selector(),
                         (*object)->object.mutable_pod_controller()->mutable_selector());
  }
  return *object;
}

absl::StatusOr<ClusterObjectPtr> StatefulSetFromWire(const wire::StatefulSet& from) {
  auto object = NewWorkload("apps/v1", "StatefulSet", from.metadata());
  if (!object.ok()) return object.status();
  if (from.spec().has_selector()) {
    ConvertLabelSelector(from.spec().selector(),
                         (*object)->object.mutable_pod_controller()->mutable_selector());
  }
  return *object;
}

absl::StatusOr<ClusterObjectPtr> PodDisruptionBudgetFromWire(
    const wire::PodDisruptionBudget& from) {
  const wire::ObjectMeta& meta = from.metadata();
  auto object = NewClusterObject("PodDisruptionBudget", meta);
  if (!object.ok()) return object.status();
  api::PodDisruptionBudget* budget = (*object)->object.mutable_pod_disruption_budget();
  CopyText(meta.namespace_(), budget->mutable_namespace_());
  CopyText(meta.name(), budget->mutable_name());
  if (from.spec().has_selector()) {
    ConvertLabelSelector(from.spec().selector(), budget->mutable_selector());
  }
  budget->set_disruptions_allowed(from.status().disruptionsallowed());
  for (const auto& [pod, time] : from.status().disruptedpods())
    CopyText(pod, budget->add_disrupted_pods());
  // Maps are unordered: sort, so that an unchanged object compares equal.
  std::sort(budget->mutable_disrupted_pods()->begin(), budget->mutable_disrupted_pods()->end());
  return *object;
}

absl::StatusOr<ClusterObjectPtr> DeviceClassFromWire(const wire::DeviceClass& from) {
  const wire::ObjectMeta& meta = from.metadata();
  auto object = NewClusterObject("DeviceClass", meta);
  if (!object.ok()) return object.status();
  api::DeviceClass* device_class = (*object)->object.mutable_device_class();
  CopyText(meta.name(), device_class->mutable_name());
  CopyText(from.spec().extendedresourcename(), device_class->mutable_extended_resource_name());
  return *object;
}

}  // namespace outboard::kube
