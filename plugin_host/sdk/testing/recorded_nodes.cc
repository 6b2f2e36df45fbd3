#include "plugin_host/sdk/testing/recorded_nodes.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace outboard::sdk::testing {
namespace {

constexpr char kFile[] = "integration/publishers/recorded/gpu_nodes.yaml";

YAML::Node Merged(const YAML::Node& recorded, const YAML::Node& given) {
  YAML::Node merged;
  for (const YAML::Node& part : {recorded, given}) {
    for (const auto& entry : part) merged[entry.first.as<std::string>()] = entry.second;
  }
  return merged;
}

}  // namespace

absl::StatusOr<YAML::Node> WithRecordedNode(const YAML::Node& yaml) {
  if (!yaml.IsMap() || !yaml["recorded"]) return yaml;
  const std::string name = yaml["recorded"].as<std::string>();
  try {  // yaml-cpp throws.
    for (const YAML::Node& manifest : YAML::LoadAllFromFile(kFile)) {
      if (manifest["metadata"]["name"].as<std::string>() != name) continue;
      YAML::Node node;
      node["name"] = name;
      for (const auto& entry : yaml) {
        const std::string key = entry.first.as<std::string>();
        if (key != "recorded") node[key] = entry.second;
      }
      node["labels"] = Merged(manifest["metadata"]["labels"], yaml["labels"]);
      node["allocatable"] = Merged(manifest["status"]["allocatable"], yaml["allocatable"]);
      return node;
    }
  } catch (const YAML::Exception& exception) {
    return absl::NotFoundError(absl::StrCat(kFile, ": ", exception.what()));
  }
  return absl::NotFoundError(absl::StrCat(kFile, " has no node ", name));
}

}  // namespace outboard::sdk::testing
