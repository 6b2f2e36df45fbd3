// What the plugins that judge volumes have in common: claims of a pod, and Kubernetes' words.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_VOLUMES_H_
#define OUTBOARD_PLUGIN_HOST_SDK_VOLUMES_H_

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "plugin_host/sdk/cluster_objects.h"
#include "proto/outboard/v1alpha1/types.pb.h"

namespace outboard::sdk {

// A claim that a volume of a pod stands for.
struct PodClaim {
  std::string name;        // In the pod's namespace.
  bool ephemeral = false;  // Made for the pod, which must own it.
};

bool IsClaimVolume(const v1alpha1::Volume& volume);
// Absent if the volume is no claim.
std::optional<PodClaim> ClaimOfVolume(const v1alpha1::Pod& pod, const v1alpha1::Volume& volume);
// Whether a volume of the pod names the claim.
bool NamesClaim(const v1alpha1::Pod& pod, const v1alpha1::PersistentVolumeClaim& claim);
// The same, or an ephemeral volume of the pod has a claim of that name, whoever owns it.
bool UsesClaim(const v1alpha1::Pod& pod, const v1alpha1::PersistentVolumeClaim& claim);
const v1alpha1::PersistentVolumeClaim* FindClaim(const ClusterObjects& objects,
                                                 absl::string_view namespace_name,
                                                 absl::string_view name);
// Absent if the claim was made for the pod; otherwise Kubernetes' error.
std::optional<std::string> NotCreatedForPod(const v1alpha1::Pod& pod,
                                            const v1alpha1::PersistentVolumeClaim& claim);

// The API's error for an object that is not there: `persistentvolumeclaim "x" not found`.
std::string NotFoundText(absl::string_view resource, absl::string_view name);

// Whether volumes of an in-tree plugin are served by CSI drivers wherever the node says so; of the
// others kube-scheduler takes no notice.
bool IsMigratedPlugin(absl::string_view in_tree_plugin);
// The CSI driver in place of an in-tree provisioner. Absent: it is no in-tree provisioner; empty:
// it is one that is not migrated.
std::optional<absl::string_view> DriverOfProvisioner(absl::string_view provisioner);

}  // namespace outboard::sdk

#endif  // OUTBOARD_PLUGIN_HOST_SDK_VOLUMES_H_
