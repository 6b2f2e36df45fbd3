// Reads manifests: Kubernetes objects as users and kubectl write them, in YAML (several documents,
// lists) or JSON.
//
// The results are the objects that an API server returns after their creation (with defaults and a
// uid), but without admission. Rejects what the API server rejects, with file, line, column and the
// field's path. Unknown fields are ignored with a warning. Objects keep the file's order. The
// caller checks for duplicate names.
//
// Threading: pure functions.
// Errors: InvalidArgument, "FILE:LINE:COLUMN: path: what". Stops at the first one.
#ifndef OUTBOARD_CLI_MANIFESTS_OBJECT_READER_H_
#define OUTBOARD_CLI_MANIFESTS_OBJECT_READER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "shim/kube/objects.h"

namespace outboard::manifests {

// An object whose kind is known but not interpreted here: PriorityClass, custom resources, and
// Kubernetes' own kinds that only plugins read (ResourceClaim, ResourceSlice; DeviceClass too).
struct OtherObject {
  std::string api_version;
  std::string kind;
  std::string ns;  // "" without one
  std::string name;
  std::string json;     // the whole object
  bool custom = false;  // plugins can declare it
};

struct Manifests {
  std::vector<kube::PodPtr> pods;
  std::vector<kube::NodePtr> nodes;
  std::vector<kube::NamespacePtr> namespaces;
  // Of the kinds of object_kinds.h.
  std::vector<kube::ClusterObjectPtr> objects;
  std::vector<OtherObject> others;
  // "FILE:LINE:COLUMN: path: …"
  std::vector<std::string> warnings;
};

// `file_name` appears only in messages.
absl::StatusOr<Manifests> ReadManifests(absl::string_view file_name, const std::string& text);

}  // namespace outboard::manifests

#endif  // OUTBOARD_CLI_MANIFESTS_OBJECT_READER_H_
