// Converts Kubernetes' wire messages to the shim's objects: canonical integers, defaults, and only
// the fields that scheduling reads.
//
// Used by the protobuf decoder, the JSON decoder and the manifest reader, so that an object has the
// same meaning in every encoding. Fills in the API server's defaults that the shim relies on;
// objects from an API server already have them:
// - A container's limits replace absent requests.
// - Host ports equal container ports under hostNetwork.
// - schedulerName is `default-scheduler`.
// A volume or selector of an unknown kind stays visible as unknown.
//
// Threading: pure functions.
// Errors: InvalidArgument with the object and the field's path (`pod ns/name:
// spec.containers[0].resources.requests.cpu: …`).
#ifndef OUTBOARD_SHIM_KUBE_WIRE_FROM_WIRE_H_
#define OUTBOARD_SHIM_KUBE_WIRE_FROM_WIRE_H_

#include "absl/status/statusor.h"
#include "shim/kube/objects.h"
#include "shim/kube/wire/core_v1.pb.h"

namespace outboard::kube {

// Stands for unknown texts in contract enums. Contract enums are open: hosts handle it like any
// unknown value, never like the zero value.
inline constexpr int kUnknownEnumValue = 1000;

absl::StatusOr<PodPtr> PodFromWire(const wire::Pod& pod);
absl::StatusOr<NodePtr> NodeFromWire(const wire::Node& node);
absl::StatusOr<NamespacePtr> NamespaceFromWire(const wire::Namespace& ns);

}  // namespace outboard::kube

#endif  // OUTBOARD_SHIM_KUBE_WIRE_FROM_WIRE_H_
