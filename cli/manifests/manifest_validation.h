// Rejects what kube-apiserver rejects and what would break scheduling: invalid names and labels,
// negative or contradictory resources, unknown operators and effects, numbers out of range.
//
// Not Kubernetes' whole validation: ignores fields that Outboard does not read. Reports the first
// fault with the path of its field. Call after ApplyDefaults.
//
// Threading: pure functions.
#ifndef OUTBOARD_CLI_MANIFESTS_MANIFEST_VALIDATION_H_
#define OUTBOARD_CLI_MANIFESTS_MANIFEST_VALIDATION_H_

#include <optional>

#include "shim/kube/wire/core_v1.pb.h"
#include "shim/kube/wire/document.h"
#include "shim/kube/wire/object_kinds.h"

namespace outboard::manifests {

std::optional<kube::Fault> Validate(const kube::wire::Pod& pod);
std::optional<kube::Fault> Validate(const kube::wire::Node& node);
std::optional<kube::Fault> Validate(const kube::wire::Namespace& ns);
// A message of `kind`'s type.
std::optional<kube::Fault> ValidateObject(const kube::ObjectKind& kind,
                                          const google::protobuf::Message& message);

}  // namespace outboard::manifests

#endif  // OUTBOARD_CLI_MANIFESTS_MANIFEST_VALIDATION_H_
