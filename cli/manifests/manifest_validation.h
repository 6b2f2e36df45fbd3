// Rejects what kube-apiserver rejects and what would break scheduling: invalid names and labels,
// negative or contradictory resources, unknown operators and effects, numbers out of range.
//
// Not Kubernetes' whole validation: ignores fields that Outboard does not read. Returns all faults,
// with the paths of their fields. Call after ApplyDefaults.
//
// Threading: pure functions.
#ifndef OUTBOARD_CLI_MANIFESTS_MANIFEST_VALIDATION_H_
#define OUTBOARD_CLI_MANIFESTS_MANIFEST_VALIDATION_H_

#include <vector>

#include "google/protobuf/message.h"
#include "shim/kube/wire/core_v1.pb.h"
#include "shim/kube/wire/document.h"
#include "shim/kube/wire/scheduling_v1.pb.h"

namespace outboard::manifests {

std::vector<kube::Fault> Validate(const kube::wire::Pod& pod);
std::vector<kube::Fault> Validate(const kube::wire::Node& node);
std::vector<kube::Fault> Validate(const kube::wire::Namespace& ns);
std::vector<kube::Fault> Validate(const kube::wire::PriorityClass& priority_class);
// A message of one of the kinds in object_kinds.h.
std::vector<kube::Fault> ValidateObject(const google::protobuf::Message& message);

}  // namespace outboard::manifests

#endif  // OUTBOARD_CLI_MANIFESTS_MANIFEST_VALIDATION_H_
