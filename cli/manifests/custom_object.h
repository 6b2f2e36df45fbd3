// Matches objects of a manifest with custom resources.
//
// Threading: pure function.
#ifndef OUTBOARD_CLI_MANIFESTS_CUSTOM_OBJECT_H_
#define OUTBOARD_CLI_MANIFESTS_CUSTOM_OBJECT_H_

#include "cli/manifests/drafts.h"
#include "shim/kube/wire/custom_resource_name.h"

namespace outboard::manifests {

// Whether an object of a manifest belongs to the resource. Manifests have no plural names: guesses
// the plural from the kind, like kubectl.
bool IsOf(const kube::CustomResourceName& resource, const OtherObject& object);

}  // namespace outboard::manifests

#endif  // OUTBOARD_CLI_MANIFESTS_CUSTOM_OBJECT_H_
