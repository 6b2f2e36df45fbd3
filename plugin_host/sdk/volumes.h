// Shared by volume plugins: claims of a pod, and Kubernetes' messages.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_VOLUMES_H_
#define OUTBOARD_PLUGIN_HOST_SDK_VOLUMES_H_

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "outboard/v1beta1/types.pb.h"
#include "plugin_host/sdk/cluster_objects.h"

namespace outboard::sdk {

// The claim of a pod's volume.
struct PodClaim {
  std::string name;        // In the pod's namespace.
  bool ephemeral = false;  // Created for the pod, which must own it.
};

bool IsClaimVolume(const v1beta1::Volume& volume);
// Absent if the volume is not a claim.
std::optional<PodClaim> ClaimOfVolume(const v1beta1::Pod& pod, const v1beta1::Volume& volume);
// Whether a volume of the pod names the claim.
bool NamesClaim(const v1beta1::Pod& pod, const v1beta1::PersistentVolumeClaim& claim);
// The same, or an ephemeral volume of the pod has a claim of that name, with any owner.
bool UsesClaim(const v1beta1::Pod& pod, const v1beta1::PersistentVolumeClaim& claim);
const v1beta1::PersistentVolumeClaim* FindClaim(const ClusterObjects& objects,
                                                absl::string_view namespace_name,
                                                absl::string_view name);
// Absent if the claim was created for the pod; otherwise Kubernetes' error.
std::optional<std::string> NotCreatedForPod(const v1beta1::Pod& pod,
                                            const v1beta1::PersistentVolumeClaim& claim);

// The API server's error for a missing object: `persistentvolumeclaim "x" not found`.
std::string NotFoundText(absl::string_view resource, absl::string_view name);

// Whether CSI drivers serve volumes of an in-tree plugin on nodes that declare it; kube-scheduler
// ignores other in-tree plugins.
bool IsMigratedPlugin(absl::string_view in_tree_plugin);
// The CSI driver that replaces an in-tree provisioner. Absent: not an in-tree provisioner; empty:
// not migrated.
std::optional<absl::string_view> DriverOfProvisioner(absl::string_view provisioner);

}  // namespace outboard::sdk

#endif  // OUTBOARD_PLUGIN_HOST_SDK_VOLUMES_H_
