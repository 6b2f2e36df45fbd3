#include "shim/hosts/group_points.h"

#include "absl/strings/str_cat.h"
#include "shim/framework/host_client.h"

namespace outboard::hosts {
namespace {

// Where the profile enables the plugin at the point; the profile if multiPoint or a default does.
config::Location WhereEnabled(const config::Config& config, const std::string& profile,
                              v1beta1::ExtensionPoint point) {
  for (const config::ProfileSpec& spec : config.scheduler.profiles) {
    if (spec.scheduler_name != profile) continue;
    const auto set = spec.points.find(point);
    if (set == spec.points.end() || set->second.enabled.empty()) return spec.where;
    return set->second.enabled.front().where;
  }
  return config::Location();
}

std::string Prefix(const config::Config& config, const std::string& profile,
                   v1beta1::ExtensionPoint point) {
  const config::Location where = WhereEnabled(config, profile, point);
  if (where.line == 0) return absl::StrCat(config.file, ": ");
  return absl::StrCat(config.file, ":", where.line, ":", where.column, ": ", where.path, ": ");
}

bool CanTakeSteps(const framework::ProfilePlan& plan, const HostInfos& infos) {
  if (plan.num_algorithm_hosts() != 1 || !plan.algorithm.shares.empty()) return false;
  const auto info = infos.find(plan.host_names.front());
  if (info == infos.end()) return false;
  for (const v1beta1::Capability needed :
       {v1beta1::CAPABILITY_FUSED_CYCLE, v1beta1::CAPABILITY_GROUP_PLAN,
        v1beta1::CAPABILITY_GROUP_PLACEMENTS}) {
    if (!framework::HasCapability(info->second, needed)) return false;
  }
  return true;
}

}  // namespace

void CheckGroupPoints(const config::Config& config, const framework::ProfilePlan& plan,
                      const HostInfos& infos, std::vector<std::string>* problems,
                      std::vector<std::string>* warnings) {
  if (plan.placement_generate.empty()) return;
  const std::string what =
      absl::StrCat(Prefix(config, plan.algorithm.name, v1beta1::EXTENSION_POINT_PLACEMENT_GENERATE),
                   "plugin \"", plan.placement_generate.front().plugins.front().name,
                   "\" at placementGenerate of profile \"", plan.algorithm.name, "\" ");
  if (!CanTakeSteps(plan, infos)) {
    problems->push_back(
        absl::StrCat(what,
                     "needs one host with the capabilities FUSED_CYCLE, GROUP_PLAN and "
                     "GROUP_PLACEMENTS for all plugins from preFilter to score"));
  } else if (plan.permit.empty()) {
    warnings->push_back(
        absl::StrCat(what, "has no effect: without a plugin at permit no pod is in a group"));
  }
}

}  // namespace outboard::hosts
