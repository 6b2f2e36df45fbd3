#include "plugin_host/runtime/shim_problems.h"

#include <set>
#include <string>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "proto/short_names.h"

namespace outboard::runtime {
namespace {

using v1beta1::ConfigProblem;
using v1beta1::DeclaredResource;

constexpr absl::string_view kDefaultBinder = "DefaultBinder";
constexpr absl::string_view kBackgroundWrites = "effect";  // the field of SyncResponse.push

// Whether a path has this form: `…['KEY']` stands for every key.
bool HasForm(absl::string_view path, absl::string_view form) {
  const size_t key = form.find("['");
  if (key == absl::string_view::npos) return path == form;
  return absl::StartsWith(path, form.substr(0, key + 2)) && absl::EndsWith(path, "']");
}

// The field of Effect.action that a write needs; empty: unknown.
absl::string_view EffectOf(int verb) {
  switch (verb) {
    case DeclaredResource::VERB_CREATE:
    case DeclaredResource::VERB_UPDATE:
    case DeclaredResource::VERB_UPDATE_STATUS:
      return "put_object";
    case DeclaredResource::VERB_DELETE:
      return "delete_object";
    case DeclaredResource::VERB_PATCH:
    case DeclaredResource::VERB_PATCH_STATUS:
      return "patch_object";
    default:
      return "";
  }
}

}  // namespace

std::vector<ConfigProblem> ShimProblems(const v1beta1::ProfileConfig& profile,
                                        const v1beta1::PluginInfo& plugin,
                                        const v1beta1::ShimInfo& shim) {
  std::set<std::string> missing;  // sorted, so that the answer is the same each time
  for (const v1beta1::PointConfig& point : profile.points()) {
    const v1beta1::ExtensionPoint number = point.extension_point();
    if (!absl::c_linear_search(point.plugins(), plugin.name())) continue;
    // At this name the shim binds, without a call.
    if (number == v1beta1::EXTENSION_POINT_BIND && plugin.name() == kDefaultBinder) continue;
    if (!absl::c_linear_search(shim.extension_points(), number)) {
      missing.insert(
          absl::StrCat("the shim does not call plugins at extension point ", ShortName(number)));
    }
  }
  for (const v1beta1::ClusterEvent& event : plugin.wake_up_events()) {
    for (const int action : event.actions()) {
      if (absl::c_linear_search(shim.event_actions(), action)) continue;
      missing.insert(absl::StrCat("the shim does not know action ",
                                  ShortName(static_cast<v1beta1::ClusterEvent::Action>(action)),
                                  " of event ", event.resource()));
    }
  }
  for (const std::string& path : plugin.needed_fields()) {
    if (absl::c_any_of(shim.needed_fields(),
                       [&](const std::string& form) { return HasForm(path, form); }))
      continue;
    missing.insert(absl::StrCat("the shim does not send field ", path));
  }
  for (const DeclaredResource& resource : plugin.declared_resources()) {
    if (resource.optional()) continue;
    for (const int verb : resource.verbs()) {
      const absl::string_view effect = EffectOf(verb);
      if (!effect.empty() && !absl::c_linear_search(shim.effects(), effect)) {
        missing.insert(absl::StrCat("the shim does not carry out effect ", effect, ", which ",
                                    resource.resource(), " needs"));
      }
    }
    if (!resource.verbs().empty() && !absl::c_linear_search(shim.pushes(), kBackgroundWrites)) {
      missing.insert(
          absl::StrCat("the shim does not write ", resource.resource(), " in the background"));
    }
  }
  std::vector<ConfigProblem> problems;
  for (const std::string& message : missing) {
    ConfigProblem& problem = problems.emplace_back();
    problem.set_profile(profile.name());
    problem.set_plugin(plugin.name());
    problem.set_message(message);
    problem.set_severity(ConfigProblem::SEVERITY_WARNING);
  }
  return problems;
}

int CountErrors(const google::protobuf::RepeatedPtrField<ConfigProblem>& problems) {
  return static_cast<int>(absl::c_count_if(problems, [](const ConfigProblem& problem) {
    return problem.severity() != ConfigProblem::SEVERITY_WARNING;
  }));
}

}  // namespace outboard::runtime
