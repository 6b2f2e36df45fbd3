#include "shim/hosts/plugin_declarations.h"

#include <glog/logging.h>

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shim/framework/answer_check.h"
#include "shim/hosts/needed_fields.h"
#include "shim/kube/wire/custom_resource_name.h"

namespace outboard::hosts {
namespace {

// Why plugins cannot declare the resource at all; "" if they can.
std::string DeclarationProblem(const v1beta1::DeclaredResource& wanted) {
  const auto name = kube::ParseCustomResourceName(wanted.resource());
  if (!name.ok()) {
    return absl::StrCat(" declares resource ", framework::CutText(wanted.resource()), ": ",
                        name.status().message());
  }
  if (!kube::IsWriteOnly(*name) || !wanted.verbs().empty()) return "";
  return absl::StrCat(" declares ", wanted.resource(),
                      " without verbs; hosts get these objects as messages of their own, and "
                      "plugins may only write them");
}

void CheckCustomResources(const config::Config& config, const std::string& profile,
                          const v1beta1::PluginInfo& plugin, std::vector<std::string>* problems) {
  for (const v1beta1::DeclaredResource& wanted : plugin.declared_resources()) {
    const std::string problem = wanted.optional() ? "" : DeclarationProblem(wanted);
    if (!problem.empty()) {
      problems->push_back(absl::StrCat(config.file, ": profile \"", profile, "\": plugin ",
                                       plugin.name(), problem));
      continue;
    }
    const auto& rules = config.shim.custom_resources;
    const auto rule = std::find_if(rules.begin(), rules.end(), [&](const auto& known) {
      return known.resource == wanted.resource();
    });
    if (rule != rules.end() && Allows(*rule, wanted)) continue;
    std::vector<absl::string_view> all;
    for (const int verb : wanted.verbs())
      all.push_back(config::VerbName(static_cast<v1beta1::DeclaredResource::Verb>(verb)));
    if (wanted.optional()) {
      if (rule == rules.end()) continue;
      LOG(WARNING) << "Profile \"" << profile << "\": plugin " << plugin.name()
                   << " writes nothing to " << wanted.resource()
                   << ": customResources does not allow it with all of the verbs ["
                   << absl::StrJoin(all, ", ") << "]";
      continue;
    }
    problems->push_back(absl::StrCat(
        config.file, ": profile \"", profile, "\": plugin ", plugin.name(),
        " needs a custom resource that customResources does not allow; add to it: {resource: ",
        wanted.resource(), ", verbs: [", absl::StrJoin(all, ", "), "]}"));
  }
}

}  // namespace

bool Allows(const config::CustomResourceRule& rule, const v1beta1::DeclaredResource& wanted) {
  return absl::c_all_of(wanted.verbs(),
                        [&](int verb) { return absl::c_linear_search(rule.verbs, verb); });
}

void CheckDeclarations(const config::Config& config, const std::string& profile,
                       const v1beta1::PluginInfo& plugin, std::vector<std::string>* problems) {
  CheckCustomResources(config, profile, plugin, problems);
  const std::string problem = NeededFieldProblem(plugin, config.shim.reading.environment_variables);
  if (problem.empty()) return;
  problems->push_back(absl::StrCat(config.file, ": profile \"", profile, "\": plugin ",
                                   plugin.name(), " ", problem));
}

}  // namespace outboard::hosts
