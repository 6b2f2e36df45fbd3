// Objects of custom resources, in manifests and as they are written.
//
// Threading: pure functions. Errors: InvalidArgument, saying what is wrong.
#ifndef OUTBOARD_SHIM_KUBE_WIRE_CUSTOM_RESOURCE_H_
#define OUTBOARD_SHIM_KUBE_WIRE_CUSTOM_RESOURCE_H_

#include <string>

#include "absl/status/statusor.h"
#include "proto/outboard/v1alpha1/effect.pb.h"
#include "shim/kube/wire/custom_resource_name.h"
#include "shim/kube/wire/object_reader.h"

namespace outboard::kube {

// Whether an object of a manifest is one of the resource. Manifests do not say the plural: it is
// guessed from the kind as kubectl does.
bool IsOf(const CustomResourceName& resource, const OtherObject& object);

// The document that `put` writes: its JSON with what names the object and the preconditions filled
// in. Refused unless it is an object of the resource.
absl::StatusOr<std::string> BodyOf(const v1alpha1::PutObject& put);

// The patch with the preconditions filled in. Refused unless it is a JSON object.
absl::StatusOr<std::string> BodyOf(const v1alpha1::PatchObject& patch);

}  // namespace outboard::kube

#endif  // OUTBOARD_SHIM_KUBE_WIRE_CUSTOM_RESOURCE_H_
