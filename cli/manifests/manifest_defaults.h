// Fills in objects of a manifest like the API server, in fields that scheduling reads: defaults,
// and fields that the server sets. No admission: no limit ranges, no runtime classes, no
// tolerations for not-ready nodes; priorities and claims are completed when all objects are known.
//
// Threading: pure functions.
#ifndef OUTBOARD_CLI_MANIFESTS_MANIFEST_DEFAULTS_H_
#define OUTBOARD_CLI_MANIFESTS_MANIFEST_DEFAULTS_H_

#include "outboard/v1beta1/types.pb.h"
#include "shim/kube/wire/core_v1.pb.h"
#include "shim/kube/wire/object_kinds.h"
#include "shim/kube/wire/scheduling_v1.pb.h"

namespace outboard::manifests {

// The uid consists of kind, namespace and name, so it is reproducible.
void ApplyDefaults(kube::wire::Pod* pod);
void ApplyDefaults(kube::wire::Node* node);
void ApplyDefaults(kube::wire::Namespace* ns);
void ApplyDefaults(kube::wire::PriorityClass* priority_class);
// A message of `kind`'s type.
void ApplyObjectDefaults(const kube::ObjectKind& kind, google::protobuf::Message* message);

// Pod-level requests from pod-level limits and the containers' requests. Call after conversion. No
// effect on pods without pod-level resources.
void ApplyPodLevelDefaults(v1beta1::Pod* pod);

}  // namespace outboard::manifests

#endif  // OUTBOARD_CLI_MANIFESTS_MANIFEST_DEFAULTS_H_
