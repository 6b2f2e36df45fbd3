// Reads manifests: Kubernetes objects as people and kubectl write them, in YAML (several documents,
// lists) or JSON.
//
// Objects come out as if they had been created on an API server and read back (defaults, a uid),
// but no admission has happened. What would be refused there is refused here, with file, line,
// column and the field's path; fields that Kubernetes does not know are ignored with a warning.
// Objects keep the file's order. That a name is there twice is the caller's business.
//
// Threading: pure functions. Errors: InvalidArgument, "FILE:LINE:COLUMN: path: what"; the first one
// ends the reading.
#ifndef OUTBOARD_SHIM_KUBE_WIRE_OBJECT_READER_H_
#define OUTBOARD_SHIM_KUBE_WIRE_OBJECT_READER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "shim/kube/objects.h"

namespace outboard::kube {

// An object of a kind that is recognised but not interpreted here: PriorityClass, custom resources,
// and Kubernetes' own that only plugins read (ResourceClaim, ResourceSlice; DeviceClass besides).
struct OtherObject {
  std::string api_version;
  std::string kind;
  std::string ns;  // "" where the manifest has none
  std::string name;
  std::string json;     // the whole object
  bool custom = false;  // plugins can declare it
};

struct Manifests {
  std::vector<PodPtr> pods;
  std::vector<NodePtr> nodes;
  std::vector<NamespacePtr> namespaces;
  // Of the kinds of object_kinds.h.
  std::vector<ClusterObjectPtr> objects;
  std::vector<OtherObject> others;
  // "FILE:LINE:COLUMN: path: …"
  std::vector<std::string> warnings;
};

// `file_name` stands in messages only.
absl::StatusOr<Manifests> ReadManifests(absl::string_view file_name, const std::string& text);

}  // namespace outboard::kube

#endif  // OUTBOARD_SHIM_KUBE_WIRE_OBJECT_READER_H_
