#include "plugin_host/sdk/workload_type.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "plugin_host/sdk/label_values.h"
#include "plugin_host/sdk/validation.h"
#include "proto/workloads/workload_type.h"

namespace outboard::sdk {
namespace {

workloads::WorkloadTraits ReadTraits(const ArgsObject& args,
                                     const workloads::WorkloadTraits& defaults) {
  workloads::WorkloadTraits traits;
  traits.owner_kinds = args.Strings("ownerKinds", defaults.owner_kinds);
  traits.images = args.Strings("images", defaults.images);
  for (size_t i = 0; i < traits.owner_kinds.size(); ++i) {
    if (traits.owner_kinds[i].empty())
      args.Problem(absl::StrCat("ownerKinds[", i, "]"), RequiredValue("must not be empty"));
  }
  for (size_t i = 0; i < traits.images.size(); ++i) {
    // An empty part would match every image.
    if (traits.images[i].empty())
      args.Problem(absl::StrCat("images[", i, "]"), RequiredValue("must not be empty"));
    absl::AsciiStrToLower(&traits.images[i]);
  }
  return traits;
}

}  // namespace

std::vector<std::string> WorkloadTypeLabels() {
  std::vector<std::string> keys = workloads::WorkloadLabels();
  keys.insert(keys.begin(), kWorkloadTypeLabel);
  return keys;
}

std::vector<std::string> WorkloadTypeParts() {
  std::vector<std::string> parts = {"spec.containers", "metadata.ownerReferences"};
  for (const std::string& key : WorkloadTypeLabels())
    parts.push_back(absl::StrCat("metadata.labels['", key, "']"));
  return parts;
}

std::string WorkloadTypesSchema() {
  constexpr char kTraits[] =
      R"json({"type": "object", "additionalProperties": false, "properties": {
      "ownerKinds": {"type": "array", "items": {"type": "string"}, "description": "Kinds of the pod's controller."},
      "images": {"type": "array", "items": {"type": "string"}, "description": "Parts of images' names, without registry and tag."}}})json";
  return absl::StrCat(R"("training": )", kTraits, ",\n    \"inference\": ", kTraits);
}

WorkloadTypes WorkloadTypes::Read(const ArgsObject& root) {
  const workloads::WorkloadRules& defaults = workloads::DefaultWorkloadRules();
  auto rules = std::make_shared<workloads::WorkloadRules>();
  rules->training = ReadTraits(root.Object("training"), defaults.training);
  rules->inference = ReadTraits(root.Object("inference"), defaults.inference);
  WorkloadTypes types;
  types.rules_ = std::move(rules);
  return types;
}

WorkloadType WorkloadTypes::TypeOf(const v1beta1::Pod& pod) const {
  if (const std::string* label = FindValue(pod.labels(), kWorkloadTypeLabel)) {
    if (absl::EqualsIgnoreCase(*label, "training")) return WorkloadType::kTraining;
    if (absl::EqualsIgnoreCase(*label, "inference")) return WorkloadType::kInference;
    return WorkloadType::kOther;
  }
  switch (workloads::RecognizeWorkload(
      pod, rules_ == nullptr ? workloads::DefaultWorkloadRules() : *rules_)) {
    case workloads::WorkloadType::kTraining:
      return WorkloadType::kTraining;
    case workloads::WorkloadType::kInference:
      return WorkloadType::kInference;
    default:
      return WorkloadType::kOther;
  }
}

}  // namespace outboard::sdk
