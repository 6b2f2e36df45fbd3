// What the API server would have filled into objects that come from a manifest, as far as
// scheduling reads it: its defaulting, and the fields that it sets itself. No admission: no
// priority from a class, no limit ranges, no tolerations for not-ready nodes.
//
// Threading: pure functions.
#ifndef OUTBOARD_SHIM_KUBE_WIRE_MANIFEST_DEFAULTS_H_
#define OUTBOARD_SHIM_KUBE_WIRE_MANIFEST_DEFAULTS_H_

#include "proto/outboard/v1alpha1/types.pb.h"
#include "shim/kube/wire/core_v1.pb.h"
#include "shim/kube/wire/object_kinds.h"

namespace outboard::kube {

// uid is made of kind, namespace and name, so that it is the same every time.
void ApplyDefaults(wire::Pod* pod);
void ApplyDefaults(wire::Node* node);
void ApplyDefaults(wire::Namespace* ns);
// A message of `kind`'s type.
void ApplyObjectDefaults(const ObjectKind& kind, google::protobuf::Message* message);

// Pod-level requests from pod-level limits and the containers' requests. After conversion: it needs
// amounts. Does nothing for a pod without pod-level resources, which is nearly all of them.
void ApplyPodLevelDefaults(v1alpha1::Pod* pod);

}  // namespace outboard::kube

#endif  // OUTBOARD_SHIM_KUBE_WIRE_MANIFEST_DEFAULTS_H_
