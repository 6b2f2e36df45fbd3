// Names and API paths of resources that plugins declare: custom ones, and Kubernetes' own.
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
// "trainingjobplacements.v1alpha1.accelerator.sched.io"; of the core group `RESOURCE.VERSION`:
// "configmaps.v1".
struct CustomResourceName {
  std::string resource;  // plural
  std::string version;
  std::string group;  // empty: the core group

  std::string full_name() const {
    return resource + "." + version + (group.empty() ? "" : ".") + group;
  }
  std::string api_version() const { return group + (group.empty() ? "" : "/") + version; }
  // API path of all objects.
  std::string path() const;
  // API paths of a namespace's objects and of one object. `ns` is empty for cluster-scoped
  // resources.
  std::string path(absl::string_view ns) const;
  std::string path(absl::string_view ns, absl::string_view name) const;
};
// A version of Kubernetes' usual form: v1, v1alpha1, v2beta3.
bool IsUsualVersion(absl::string_view version);
// Whether the API group is built into Kubernetes. Many groups that end in k8s.io are not.
bool IsOwnGroup(absl::string_view group);

// Secrets are refused: hosts must not read or write them through the shim. A group without a dot is
// one of Kubernetes' own, so that a forgotten version ("widgets.example.com") is an error.
absl::StatusOr<CustomResourceName> ParseCustomResourceName(absl::string_view text);

// Pods, nodes and namespaces: hosts get them as messages of their own, never as a GenericObject.
// Plugins may only write them.
bool IsWriteOnly(const CustomResourceName& name);

}  // namespace outboard::kube

#endif  // OUTBOARD_SHIM_KUBE_WIRE_CUSTOM_RESOURCE_NAME_H_
