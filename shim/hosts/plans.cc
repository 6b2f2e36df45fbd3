#include "shim/hosts/plans.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "shim/queue/cluster_event.h"

namespace outboard::hosts {
namespace {

using v1alpha1::ExtensionPoint;
using v1alpha1::GetHostInfoResponse;
using v1alpha1::PluginInfo;

constexpr char kPrioritySort[] = "PrioritySort";
constexpr char kNodeResourcesFit[] = "NodeResourcesFit";
constexpr char kNodePorts[] = "NodePorts";

const PluginInfo* FindPlugin(const GetHostInfoResponse& info, const std::string& name) {
  for (const PluginInfo& plugin : info.plugins()) {
    if (plugin.name() == name) return &plugin;
  }
  return nullptr;
}

bool Serves(const GetHostInfoResponse& info, const std::string& name, ExtensionPoint point) {
  const PluginInfo* plugin = FindPlugin(info, name);
  return plugin != nullptr &&
         std::find(plugin->extension_points().begin(), plugin->extension_points().end(), point) !=
             plugin->extension_points().end();
}

// Plugins of the profile that the host does not serve.
std::vector<std::string> Missing(const config::Profile& profile, const GetHostInfoResponse& info) {
  std::set<std::string> missing;
  for (const auto& [point, plugins] : profile.points) {
    for (const config::EnabledPlugin& plugin : plugins) {
      if (!Serves(info, plugin.name, point)) missing.insert(plugin.name);
    }
  }
  return {missing.begin(), missing.end()};
}

std::vector<cycle::InterestedPlugin> Interested(const config::Profile& profile,
                                                ExtensionPoint point,
                                                const GetHostInfoResponse& info) {
  std::vector<cycle::InterestedPlugin> result;
  for (const config::EnabledPlugin& enabled : profile.at(point)) {
    cycle::InterestedPlugin plugin;
    plugin.name = enabled.name;
    bool is_called = true;
    for (const v1alpha1::Interest& interest : FindPlugin(info, enabled.name)->interests()) {
      if (interest.extension_point() != point) continue;
      plugin.fields.assign(interest.any_field_set().begin(), interest.any_field_set().end());
      is_called = !plugin.fields.empty();
    }
    if (is_called) result.push_back(std::move(plugin));
  }
  return result;
}

std::vector<std::string> Names(const std::vector<config::EnabledPlugin>& plugins) {
  std::vector<std::string> names;
  for (const config::EnabledPlugin& plugin : plugins) names.push_back(plugin.name);
  return names;
}

// What the administrator exempts from the shim's own check. Arguments that are not as they should
// be are the host's to complain about.
cycle::GuardScope GuardOf(const config::Profile& profile) {
  cycle::GuardScope scope;
  const auto filters = [&](absl::string_view name) {
    const auto& plugins = profile.at(v1alpha1::FILTER);
    return std::any_of(plugins.begin(), plugins.end(),
                       [&](const auto& plugin) { return plugin.name == name; });
  };
  scope.resources = filters(kNodeResourcesFit);
  scope.ports = filters(kNodePorts);
  for (const config::PluginArgs& args : profile.args) {
    if (args.name != kNodeResourcesFit) continue;
    const nlohmann::json json =
        nlohmann::json::parse(args.args_json, nullptr, /*allow_exceptions=*/false);
    const auto strings = [&](const char* field) {
      std::vector<std::string> result;
      if (!json.is_object() || !json.contains(field) || !json[field].is_array()) return result;
      for (const nlohmann::json& item : json[field]) {
        if (item.is_string()) result.push_back(item.get<std::string>());
      }
      return result;
    };
    scope.ignored_resources = strings("ignoredResources");
    scope.ignored_resource_groups = strings("ignoredResourceGroups");
  }
  return scope;
}

cycle::ProfilePlan MakePlan(const config::Profile& profile, const std::string& host_name,
                            const GetHostInfoResponse& info) {
  cycle::ProfilePlan plan;
  plan.host_name = host_name;
  plan.algorithm.name = profile.name;
  plan.algorithm.percentage_of_nodes_to_score =
      static_cast<uint32_t>(profile.percentage_of_nodes_to_score);
  plan.algorithm.pre_filter_plugins = Names(profile.at(v1alpha1::PRE_FILTER));
  plan.algorithm.filter_plugins = Names(profile.at(v1alpha1::FILTER));
  plan.algorithm.post_filter_plugins = Names(profile.at(v1alpha1::POST_FILTER));
  plan.algorithm.pre_score_plugins = Names(profile.at(v1alpha1::PRE_SCORE));
  for (const config::EnabledPlugin& plugin : profile.at(v1alpha1::SCORE)) {
    plan.algorithm.score_plugins.push_back({plugin.name, plugin.weight});
  }
  plan.guard = GuardOf(profile);
  plan.pre_enqueue = Interested(profile, v1alpha1::PRE_ENQUEUE, info);
  for (const config::EnabledPlugin& plugin : profile.at(v1alpha1::PRE_ENQUEUE)) {
    const std::vector<std::string>& preempting = plan.algorithm.post_filter_plugins;
    if (std::find(preempting.begin(), preempting.end(), plugin.name) != preempting.end()) {
      plan.preemption_gates.push_back(plugin.name);
    }
  }
  plan.reserve = Interested(profile, v1alpha1::RESERVE, info);
  plan.permit = Interested(profile, v1alpha1::PERMIT, info);
  for (const config::EnabledPlugin& plugin : profile.at(v1alpha1::QUEUE_SORT)) {
    plan.host_sorts = plugin.name != kPrioritySort;
  }
  for (const auto& [point, plugins] : profile.points) {
    for (const config::EnabledPlugin& enabled : plugins) {
      auto& events = plan.wake_up_events[enabled.name];
      if (!events.empty()) continue;
      for (const v1alpha1::ClusterEvent& event : FindPlugin(info, enabled.name)->wake_up_events()) {
        events.push_back(queue::FromContract(event));
      }
    }
  }
  return plan;
}

void AddToConfigure(const config::Profile& profile, v1alpha1::ConfigureRequest* request) {
  v1alpha1::ProfileConfig* configured = request->add_profiles();
  configured->set_name(profile.name);
  for (const auto& [point, plugins] : profile.points) {
    if (plugins.empty()) continue;
    v1alpha1::PointConfig* point_config = configured->add_points();
    point_config->set_extension_point(point);
    for (const config::EnabledPlugin& plugin : plugins) point_config->add_plugins(plugin.name);
  }
  for (const config::PluginArgs& args : profile.args) {
    v1alpha1::PluginArgs* plugin_args = configured->add_args();
    plugin_args->set_plugin(args.name);
    plugin_args->set_args_json(args.args_json);
  }
}

}  // namespace

absl::StatusOr<Plans> MakePlans(const config::Config& config, const HostInfos& infos) {
  config::PluginCatalog catalog;
  for (const auto& [name, info] : infos) catalog.Add(info);
  absl::StatusOr<config::Profiles> resolved = config::ResolveProfiles(config, catalog);
  if (!resolved.ok()) return resolved.status();

  Plans plans;
  std::vector<std::string> problems;
  for (const config::Profile& profile : resolved->profiles) {
    std::string closest;
    std::vector<std::string> missing;
    const config::HostSpec* host = nullptr;
    for (const config::HostSpec& candidate : config.shim.hosts) {
      const auto info = infos.find(candidate.name);
      if (info == infos.end()) continue;
      std::vector<std::string> lacks = Missing(profile, info->second);
      if (lacks.empty()) {
        host = &candidate;
        break;
      }
      if (closest.empty() || lacks.size() < missing.size()) {
        closest = candidate.name;
        missing = std::move(lacks);
      }
    }
    if (host == nullptr) {
      problems.push_back(absl::StrCat(config.file, ": profile \"", profile.name,
                                      "\": no single host serves all of its plugins; host \"",
                                      closest, "\" lacks ", absl::StrJoin(missing, ", ")));
      continue;
    }
    plans.profiles.push_back(MakePlan(profile, host->name, infos.at(host->name)));
    v1alpha1::ConfigureRequest& request = plans.configure[host->name];
    request.set_cycle_deadline_millis(
        static_cast<uint32_t>(absl::ToInt64Milliseconds(config.shim.deadlines.cycle)));
    AddToConfigure(profile, &request);
  }
  if (!problems.empty()) return absl::InvalidArgumentError(absl::StrJoin(problems, "\n"));
  plans.resolved = *std::move(resolved);
  return plans;
}

absl::Status ConfigureError(const config::Config& config, const config::Profiles& profiles,
                            const v1alpha1::ConfigureResponse& response) {
  if (response.problems().empty()) return absl::OkStatus();
  std::vector<std::string> lines;
  for (const v1alpha1::ConfigProblem& problem : response.problems()) {
    std::string where = config.file;
    for (const config::Profile& profile : profiles.profiles) {
      if (profile.name != problem.profile()) continue;
      for (const config::PluginArgs& args : profile.args) {
        if (args.name != problem.plugin() || args.where.line == 0) continue;
        where = absl::StrCat(config.file, ":", args.where.line, ":", args.where.column, ": ",
                             args.where.path);
      }
    }
    if (!problem.field().empty()) absl::StrAppend(&where, ".", problem.field());
    lines.push_back(absl::StrCat(where, ": ", problem.message(), " (profile \"", problem.profile(),
                                 "\", plugin ", problem.plugin(), ")"));
  }
  return absl::InvalidArgumentError(absl::StrJoin(lines, "\n"));
}

cycle::ChangeEncoder::Fields NeededFields(const GetHostInfoResponse& info) {
  cycle::ChangeEncoder::Fields fields;
  for (const PluginInfo& plugin : info.plugins()) {
    for (const std::string& path : plugin.needed_fields()) {
      absl::string_view key = path;
      if (!absl::ConsumeSuffix(&key, "']")) continue;
      if (absl::ConsumePrefix(&key, "Pod.metadata.annotations['")) {
        fields.pod_annotations.insert(std::string(key));
      } else if (absl::ConsumePrefix(&key, "Node.metadata.annotations['")) {
        fields.node_annotations.insert(std::string(key));
      }
    }
  }
  return fields;
}

}  // namespace outboard::hosts
