#include "plugins/cost_optimized/spot_wish.h"

#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "plugin_host/sdk/custom_objects.h"
#include "plugin_host/sdk/validation.h"

namespace outboard::cost_optimized {
namespace {

constexpr char kWanted[] = "welcome, averse or neutral";
constexpr SpotWish kWishes[] = {SpotWish::kWelcome, SpotWish::kAverse, SpotWish::kNeutral};

SpotWish ReadWish(const sdk::ArgsObject& object, const std::string& key, SpotWish default_value) {
  // Of another type: already a problem.
  const std::string text = object.String(key, SpotWishName(default_value));
  const std::optional<SpotWish> wish = ParseSpotWish(text);
  if (!wish) object.Problem(key, sdk::NotSupported(text, {"welcome", "averse", "neutral"}));
  return wish.value_or(default_value);
}

void Warn(sdk::MalformedValues* malformed, const std::string& object, const char* key,
          const std::string& value, const char* wanted) {
  if (malformed != nullptr) malformed->Warn(object, key, value, wanted);
}

std::string NameForPeople(const v1beta1::Pod& pod) {
  return absl::StrCat("pod ", pod.namespace_(), "/", pod.name());
}

bool IsPriorityClass(const v1beta1::ClusterObject& object) {
  return object.has_generic_object() && object.generic_object().resource() == kPriorityClasses;
}

std::string NameForPeople(const v1beta1::GenericObject& priority_class) {
  return absl::StrCat("PriorityClass ", priority_class.name());
}

}  // namespace

const char kSpotSchema[] = R"json("spot": {"type": "object", "additionalProperties": false,
      "description": "Which pods want spot nodes, where neither the pod nor its PriorityClass says.",
      "properties": {
        "training": {"enum": ["welcome", "averse", "neutral"], "default": "averse",
          "description": "Training without checkpoints."},
        "checkpointedTraining": {"enum": ["welcome", "averse", "neutral"], "default": "neutral",
          "description": "Training with the annotation outboard/checkpointing."},
        "inference": {"enum": ["welcome", "averse", "neutral"], "default": "neutral"},
        "other": {"enum": ["welcome", "averse", "neutral"], "default": "neutral"},
        "priorityClasses": {"type": "object",
          "additionalProperties": {"enum": ["welcome", "averse", "neutral"]}, "description":
          "By priorityClassName, for classes without the annotation outboard/spot."}}})json";

const char* SpotWishName(SpotWish wish) {
  switch (wish) {
    case SpotWish::kWelcome:
      return "welcome";
    case SpotWish::kAverse:
      return "averse";
    case SpotWish::kNeutral:
      break;
  }
  return "neutral";
}

std::optional<SpotWish> ParseSpotWish(absl::string_view text) {
  for (const SpotWish wish : kWishes) {
    if (absl::EqualsIgnoreCase(text, SpotWishName(wish))) return wish;
  }
  return std::nullopt;
}

v1beta1::DeclaredResource PriorityClassResource() {
  v1beta1::DeclaredResource resource;
  resource.set_resource(kPriorityClasses);
  resource.set_optional(true);
  return resource;
}

SpotRules SpotRules::Read(const sdk::ArgsObject& root) {
  SpotRules rules;
  rules.types_ = sdk::WorkloadTypes::Read(root);
  const sdk::ArgsObject spot = root.Object("spot");
  rules.training_ = ReadWish(spot, "training", rules.training_);
  rules.checkpointed_training_ =
      ReadWish(spot, "checkpointedTraining", rules.checkpointed_training_);
  rules.inference_ = ReadWish(spot, "inference", rules.inference_);
  rules.other_ = ReadWish(spot, "other", rules.other_);
  const sdk::ArgsObject classes = spot.Object("priorityClasses");
  for (const std::string& name : classes.Keys())
    rules.by_class_[name] = ReadWish(classes, name, SpotWish::kNeutral);
  return rules;
}

SpotWish SpotRules::WishOf(const v1beta1::Pod& pod, sdk::MalformedValues* malformed) const {
  for (const sdk::StringMap* map : {&pod.annotations(), &pod.labels()}) {
    const std::string* text = sdk::FindValue(*map, kSpotKey);
    if (text == nullptr) continue;
    if (const std::optional<SpotWish> wish = ParseSpotWish(*text)) return *wish;
    Warn(malformed, NameForPeople(pod), kSpotKey, *text, kWanted);
  }
  if (!pod.priority_class_name().empty()) {
    for (const auto* classes : {&by_annotated_class_, &by_class_}) {
      const auto it = classes->find(pod.priority_class_name());
      if (it != classes->end()) return it->second;
    }
  }
  return WishOfWorkload(pod, malformed);
}

SpotWish SpotRules::WishOfWorkload(const v1beta1::Pod& pod, sdk::MalformedValues* malformed) const {
  switch (types_.TypeOf(pod)) {
    case sdk::WorkloadType::kInference:
      return inference_;
    case sdk::WorkloadType::kOther:
      return other_;
    case sdk::WorkloadType::kTraining:
      break;
  }
  const std::string* text = sdk::FindValue(pod.annotations(), kCheckpointingAnnotation);
  if (text == nullptr) return training_;
  const std::optional<bool> checkpointing = sdk::ParseBool(*text);
  if (!checkpointing)
    Warn(malformed, NameForPeople(pod), kCheckpointingAnnotation, *text, "true or false");
  return checkpointing.value_or(false) ? checkpointed_training_ : training_;
}

void SpotRules::SetObject(const v1beta1::ClusterObject& object, sdk::MalformedValues* malformed) {
  if (!IsPriorityClass(object)) return;
  const v1beta1::GenericObject& priority_class = object.generic_object();
  by_annotated_class_.erase(priority_class.name());
  const std::map<std::string, std::string> annotations =
      sdk::StringsAt(sdk::ParseCustomObject(priority_class), {"metadata", "annotations"});
  const auto text = annotations.find(kSpotKey);
  if (text == annotations.end()) return;
  const std::optional<SpotWish> wish = ParseSpotWish(text->second);
  if (!wish) return Warn(malformed, NameForPeople(priority_class), kSpotKey, text->second, kWanted);
  by_annotated_class_[priority_class.name()] = *wish;
}

void SpotRules::RemoveObject(const v1beta1::ClusterObject& object,
                             sdk::MalformedValues* malformed) {
  if (!IsPriorityClass(object)) return;
  by_annotated_class_.erase(object.generic_object().name());
  if (malformed != nullptr) malformed->Forget(NameForPeople(object.generic_object()));
}

}  // namespace outboard::cost_optimized
