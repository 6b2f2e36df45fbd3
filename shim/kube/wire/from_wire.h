// From Kubernetes' wire messages to the shim's objects: canonical integers, defaults, and only what
// scheduling reads.
//
// Used by the protobuf decoder, by the JSON decoder and by the manifest reader, so that an object
// means the same whatever way it came. What the API server fills in by default and the shim relies
// upon is filled in here too; on objects of an API server that changes nothing: a container's
// limits stand in for absent requests, host ports equal container ports under hostNetwork,
// schedulerName is `default-scheduler`, a volume or selector of a kind that is not known here stays
// visible as unknown.
//
// Threading: pure functions.
// Errors: InvalidArgument naming the object and the field's path (`pod ns/name:
// spec.containers[0].resources.requests.cpu: …`).
#ifndef OUTBOARD_SHIM_KUBE_WIRE_FROM_WIRE_H_
#define OUTBOARD_SHIM_KUBE_WIRE_FROM_WIRE_H_

#include "absl/status/statusor.h"
#include "shim/kube/objects.h"
#include "shim/kube/wire/core_v1.pb.h"

namespace outboard::kube {

// The number that stands in contract enums for a text which is not known here. Contract enums are
// open: a host treats it as it treats every unknown value, which is never as the zero value.
inline constexpr int kUnknownEnumValue = 1000;

absl::StatusOr<PodPtr> PodFromWire(const wire::Pod& pod);
absl::StatusOr<NodePtr> NodeFromWire(const wire::Node& node);
absl::StatusOr<NamespacePtr> NamespaceFromWire(const wire::Namespace& ns);

}  // namespace outboard::kube

#endif  // OUTBOARD_SHIM_KUBE_WIRE_FROM_WIRE_H_
