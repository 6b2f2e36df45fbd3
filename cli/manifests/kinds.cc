#include "cli/manifests/kinds.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "shim/config/yaml_reader.h"

namespace outboard::manifests {
namespace {

using enum KnownKind::Use;

// From the API's Go types (k8s.io/api) and the two API servers beside it. integration/wire_schema
// compares each row.
constexpr KnownKind kKinds[] = {
    {"Pod", "v1", kRead},
    {"Node", "v1", kRead},
    {"Namespace", "v1", kRead},
    {"PriorityClass", "scheduling.k8s.io/v1", kRead},
    {"Service", "v1", kRead},
    {"ReplicationController", "v1", kReadWorkload},
    {"ReplicaSet", "apps/v1", kReadWorkload},
    {"StatefulSet", "apps/v1", kReadWorkload},
    {"PodDisruptionBudget", "policy/v1", kRead},
    {"PersistentVolume", "v1", kRead},
    {"PersistentVolumeClaim", "v1", kRead},
    {"StorageClass", "storage.k8s.io/v1", kRead},
    {"CSINode", "storage.k8s.io/v1", kRead},
    {"CSIDriver", "storage.k8s.io/v1", kRead},
    {"CSIStorageCapacity", "storage.k8s.io/v1", kRead},
    {"VolumeAttachment", "storage.k8s.io/v1", kRead},
    {"DeviceClass", "resource.k8s.io/v1 resource.k8s.io/v1beta2 resource.k8s.io/v1beta1", kRead},
    {"ResourceClaim", "resource.k8s.io/v1 resource.k8s.io/v1beta2 resource.k8s.io/v1beta1",
     kForPlugins},
    {"ResourceSlice", "resource.k8s.io/v1 resource.k8s.io/v1beta2 resource.k8s.io/v1beta1",
     kForPlugins},
    {"PodGroup", "scheduling.k8s.io/v1alpha2", kForPlugins},
    {"Deployment", "apps/v1", kWorkload},
    {"DaemonSet", "apps/v1", kWorkload},
    {"Job", "batch/v1", kWorkload},
    {"CronJob", "batch/v1", kWorkload},
    {"APIService", "apiregistration.k8s.io/v1", kSkipped},
    {"CertificateSigningRequest", "certificates.k8s.io/v1", kSkipped},
    {"ClusterRole", "rbac.authorization.k8s.io/v1", kSkipped},
    {"ClusterRoleBinding", "rbac.authorization.k8s.io/v1", kSkipped},
    {"ClusterTrustBundle", "certificates.k8s.io/v1beta1", kSkipped},
    {"ComponentStatus", "v1", kSkipped},
    {"ConfigMap", "v1", kSkipped},
    {"ControllerRevision", "apps/v1", kSkipped},
    {"CustomResourceDefinition", "apiextensions.k8s.io/v1", kSkipped},
    {"DeviceTaintRule", "resource.k8s.io/v1beta2", kSkipped},
    {"EndpointSlice", "discovery.k8s.io/v1", kSkipped},
    {"Endpoints", "v1", kSkipped},
    {"Event", "v1 events.k8s.io/v1", kSkipped},
    {"FlowSchema", "flowcontrol.apiserver.k8s.io/v1", kSkipped},
    {"HorizontalPodAutoscaler", "autoscaling/v2 autoscaling/v1", kSkipped},
    {"IPAddress", "networking.k8s.io/v1", kSkipped},
    {"Ingress", "networking.k8s.io/v1", kSkipped},
    {"IngressClass", "networking.k8s.io/v1", kSkipped},
    {"Lease", "coordination.k8s.io/v1", kSkipped},
    {"LeaseCandidate", "coordination.k8s.io/v1beta1", kSkipped},
    {"LimitRange", "v1", kSkipped},
    {"MutatingAdmissionPolicy", "admissionregistration.k8s.io/v1", kSkipped},
    {"MutatingAdmissionPolicyBinding", "admissionregistration.k8s.io/v1", kSkipped},
    {"MutatingWebhookConfiguration", "admissionregistration.k8s.io/v1", kSkipped},
    {"NetworkPolicy", "networking.k8s.io/v1", kSkipped},
    {"PodCertificateRequest", "certificates.k8s.io/v1beta1", kSkipped},
    {"PodTemplate", "v1", kSkipped},
    {"PriorityLevelConfiguration", "flowcontrol.apiserver.k8s.io/v1", kSkipped},
    {"ResourceClaimTemplate", "resource.k8s.io/v1 resource.k8s.io/v1beta2 resource.k8s.io/v1beta1",
     kSkipped},
    {"ResourcePoolStatusRequest", "resource.k8s.io/v1alpha3", kSkipped},
    {"ResourceQuota", "v1", kSkipped},
    {"Role", "rbac.authorization.k8s.io/v1", kSkipped},
    {"RoleBinding", "rbac.authorization.k8s.io/v1", kSkipped},
    {"RuntimeClass", "node.k8s.io/v1", kSkipped},
    {"Secret", "v1", kSkipped},
    {"ServiceAccount", "v1", kSkipped},
    {"ServiceCIDR", "networking.k8s.io/v1", kSkipped},
    {"StorageVersionMigration", "storagemigration.k8s.io/v1beta1", kSkipped},
    {"ValidatingAdmissionPolicy", "admissionregistration.k8s.io/v1", kSkipped},
    {"ValidatingAdmissionPolicyBinding", "admissionregistration.k8s.io/v1", kSkipped},
    {"ValidatingWebhookConfiguration", "admissionregistration.k8s.io/v1", kSkipped},
    {"VolumeAttributesClass", "storage.k8s.io/v1", kSkipped},
    {"Workload", "scheduling.k8s.io/v1alpha2", kSkipped},
};

std::vector<absl::string_view> Versions(const KnownKind& kind) {
  return absl::StrSplit(kind.api_versions, ' ');
}

}  // namespace

bool KnownKind::Serves(absl::string_view api_version) const {
  const std::vector<absl::string_view> versions = Versions(*this);
  return std::find(versions.begin(), versions.end(), api_version) != versions.end();
}

bool KnownKind::HasGroup(absl::string_view group) const {
  const std::vector<absl::string_view> versions = Versions(*this);
  return std::any_of(versions.begin(), versions.end(),
                     [&](absl::string_view version) { return GroupOf(version) == group; });
}

const KnownKind* FindKind(absl::string_view kind) {
  for (const KnownKind& known : kKinds) {
    if (known.kind == kind) return &known;
  }
  return nullptr;
}

std::vector<std::string> KindNames(bool read) {
  std::vector<std::string> names;
  for (const KnownKind& known : kKinds) {
    if (!read || (known.use != kWorkload && known.use != kSkipped)) names.emplace_back(known.kind);
  }
  return names;
}

absl::string_view GroupOf(absl::string_view api_version) {
  const size_t slash = api_version.find('/');
  return slash == absl::string_view::npos ? absl::string_view() : api_version.substr(0, slash);
}

absl::string_view NotAManifest(absl::string_view kind) {
  if (kind == "KubeSchedulerConfiguration" || kind == "ShimConfiguration")
    return "is a configuration, not a manifest; give its file as --config";
  if (kind == "Kustomization") return "names manifests; `kubectl kustomize DIRECTORY` prints them";
  return "";
}

std::string DidYouMean(absl::string_view name, const std::vector<std::string>& candidates) {
  // Typos in the first letter are rare: Nod is rather a Node than a Pod.
  std::vector<std::string> likely;
  for (const std::string& candidate : candidates) {
    if (!name.empty() && absl::ascii_tolower(candidate[0]) == absl::ascii_tolower(name[0]))
      likely.push_back(candidate);
  }
  std::string nearest = config::Nearest(name, likely);
  if (nearest.empty()) nearest = config::Nearest(name, candidates);
  return nearest.empty() ? "" : absl::StrCat("; did you mean ", nearest, "?");
}

}  // namespace outboard::manifests
