// Nodes as real publishers label them, for text cases.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_TESTING_RECORDED_NODES_H_
#define OUTBOARD_PLUGIN_HOST_SDK_TESTING_RECORDED_NODES_H_

#include <yaml-cpp/yaml.h>

#include "absl/status/statusor.h"

namespace outboard::sdk::testing {

// A node of a text case that may say `recorded: NAME`: the labels and allocatable amounts of the
// node NAME in integration/publishers/recorded/gpu_nodes.yaml. Other fields of `yaml` are kept, and
// its labels and amounts replace recorded ones. Without `recorded`, `yaml` itself.
//
// Errors:
// - NOT_FOUND: no such node, or the file is missing (the working directory is not the repository).
absl::StatusOr<YAML::Node> WithRecordedNode(const YAML::Node& yaml);

}  // namespace outboard::sdk::testing

#endif  // OUTBOARD_PLUGIN_HOST_SDK_TESTING_RECORDED_NODES_H_
