// Kubernetes' selectors, for the shim's own checks. These are rare, so nothing is compiled ahead.
#ifndef OUTBOARD_SHIM_FRAMEWORK_SELECTORS_H_
#define OUTBOARD_SHIM_FRAMEWORK_SELECTORS_H_

#include <string>

#include "google/protobuf/map.h"
#include "outboard/v1beta1/types.pb.h"

namespace outboard::framework {

using LabelMap = google::protobuf::Map<std::string, std::string>;

// Whether the labels fulfil the selector; an empty selector matches everything. A requirement that
// the API server would not accept is not fulfilled. Pure.
bool Matches(const v1beta1::LabelSelector& selector, const LabelMap& labels);

// Whether the node fulfils the term; a term without requirements matches no node. Pure.
bool Matches(const v1beta1::NodeSelectorTerm& term, const v1beta1::Node& node);
// Whether the node fulfils one of the terms. Pure.
bool Matches(const v1beta1::NodeSelector& selector, const v1beta1::Node& node);

}  // namespace outboard::framework

#endif  // OUTBOARD_SHIM_FRAMEWORK_SELECTORS_H_
