// Nodes and pods of text cases: YAML with the contract's fields in camelCase.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_TESTING_OBJECT_YAML_H_
#define OUTBOARD_PLUGIN_HOST_SDK_TESTING_OBJECT_YAML_H_

#include <yaml-cpp/yaml.h>

#include <string>

#include "absl/status/statusor.h"
#include "outboard/v1beta1/objects.pb.h"
#include "outboard/v1beta1/types.pb.h"

namespace outboard::sdk::testing {

// Quantities, operators, effects and policies as in Kubernetes; `requests` of a pod means those of
// its one container. Errors name the field.
absl::StatusOr<v1beta1::Pod> PodFromYaml(const YAML::Node& yaml);
absl::StatusOr<v1beta1::Node> NodeFromYaml(const YAML::Node& yaml);
// `{persistentVolume: {name: pv1, …}}`: the kind's field of ClusterObject, and the object;
// namespace `default` and a uid from the name unless given.
absl::StatusOr<v1beta1::ClusterObject> ObjectFromYaml(const YAML::Node& yaml);
// A plugin's arguments as JSON; plain scalars become numbers or booleans if they look like them.
std::string YamlToJson(const YAML::Node& yaml);

}  // namespace outboard::sdk::testing

#endif  // OUTBOARD_PLUGIN_HOST_SDK_TESTING_OBJECT_YAML_H_
