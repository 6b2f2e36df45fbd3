#include "cli/simulate/volume_controller.h"

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace outboard::simulate {
namespace {

// Above all versions in manifests, and of one length, so that text order is version order.
constexpr int64_t kFirstVersion = 1000000000000000000;

absl::Status NotFound(absl::string_view resource, absl::string_view name) {
  return absl::NotFoundError(absl::StrCat(resource, " \"", name, "\" not found"));
}

absl::Status Conflict(absl::string_view resource, absl::string_view name) {
  return absl::AbortedError(
      absl::StrCat("Operation cannot be fulfilled on ", resource, " \"", name,
                   "\": the object has been modified; please apply your changes to the latest "
                   "version and try again"));
}

}  // namespace

VolumeController::VolumeController(const std::vector<kube::ClusterObjectPtr>& objects) {
  version_ = kFirstVersion;
  for (const kube::ClusterObjectPtr& given : objects) {
    auto object = std::make_shared<kube::ClusterObject>(*given);
    v1beta1::ClusterObject& proto = object->object;
    if (object->resource_version.empty()) object->resource_version = NextVersion();
    if (proto.has_persistent_volume()) {
      proto.mutable_persistent_volume()->set_resource_version(object->resource_version);
      volumes_[proto.persistent_volume().name()] = object;
    } else if (proto.has_persistent_volume_claim()) {
      proto.mutable_persistent_volume_claim()->set_resource_version(object->resource_version);
      claims_[object->key()] = object;
    } else if (proto.has_storage_class()) {
      classes_[proto.storage_class().name()] = object;
    }
    objects_.push_back(std::move(object));
  }
}

std::string VolumeController::NextVersion() { return absl::StrCat(++version_); }

absl::StatusOr<std::string> VolumeController::Write(const v1beta1::Effect& effect,
                                                    std::vector<kube::ClusterObjectPtr>* changed) {
  if (effect.has_bind_volume()) return BindVolume(effect.bind_volume(), changed);
  if (effect.has_select_node()) return SelectNode(effect.select_node(), changed);
  return absl::UnimplementedError("the simulator does not know the effect");
}

absl::StatusOr<std::string> VolumeController::BindVolume(
    const v1beta1::BindVolume& bind, std::vector<kube::ClusterObjectPtr>* changed) {
  const auto it = volumes_.find(bind.name());
  if (it == volumes_.end()) return NotFound("persistentvolumes", bind.name());
  if (it->second->resource_version != bind.resource_version()) {
    return Conflict("persistentvolumes", bind.name());
  }
  auto volume = std::make_shared<kube::ClusterObject>(*it->second);
  v1beta1::PersistentVolume* proto = volume->object.mutable_persistent_volume();
  *proto->mutable_claim_ref() = bind.claim();
  if (bind.bound_by_controller()) proto->set_bound_by_controller(true);
  proto->set_phase("Bound");
  volume->resource_version = NextVersion();
  proto->set_resource_version(volume->resource_version);
  it->second = volume;
  changed->push_back(volume);
  to_bind_[absl::StrCat(bind.claim().namespace_(), "/", bind.claim().name())] = bind.name();
  return volume->resource_version;
}

absl::StatusOr<std::string> VolumeController::SelectNode(
    const v1beta1::SelectNode& select, std::vector<kube::ClusterObjectPtr>* changed) {
  const std::string key = absl::StrCat(select.namespace_(), "/", select.name());
  const auto it = claims_.find(key);
  if (it == claims_.end()) return NotFound("persistentvolumeclaims", select.name());
  if (it->second->resource_version != select.resource_version()) {
    return Conflict("persistentvolumeclaims", select.name());
  }
  auto claim = std::make_shared<kube::ClusterObject>(*it->second);
  v1beta1::PersistentVolumeClaim* proto = claim->object.mutable_persistent_volume_claim();
  proto->set_selected_node(select.node_name());
  claim->resource_version = NextVersion();
  proto->set_resource_version(claim->resource_version);
  it->second = claim;
  changed->push_back(claim);
  to_bind_[key] = "";
  return claim->resource_version;
}

kube::ClusterObjectPtr VolumeController::MakeVolume(const v1beta1::PersistentVolumeClaim& claim) {
  auto volume = std::make_shared<kube::ClusterObject>();
  v1beta1::PersistentVolume* proto = volume->object.mutable_persistent_volume();
  proto->set_name(absl::StrCat("pvc-", claim.uid()));
  proto->set_uid(absl::StrCat("volume-of-", claim.uid()));
  volume->object_uid = proto->uid();
  volume->resource_version = NextVersion();
  proto->set_resource_version(volume->resource_version);
  proto->set_capacity_bytes(claim.request_bytes());
  *proto->mutable_access_modes() = claim.access_modes();
  proto->mutable_claim_ref()->set_namespace_(claim.namespace_());
  proto->mutable_claim_ref()->set_name(claim.name());
  proto->mutable_claim_ref()->set_uid(claim.uid());
  proto->set_storage_class_name(claim.storage_class_name());
  proto->set_volume_mode(claim.volume_mode());
  proto->set_volume_attributes_class_name(claim.volume_attributes_class_name());
  proto->set_phase("Bound");
  const auto storage_class = classes_.find(claim.storage_class_name());
  if (storage_class != classes_.end()) {
    const std::string& provisioner = storage_class->second->object.storage_class().provisioner();
    if (!absl::StartsWith(provisioner, "kubernetes.io/")) {
      proto->mutable_csi()->set_driver(provisioner);
      proto->mutable_csi()->set_volume_handle(proto->name());
    }
  }
  volumes_[proto->name()] = volume;
  return volume;
}

std::vector<kube::ClusterObjectPtr> VolumeController::Reconcile() {
  std::vector<kube::ClusterObjectPtr> changed;
  for (const auto& [key, name] : to_bind_) {
    const auto it = claims_.find(key);
    if (it == claims_.end()) continue;
    std::string volume = name;
    if (volume.empty()) {
      changed.push_back(MakeVolume(it->second->object.persistent_volume_claim()));
      volume = changed.back()->object.persistent_volume().name();
    }
    auto claim = std::make_shared<kube::ClusterObject>(*it->second);
    v1beta1::PersistentVolumeClaim* proto = claim->object.mutable_persistent_volume_claim();
    proto->set_volume_name(volume);
    proto->set_bind_completed(true);
    proto->set_phase("Bound");
    claim->resource_version = NextVersion();
    proto->set_resource_version(claim->resource_version);
    it->second = claim;
    changed.push_back(std::move(claim));
  }
  to_bind_.clear();
  return changed;
}

}  // namespace outboard::simulate
