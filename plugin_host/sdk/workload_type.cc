#include "plugin_host/sdk/workload_type.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "plugin_host/sdk/label_values.h"
#include "plugin_host/sdk/validation.h"

namespace outboard::sdk {
namespace {

WorkloadTraits ReadTraits(const ArgsObject& args, const WorkloadTraits& defaults) {
  WorkloadTraits traits;
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

bool OwnedBy(const v1beta1::Pod& pod, const WorkloadTraits& traits) {
  return pod.has_controller() && std::find(traits.owner_kinds.begin(), traits.owner_kinds.end(),
                                           pod.controller().kind()) != traits.owner_kinds.end();
}

bool HasImage(const std::vector<std::string>& names, const WorkloadTraits& traits) {
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    return std::any_of(traits.images.begin(), traits.images.end(),
                       [&](const std::string& part) { return absl::StrContains(name, part); });
  });
}

// The type if exactly one matches.
WorkloadType Decide(bool training, bool inference) {
  if (training == inference) return WorkloadType::kOther;
  return training ? WorkloadType::kTraining : WorkloadType::kInference;
}

}  // namespace

std::string ImageName(absl::string_view image) {
  image = image.substr(0, image.find('@'));
  const size_t slash = image.find('/');
  if (slash != absl::string_view::npos) {
    const absl::string_view first = image.substr(0, slash);
    // As container runtimes distinguish a registry from a part of the name.
    if (first == "localhost" || first.find_first_of(".:") != absl::string_view::npos)
      image.remove_prefix(slash + 1);
  }
  const size_t last = image.rfind('/');
  const size_t colon = image.find(':', last == absl::string_view::npos ? 0 : last);
  return absl::AsciiStrToLower(image.substr(0, colon));
}

std::string WorkloadTypesSchema() {
  constexpr char kTraits[] =
      R"json({"type": "object", "additionalProperties": false, "properties": {
      "ownerKinds": {"type": "array", "items": {"type": "string"}, "description": "Kinds of the pod's controller."},
      "images": {"type": "array", "items": {"type": "string"}, "description": "Parts of images' names, without registry and tag."}}})json";
  return absl::StrCat(R"("training": )", kTraits, ",\n    \"inference\": ", kTraits);
}

WorkloadTypes WorkloadTypes::Read(const ArgsObject& root) {
  WorkloadTypes types;
  types.training_ = ReadTraits(
      root.Object("training"),
      {{"PyTorchJob", "TFJob", "MPIJob", "JAXJob", "PaddleJob", "XGBoostJob", "TrainJob"},
       {"train", "deepspeed", "megatron", "axolotl"}});
  types.inference_ = ReadTraits(root.Object("inference"),
                                {{"InferenceService"},
                                 {"inference", "serving", "vllm", "sglang", "tritonserver",
                                  "torchserve", "ollama", "lmdeploy", "llama.cpp"}});
  return types;
}

WorkloadType WorkloadTypes::TypeOf(const v1beta1::Pod& pod) const {
  if (const std::string* label = FindValue(pod.labels(), kWorkloadTypeLabel)) {
    if (absl::EqualsIgnoreCase(*label, "training")) return WorkloadType::kTraining;
    if (absl::EqualsIgnoreCase(*label, "inference")) return WorkloadType::kInference;
    return WorkloadType::kOther;
  }
  const bool trains = OwnedBy(pod, training_), infers = OwnedBy(pod, inference_);
  if (trains || infers) return Decide(trains, infers);
  std::vector<std::string> names;
  for (const v1beta1::Container& container : pod.containers())
    names.push_back(ImageName(container.image()));
  return Decide(HasImage(names, training_), HasImage(names, inference_));
}

}  // namespace outboard::sdk
