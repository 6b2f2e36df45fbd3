// Refuses in manifests what kube-apiserver refuses and what would confuse scheduling: bad names and
// labels, negative or contradictory resources, unknown operators and effects, numbers out of range.
//
// Not the whole of Kubernetes' validation: fields that nobody here reads are not judged. The first
// fault is reported, with the path of its field. Call after defaults have been applied.
//
// Threading: pure functions.
#ifndef OUTBOARD_SHIM_KUBE_WIRE_MANIFEST_VALIDATION_H_
#define OUTBOARD_SHIM_KUBE_WIRE_MANIFEST_VALIDATION_H_

#include <optional>

#include "shim/kube/wire/core_v1.pb.h"
#include "shim/kube/wire/document.h"
#include "shim/kube/wire/object_kinds.h"

namespace outboard::kube {

std::optional<Fault> Validate(const wire::Pod& pod);
std::optional<Fault> Validate(const wire::Node& node);
std::optional<Fault> Validate(const wire::Namespace& ns);
// A message of `kind`'s type.
std::optional<Fault> ValidateObject(const ObjectKind& kind,
                                    const google::protobuf::Message& message);

}  // namespace outboard::kube

#endif  // OUTBOARD_SHIM_KUBE_WIRE_MANIFEST_VALIDATION_H_
