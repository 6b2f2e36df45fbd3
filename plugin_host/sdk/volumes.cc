#include "plugin_host/sdk/volumes.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "plugin_host/sdk/validation.h"

namespace outboard::sdk {

bool IsClaimVolume(const v1beta1::Volume& volume) {
  return volume.source() == "persistentVolumeClaim" || volume.source() == "ephemeral";
}

std::optional<PodClaim> ClaimOfVolume(const v1beta1::Pod& pod, const v1beta1::Volume& volume) {
  if (volume.source() == "persistentVolumeClaim") return PodClaim{volume.claim_name(), false};
  if (volume.source() == "ephemeral") {
    return PodClaim{absl::StrCat(pod.name(), "-", volume.name()), true};
  }
  return std::nullopt;
}

bool NamesClaim(const v1beta1::Pod& pod, const v1beta1::PersistentVolumeClaim& claim) {
  return pod.namespace_() == claim.namespace_() &&
         std::any_of(pod.volumes().begin(), pod.volumes().end(), [&](const auto& volume) {
           return volume.source() == "persistentVolumeClaim" && volume.claim_name() == claim.name();
         });
}

bool UsesClaim(const v1beta1::Pod& pod, const v1beta1::PersistentVolumeClaim& claim) {
  return pod.namespace_() == claim.namespace_() &&
         std::any_of(pod.volumes().begin(), pod.volumes().end(), [&](const auto& volume) {
           const std::optional<PodClaim> named = ClaimOfVolume(pod, volume);
           return named && named->name == claim.name();
         });
}

const v1beta1::PersistentVolumeClaim* FindClaim(const ClusterObjects& objects,
                                                absl::string_view namespace_name,
                                                absl::string_view name) {
  return objects.Find<v1beta1::PersistentVolumeClaim>(NamespacedKey(namespace_name, name));
}

std::optional<std::string> NotCreatedForPod(const v1beta1::Pod& pod,
                                            const v1beta1::PersistentVolumeClaim& claim) {
  if (claim.namespace_() == pod.namespace_() && claim.has_controller() &&
      claim.controller().uid() == pod.uid()) {
    return std::nullopt;
  }
  return absl::StrCat("PVC ", claim.namespace_(), "/", claim.name(), " was not created for pod ",
                      pod.namespace_(), "/", pod.name(), " (pod is not owner)");
}

std::string NotFoundText(absl::string_view resource, absl::string_view name) {
  return absl::StrCat(resource, " ", Quote(name), " not found");
}

std::optional<absl::string_view> DriverOfProvisioner(absl::string_view provisioner) {
  static const auto& drivers = *new absl::flat_hash_map<absl::string_view, absl::string_view>{
      {"kubernetes.io/aws-ebs", "ebs.csi.aws.com"},
      {"kubernetes.io/azure-disk", "disk.csi.azure.com"},
      {"kubernetes.io/azure-file", ""},
      {"kubernetes.io/cinder", "cinder.csi.openstack.org"},
      {"kubernetes.io/gce-pd", "pd.csi.storage.gke.io"},
      {"kubernetes.io/portworx-volume", "pxd.portworx.com"},
      {"kubernetes.io/vsphere-volume", ""}};
  auto it = drivers.find(provisioner);
  if (it == drivers.end()) return std::nullopt;
  return it->second;
}

bool IsMigratedPlugin(absl::string_view in_tree_plugin) {
  return !DriverOfProvisioner(in_tree_plugin).value_or("").empty();
}

}  // namespace outboard::sdk
