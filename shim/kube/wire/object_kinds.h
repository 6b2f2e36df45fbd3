// The kinds of objects.proto in the API: their paths, and their conversion.
//
// A new kind needs one line of the table in object_kinds.cc, a wire message and a conversion. Pods,
// nodes and namespaces have their own types and are not in the table.
//
// Threading: pure functions.
// Lifetime: the table lives as long as the process.
// Errors: InvalidArgument with the object and the field's path.
#ifndef OUTBOARD_SHIM_KUBE_WIRE_OBJECT_KINDS_H_
#define OUTBOARD_SHIM_KUBE_WIRE_OBJECT_KINDS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "google/protobuf/message.h"
#include "shim/kube/objects.h"

namespace outboard::kube {

struct ObjectKind {
  absl::string_view api_version;  // "v1", "apps/v1"
  absl::string_view kind;
  absl::string_view resource;  // "replicasets", as in paths
  bool namespaced;
  // An empty wire message of this kind.
  const google::protobuf::Message& (*prototype)();
  // Converts such a message.
  absl::StatusOr<ClusterObjectPtr> (*from_wire)(const google::protobuf::Message& message);

  // "" for the core group.
  absl::string_view group() const;
  // API path of all objects: "/api/v1/services".
  std::string path() const;
};

absl::Span<const ObjectKind> ObjectKinds();
// Null if the table has no such kind. The fields read here are equal in all versions of a group.
const ObjectKind* FindObjectKind(absl::string_view group, absl::string_view kind);

}  // namespace outboard::kube

#endif  // OUTBOARD_SHIM_KUBE_WIRE_OBJECT_KINDS_H_
