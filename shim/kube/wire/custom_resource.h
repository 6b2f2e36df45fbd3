// Bodies of writes of custom objects.
//
// Threading: pure functions.
// Errors: InvalidArgument with the reason.
#ifndef OUTBOARD_SHIM_KUBE_WIRE_CUSTOM_RESOURCE_H_
#define OUTBOARD_SHIM_KUBE_WIRE_CUSTOM_RESOURCE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "outboard/v1beta1/effect.pb.h"
#include "shim/kube/wire/custom_resource_name.h"

namespace outboard::kube {

// The document that `put` writes: its JSON with the object's identity and the preconditions filled
// in. Rejected unless it is an object of the resource.
absl::StatusOr<std::string> BodyOf(const v1beta1::PutObject& put);

// The patch with the preconditions filled in. Rejected unless it is a JSON object.
absl::StatusOr<std::string> BodyOf(const v1beta1::PatchObject& patch);

}  // namespace outboard::kube

#endif  // OUTBOARD_SHIM_KUBE_WIRE_CUSTOM_RESOURCE_H_
