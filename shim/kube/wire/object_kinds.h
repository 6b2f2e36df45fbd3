// The kinds of objects.proto as the API server has them: where they are, and how one is read.
//
// A new kind is one line of the table in object_kinds.cc, a wire message and a conversion. Pods,
// nodes and namespaces are not here: they have types of their own.
//
// Threading: pure functions. Lifetime: the table lives as long as the process. Errors:
// InvalidArgument naming the object and the field's path.
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
  // From such a message.
  absl::StatusOr<ClusterObjectPtr> (*from_wire)(const google::protobuf::Message& message);

  // "" for the core group.
  absl::string_view group() const;
  // Where all of them are listed: "/api/v1/services".
  std::string path() const;
};

absl::Span<const ObjectKind> ObjectKinds();
// Null if it is none of the table's. Versions of a group do not differ in what is read here.
const ObjectKind* FindObjectKind(absl::string_view group, absl::string_view kind);

}  // namespace outboard::kube

#endif  // OUTBOARD_SHIM_KUBE_WIRE_OBJECT_KINDS_H_
