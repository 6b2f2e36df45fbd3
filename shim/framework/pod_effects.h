// What plugins may change of the pod that is being placed, and which events they may record.
#ifndef OUTBOARD_SHIM_FRAMEWORK_POD_EFFECTS_H_
#define OUTBOARD_SHIM_FRAMEWORK_POD_EFFECTS_H_

#include <google/protobuf/map.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "outboard/v1beta1/effect.pb.h"

namespace outboard::framework {

// Whether the effect is a PatchPod, SetPodCondition or RecordEvent. Pure.
bool IsPodEffect(const v1beta1::Effect& effect);

// Whether the key of a label or annotation, or the type of a condition, belongs to Kubernetes: its
// prefix is kubernetes.io, k8s.io or a subdomain. Pure.
bool BelongsToKubernetes(absl::string_view key);

// The fault of annotations that a plugin sets on the pod that is being placed, by an effect or with
// the Binding: their number, size or keys; "" if there is none. `allowed_keys` as CheckPodEffect.
// Pure.
std::string FaultOfAnnotations(const google::protobuf::Map<std::string, std::string>& annotations,
                               const std::vector<std::string>& allowed_keys);

// Whether such an effect has the content that the contract describes. `allowed_keys` are keys of
// Kubernetes that plugins may change nevertheless. OK for other kinds of effects. Whether an event
// may be about its object is checked by CheckObjectWrite. Pure.
// Errors: INTERNAL, with the fault.
absl::Status CheckPodEffect(const v1beta1::Effect& effect,
                            const std::vector<std::string>& allowed_keys);

}  // namespace outboard::framework

#endif  // OUTBOARD_SHIM_FRAMEWORK_POD_EFFECTS_H_
