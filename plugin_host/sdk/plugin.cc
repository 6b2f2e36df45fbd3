#include "plugin_host/sdk/plugin.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace outboard::sdk {
namespace {

// `preFilter`, as in configurations.
std::string ConfigNameOf(ExtensionPoint point) {
  std::string name;
  absl::string_view text = v1beta1::ExtensionPoint_Name(point);
  absl::ConsumePrefix(&text, "EXTENSION_POINT_");
  for (const absl::string_view word : absl::StrSplit(text, '_')) {
    std::string lower = absl::AsciiStrToLower(word);
    if (!name.empty()) lower[0] = absl::ascii_toupper(static_cast<unsigned char>(lower[0]));
    name += lower;
  }
  return name;
}

}  // namespace

v1beta1::ClusterEvent WakeOn(std::string resource,
                             std::initializer_list<v1beta1::ClusterEvent::Action> actions) {
  v1beta1::ClusterEvent event;
  event.set_resource(std::move(resource));
  for (auto action : actions) event.add_actions(action);
  return event;
}

v1beta1::DeclaredResource UsesResource(
    std::string resource, std::initializer_list<v1beta1::DeclaredResource::Verb> verbs) {
  v1beta1::DeclaredResource used;
  used.set_resource(std::move(resource));
  for (const v1beta1::DeclaredResource::Verb verb : verbs) used.add_verbs(verb);
  return used;
}

std::vector<std::string> SignedParts(const std::vector<std::string>& needed_fields,
                                     std::initializer_list<std::string> parts) {
  std::vector<std::string> all = parts;
  for (absl::string_view field : needed_fields) {
    if (!absl::ConsumePrefix(&field, "Pod.")) continue;
    if (absl::StartsWith(field, "metadata.annotations['") || field == "spec.serviceAccountName" ||
        field == "spec.priorityClassName" || field == "spec.runtimeClassName") {
      all.emplace_back(field);
    } else if (absl::StartsWith(field, "status.conditions['")) {
      all.emplace_back("status.conditions");
    }
  }
  return all;
}

v1beta1::Interest InterestIn(ExtensionPoint point, std::initializer_list<std::string> fields) {
  v1beta1::Interest interest;
  interest.set_extension_point(point);
  for (const auto& field : fields) interest.add_any_field_set(field);
  return interest;
}

v1beta1::Interest InterestInEveryPodAtPreBind() {
  v1beta1::Interest interest;
  interest.set_extension_point(v1beta1::EXTENSION_POINT_PRE_BIND);
  interest.set_every_pod(true);
  return interest;
}

void RequireEarlierPoint(PluginDescriptor* descriptor, ExtensionPoint point,
                         ExtensionPoint earlier) {
  descriptor->create =
      [create = std::move(descriptor->create), point,
       earlier](const PluginContext& context) -> absl::StatusOr<std::unique_ptr<Plugin>> {
    if (!context.points.contains(point) || context.points.contains(earlier)) return create(context);
    return absl::InvalidArgumentError(absl::StrCat("must be enabled at ", ConfigNameOf(earlier),
                                                   ", too, where it prepares what ",
                                                   ConfigNameOf(point), " reads"));
  };
}

}  // namespace outboard::sdk
