// What a field that Kubernetes does not know was meant to be.
//
// Threading: pure function.
#ifndef OUTBOARD_CLI_MANIFESTS_FIELD_SUGGESTION_H_
#define OUTBOARD_CLI_MANIFESTS_FIELD_SUGGESTION_H_

#include <string>

#include "google/protobuf/descriptor.h"
#include "shim/kube/wire/document.h"

namespace outboard::manifests {

// "; did you mean NAME?" with a similar name beside the field, or with the path of a field of the
// same name elsewhere in the object. "" if there is neither. `root` is the object's type, `path`
// the path of the unknown field.
std::string SuggestField(const google::protobuf::Descriptor* root, const kube::FieldPath& path);

}  // namespace outboard::manifests

#endif  // OUTBOARD_CLI_MANIFESTS_FIELD_SUGGESTION_H_
