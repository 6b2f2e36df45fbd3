// How custom resources are named, and where they are.
//
// Threading: pure functions. Errors: InvalidArgument, saying what is wrong.
#ifndef OUTBOARD_SHIM_KUBE_WIRE_CUSTOM_RESOURCE_NAME_H_
#define OUTBOARD_SHIM_KUBE_WIRE_CUSTOM_RESOURCE_NAME_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace outboard::kube {

// `RESOURCE.VERSION.GROUP` taken apart, as kube-scheduler names the resource of an event:
// "trainingjobplacements.v1alpha1.accelerator.sched.io".
struct CustomResourceName {
  std::string resource;  // the plural
  std::string version;
  std::string group;

  std::string full_name() const { return resource + "." + version + "." + group; }
  std::string api_version() const { return group + "/" + version; }
  // Where all of them are listed.
  std::string path() const;
  // Where those of a namespace are, and one of them; `ns` empty: the resource has none.
  std::string path(absl::string_view ns) const;
  std::string path(absl::string_view ns, absl::string_view name) const;
};
// Whether the API group is built into Kubernetes; many that end in k8s.io are not.
bool IsOwnGroup(absl::string_view group);

absl::StatusOr<CustomResourceName> ParseCustomResourceName(absl::string_view text);

}  // namespace outboard::kube

#endif  // OUTBOARD_SHIM_KUBE_WIRE_CUSTOM_RESOURCE_NAME_H_
