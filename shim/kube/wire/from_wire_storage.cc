// Volumes, claims and objects of CSI drivers.
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "shim/kube/wire/csi_translation.h"
#include "shim/kube/wire/from_wire_objects.h"
#include "shim/kube/wire/from_wire_parts.h"
#include "shim/kube/wire/quantity.h"

namespace outboard::kube {
namespace {

namespace api = ::outboard::v1beta1;

// Takes precedence over the field storageClassName. Present but empty: no class.
constexpr char kClassAnnotation[] = "volume.beta.kubernetes.io/storage-class";
constexpr char kBoundByController[] = "pv.kubernetes.io/bound-by-controller";
constexpr char kBindCompleted[] = "pv.kubernetes.io/bind-completed";
constexpr char kSelectedNode[] = "volume.kubernetes.io/selected-node";
constexpr char kMigratedPlugins[] = "storage.alpha.kubernetes.io/migrated-plugins";
constexpr char kStorage[] = "storage";

const std::string* FindAnnotation(const wire::ObjectMeta& meta, const char* key) {
  const auto it = meta.annotations().find(key);
  return it == meta.annotations().end() ? nullptr : &it->second;
}

void CopyClass(const wire::ObjectMeta& meta, const std::string& field, std::string* to) {
  const std::string* annotation = FindAnnotation(meta, kClassAnnotation);
  CopyText(annotation != nullptr ? *annotation : field, to);
}

// `path` is the quantity's path.
absl::StatusOr<int64_t> Bytes(absl::string_view path, const wire::Quantity& quantity) {
  absl::StatusOr<int64_t> bytes = QuantityValue(quantity.string());
  if (bytes.ok()) return bytes;
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", bytes.status().message()));
}

void ConvertVolumeSource(const wire::PersistentVolumeSource& source, api::PersistentVolume* to) {
  if (!source.has_csi()) return;
  CopyText(source.csi().driver(), to->mutable_csi()->mutable_driver());
  CopyText(source.csi().volumehandle(), to->mutable_csi()->mutable_volume_handle());
}

void ConvertVolumeSpec(const wire::PersistentVolumeSpec& spec, api::PersistentVolume* to) {
  CopyTexts(spec.accessmodes(), to->mutable_access_modes());
  if (spec.has_claimref()) {
    api::ClaimReference* claim = to->mutable_claim_ref();
    CopyText(spec.claimref().namespace_(), claim->mutable_namespace_());
    CopyText(spec.claimref().name(), claim->mutable_name());
    CopyText(spec.claimref().uid(), claim->mutable_uid());
  }
  CopyText(spec.volumemode(), to->mutable_volume_mode());
  if (spec.nodeaffinity().has_required()) {
    ConvertNodeSelector(spec.nodeaffinity().required(), to->mutable_node_affinity());
  }
  CopyText(spec.volumeattributesclassname(), to->mutable_volume_attributes_class_name());
  ConvertVolumeSource(spec.persistentvolumesource(), to);
}

}  // namespace

absl::StatusOr<ClusterObjectPtr> PersistentVolumeFromWire(const wire::PersistentVolume& from) {
  const wire::ObjectMeta& meta = from.metadata();
  auto object = NewClusterObject("PersistentVolume", meta);
  if (!object.ok()) return object.status();
  api::PersistentVolume* volume = (*object)->object.mutable_persistent_volume();
  CopyText(meta.name(), volume->mutable_name());
  CopyText(meta.uid(), volume->mutable_uid());
  CopyText(meta.resourceversion(), volume->mutable_resource_version());
  CopyTexts(meta.labels(), volume->mutable_labels());
  volume->set_deleting(meta.has_deletiontimestamp());
  if (const auto capacity = from.spec().capacity().find(kStorage);
      capacity != from.spec().capacity().end()) {
    absl::StatusOr<int64_t> bytes = Bytes("spec.capacity.storage", capacity->second);
    if (!bytes.ok()) return Named("PersistentVolume", meta, bytes.status());
    volume->set_capacity_bytes(*bytes);
  }
  CopyClass(meta, from.spec().storageclassname(), volume->mutable_storage_class_name());
  ConvertVolumeSpec(from.spec(), volume);
  TranslateVolume(from, volume);
  CopyText(from.status().phase(), volume->mutable_phase());
  volume->set_bound_by_controller(FindAnnotation(meta, kBoundByController) != nullptr);
  return *object;
}

absl::StatusOr<ClusterObjectPtr> PersistentVolumeClaimFromWire(
    const wire::PersistentVolumeClaim& from) {
  const wire::ObjectMeta& meta = from.metadata();
  const wire::PersistentVolumeClaimSpec& spec = from.spec();
  auto object = NewClusterObject("PersistentVolumeClaim", meta);
  if (!object.ok()) return object.status();
  api::PersistentVolumeClaim* claim = (*object)->object.mutable_persistent_volume_claim();
  CopyText(meta.namespace_(), claim->mutable_namespace_());
  CopyText(meta.name(), claim->mutable_name());
  CopyText(meta.uid(), claim->mutable_uid());
  CopyText(meta.resourceversion(), claim->mutable_resource_version());
  ConvertController(meta, claim);
  claim->set_deleting(meta.has_deletiontimestamp());
  CopyTexts(spec.accessmodes(), claim->mutable_access_modes());
  if (spec.has_selector()) ConvertLabelSelector(spec.selector(), claim->mutable_selector());
  if (const auto request = spec.resources().requests().find(kStorage);
      request != spec.resources().requests().end()) {
    absl::StatusOr<int64_t> bytes = Bytes("spec.resources.requests.storage", request->second);
    if (!bytes.ok()) return Named("PersistentVolumeClaim", meta, bytes.status());
    claim->set_request_bytes(*bytes);
  }
  CopyText(spec.volumename(), claim->mutable_volume_name());
  CopyClass(meta, spec.storageclassname(), claim->mutable_storage_class_name());
  CopyText(spec.volumemode(), claim->mutable_volume_mode());
  CopyText(from.status().phase(), claim->mutable_phase());
  claim->set_bind_completed(FindAnnotation(meta, kBindCompleted) != nullptr);
  if (const std::string* node = FindAnnotation(meta, kSelectedNode)) {
    CopyText(*node, claim->mutable_selected_node());
  }
  CopyText(spec.volumeattributesclassname(), claim->mutable_volume_attributes_class_name());
  return *object;
}

absl::StatusOr<ClusterObjectPtr> StorageClassFromWire(const wire::StorageClass& from) {
  const wire::ObjectMeta& meta = from.metadata();
  auto object = NewClusterObject("StorageClass", meta);
  if (!object.ok()) return object.status();
  api::StorageClass* storage_class = (*object)->object.mutable_storage_class();
  CopyText(meta.name(), storage_class->mutable_name());
  CopyText(from.provisioner(), storage_class->mutable_provisioner());
  CopyText(from.volumebindingmode(), storage_class->mutable_volume_binding_mode());
  for (const wire::TopologySelectorTerm& term : from.allowedtopologies()) {
    api::NodeSelectorTerm* out = storage_class->add_allowed_topologies();
    for (const auto& expression : term.matchlabelexpressions()) {
      api::SelectorRequirement* requirement = out->add_match_expressions();
      CopyText(expression.key(), requirement->mutable_key());
      requirement->set_operator_(api::SelectorRequirement::OPERATOR_IN);
      CopyTexts(expression.values(), requirement->mutable_values());
    }
  }
  return *object;
}

absl::StatusOr<ClusterObjectPtr> CsiNodeFromWire(const wire::CSINode& from) {
  const wire::ObjectMeta& meta = from.metadata();
  auto object = NewClusterObject("CSINode", meta);
  if (!object.ok()) return object.status();
  api::CsiNode* node = (*object)->object.mutable_csi_node();
  CopyText(meta.name(), node->mutable_name());
  for (const wire::CSINodeDriver& driver : from.spec().drivers()) {
    api::CsiNodeDriver* out = node->add_drivers();
    CopyText(driver.name(), out->mutable_name());
    if (driver.allocatable().has_count()) out->set_allocatable_count(driver.allocatable().count());
    CopyTexts(driver.topologykeys(), out->mutable_topology_keys());
  }
  if (const std::string* plugins = FindAnnotation(meta, kMigratedPlugins)) {
    for (absl::string_view plugin : absl::StrSplit(*plugins, ',', absl::SkipEmpty())) {
      CopyText(std::string(plugin), node->add_migrated_plugins());
    }
  }
  return *object;
}

absl::StatusOr<ClusterObjectPtr> CsiDriverFromWire(const wire::CSIDriver& from) {
  auto object = NewClusterObject("CSIDriver", from.metadata());
  if (!object.ok()) return object.status();
  api::CsiDriver* driver = (*object)->object.mutable_csi_driver();
  CopyText(from.metadata().name(), driver->mutable_name());
  driver->set_storage_capacity(from.spec().storagecapacity());
  return *object;
}

absl::StatusOr<ClusterObjectPtr> CsiStorageCapacityFromWire(const wire::CSIStorageCapacity& from) {
  const wire::ObjectMeta& meta = from.metadata();
  auto object = NewClusterObject("CSIStorageCapacity", meta);
  if (!object.ok()) return object.status();
  api::CsiStorageCapacity* capacity = (*object)->object.mutable_csi_storage_capacity();
  CopyText(meta.namespace_(), capacity->mutable_namespace_());
  CopyText(meta.name(), capacity->mutable_name());
  CopyText(from.storageclassname(), capacity->mutable_storage_class_name());
  if (from.has_nodetopology()) {
    ConvertLabelSelector(from.nodetopology(), capacity->mutable_node_topology());
  }
  if (from.has_capacity()) {
    absl::StatusOr<int64_t> bytes = Bytes("capacity", from.capacity());
    if (!bytes.ok()) return Named("CSIStorageCapacity", meta, bytes.status());
    capacity->set_capacity_bytes(*bytes);
  }
  if (from.has_maximumvolumesize()) {
    absl::StatusOr<int64_t> bytes = Bytes("maximumVolumeSize", from.maximumvolumesize());
    if (!bytes.ok()) return Named("CSIStorageCapacity", meta, bytes.status());
    capacity->set_maximum_volume_bytes(*bytes);
  }
  return *object;
}

absl::StatusOr<ClusterObjectPtr> VolumeAttachmentFromWire(const wire::VolumeAttachment& from) {
  const wire::ObjectMeta& meta = from.metadata();
  auto object = NewClusterObject("VolumeAttachment", meta);
  if (!object.ok()) return object.status();
  api::VolumeAttachment* attachment = (*object)->object.mutable_volume_attachment();
  CopyText(meta.name(), attachment->mutable_name());
  CopyText(from.spec().attacher(), attachment->mutable_attacher());
  CopyText(from.spec().nodename(), attachment->mutable_node_name());
  CopyText(from.spec().source().persistentvolumename(),
           attachment->mutable_persistent_volume_name());
  return *object;
}

}  // namespace outboard::kube
