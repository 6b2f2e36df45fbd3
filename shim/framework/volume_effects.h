// Checks effects on volumes and claims against the shim's own cluster state.
#ifndef OUTBOARD_SHIM_FRAMEWORK_VOLUME_EFFECTS_H_
#define OUTBOARD_SHIM_FRAMEWORK_VOLUME_EFFECTS_H_

#include "absl/status/status.h"
#include "google/protobuf/repeated_field.h"
#include "outboard/v1beta1/effect.pb.h"
#include "outboard/v1beta1/types.pb.h"
#include "shim/cache/cluster_state.h"

namespace outboard::framework {

// Whether a scheduler may bind these volumes, and select the node for these claims, by Kubernetes'
// own rules (component-helpers' FindMatchingVolume, and the volume binder of kube-scheduler).
// Follows CheckEffects, which says that the claims are the pod's. Effects of other kinds are not
// looked at. Pure.
//
// The host's versions of the objects must be those of the cluster state: it was sent all changes
// before the call. The API server rejects the write if an object has changed since, so what is
// checked here is what is written to.
// Errors: INTERNAL, with the fault.
absl::Status CheckVolumeEffects(const google::protobuf::RepeatedPtrField<v1beta1::Effect>& effects,
                                const v1beta1::Pod& pod, const v1beta1::Node& node,
                                const cache::ClusterState& cluster);

}  // namespace outboard::framework

#endif  // OUTBOARD_SHIM_FRAMEWORK_VOLUME_EFFECTS_H_
