// Names and API paths of custom resources.
//
// Threading: pure functions.
// Errors: InvalidArgument with the reason.
#ifndef OUTBOARD_SHIM_KUBE_WIRE_CUSTOM_RESOURCE_NAME_H_
#define OUTBOARD_SHIM_KUBE_WIRE_CUSTOM_RESOURCE_NAME_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace outboard::kube {

// The parts of `RESOURCE.VERSION.GROUP`, kube-scheduler's form for the resource of an event:
// "trainingjobplacements.v1alpha1.accelerator.sched.io".
struct CustomResourceName {
  std::string resource;  // plural
  std::string version;
  std::string group;

  std::string full_name() const { return resource + "." + version + "." + group; }
  std::string api_version() const { return group + "/" + version; }
  // API path of all objects.
  std::string path() const;
  // API paths of a namespace's objects and of one object. `ns` is empty for cluster-scoped
  // resources.
  std::string path(absl::string_view ns) const;
  std::string path(absl::string_view ns, absl::string_view name) const;
};
// Whether the API group is built into Kubernetes. Many groups that end in k8s.io are not.
bool IsOwnGroup(absl::string_view group);

absl::StatusOr<CustomResourceName> ParseCustomResourceName(absl::string_view text);

}  // namespace outboard::kube

#endif  // OUTBOARD_SHIM_KUBE_WIRE_CUSTOM_RESOURCE_NAME_H_
