// Kubernetes' rules for names, label keys and label values. Each function returns the fault, or ""
// if the text is valid.
//
// Threading: pure functions.
#ifndef OUTBOARD_SHIM_KUBE_WIRE_NAME_RULES_H_
#define OUTBOARD_SHIM_KUBE_WIRE_NAME_RULES_H_

#include <string>

#include "absl/strings/string_view.h"

namespace outboard::kube {

// A name as one segment of an API path, as upstream's IsValidPathSegmentName: neither "." nor "..",
// without "/" and "%"; not empty.
std::string CheckPathSegment(absl::string_view name);
// Names of pods and nodes: RFC 1123 subdomain.
std::string CheckSubdomain(absl::string_view name);
// Names of namespaces and containers: RFC 1123 label.
std::string CheckDnsLabel(absl::string_view name);
// Keys of labels and taints, names of resources and gates: [prefix/]name.
std::string CheckQualifiedName(absl::string_view name);
std::string CheckLabelValue(absl::string_view value);

}  // namespace outboard::kube

#endif  // OUTBOARD_SHIM_KUBE_WIRE_NAME_RULES_H_
