#include "shim/hosts/plans.h"

#include <glog/logging.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shim/framework/answer_check.h"
#include "shim/framework/custom_resources.h"
#include "shim/framework/declared_fields.h"
#include "shim/hosts/group_points.h"
#include "shim/hosts/inline_host.h"
#include "shim/hosts/needed_fields.h"
#include "shim/hosts/plugin_declarations.h"
#include "shim/hosts/shim_info.h"
#include "shim/queue/cluster_event.h"

namespace outboard::hosts {
namespace {

using v1beta1::ExtensionPoint;
using v1beta1::GetHostInfoResponse;
using v1beta1::PluginInfo;

constexpr char kDefaultBinder[] = "DefaultBinder";
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

// The host, by name, of each plugin of a profile.
using HostOfPlugin = std::map<std::string, std::string>;

// For each plugin the first of `hosts` that serves it at all its points in the profile: what a
// plugin computes at one point must be in the same host at the next. `problems` receives plugins
// without a host.
HostOfPlugin AssignHosts(const config::Config& config, const std::vector<std::string>& hosts,
                         const HostInfos& infos, const config::Profile& profile,
                         std::vector<std::string>* problems) {
  std::map<std::string, std::vector<ExtensionPoint>> points_of;
  for (const auto& [point, plugins] : profile.points) {
    for (const config::EnabledPlugin& plugin : plugins) points_of[plugin.name].push_back(point);
  }
  HostOfPlugin assigned;
  for (const auto& [plugin, points] : points_of) {
    for (const std::string& host : hosts) {
      const auto info = infos.find(host);
      if (info == infos.end()) continue;
      if (std::all_of(points.begin(), points.end(), [&, &name = plugin](ExtensionPoint point) {
            return Serves(info->second, name, point);
          })) {
        assigned[plugin] = host;
        break;
      }
    }
    if (assigned.count(plugin) == 0) {
      problems->push_back(absl::StrCat(config.file, ": profile \"", profile.name,
                                       "\": no host serves plugin \"", plugin,
                                       "\" at all of its points"));
    }
  }
  return assigned;
}

// Whether the plugin may request writes of objects; optional resources count only if they are
// allowed.
bool WritesObjects(v1beta1::PluginInfo plugin, const config::Config& config) {
  for (v1beta1::DeclaredResource& used : *plugin.mutable_declared_resources()) {
    const bool may = absl::c_any_of(config.shim.custom_resources, [&](const auto& rule) {
      return rule.resource == used.resource() && Allows(rule, used);
    });
    if (used.optional() && !may) used.clear_verbs();
  }
  return framework::WritesObjects(plugin);
}

// Makes the plan of one profile.
class Planner {
 public:
  Planner(const config::Config& config, const std::vector<std::string>& hosts,
          const HostInfos& infos, const config::Profile& profile, HostOfPlugin host_of)
      : config_(config), infos_(infos), profile_(profile), host_of_(std::move(host_of)) {
    for (const std::string& host : hosts) {
      const bool is_used = std::any_of(host_of_.begin(), host_of_.end(),
                                       [&](const auto& entry) { return entry.second == host; });
      if (is_used) plan_.host_names.push_back(host);
    }
    const auto others = std::stable_partition(
        plan_.host_names.begin(), plan_.host_names.end(),
        [this](const std::string& host) { return TakesPartInAlgorithm(host); });
    num_algorithm_hosts_ = others - plan_.host_names.begin();
  }

  framework::ProfilePlan Make();
  // The plugin's PostFilter answer for pods for which its host is skipped.
  framework::SkippedPostFilterStatus SkippedStatusOf(const std::string& plugin) const;
  // Plans for the pods for which one of the hosts is skipped.
  std::vector<framework::SkippedHost> SkippedHosts() const;
  const std::vector<std::string>& host_names() const { return plan_.host_names; }
  // Adds what the host must know of the profile.
  void AddToConfigure(const std::string& host, v1beta1::ConfigureRequest* request) const;

 private:
  const PluginInfo& InfoOf(const std::string& plugin) const {
    return *FindPlugin(infos_.at(host_of_.at(plugin)), plugin);
  }
  // Whether the host must be called in an attempt from PreFilter on.
  bool TakesPartInAlgorithm(const std::string& host) const {
    using namespace v1beta1;  // NOLINT: names of points
    const auto points = {EXTENSION_POINT_PRE_FILTER, EXTENSION_POINT_FILTER,
                         EXTENSION_POINT_POST_FILTER, EXTENSION_POINT_PRE_SCORE,
                         EXTENSION_POINT_SCORE};
    return std::any_of(points.begin(), points.end(),
                       [&](ExtensionPoint point) { return !Names(point, &host).empty(); });
  }
  // Names at the point, of one host or of all.
  std::vector<std::string> Names(ExtensionPoint point, const std::string* host = nullptr) const;
  std::vector<framework::WeightedPlugin> Weighted(
      const std::string* host = nullptr,
      ExtensionPoint point = v1beta1::EXTENSION_POINT_SCORE) const;
  // Hosts at the point, in the order of their first plugins there.
  std::vector<framework::HostExtensionPoint> Shares(ExtensionPoint point) const;
  // The plugin at a point, and the pods for which it is called there; nullopt: for none.
  std::optional<framework::InterestedPlugin> Interested(ExtensionPoint point,
                                                        const std::string& name,
                                                        size_t position) const;
  // Sets who binds.
  void PlanBind();
  // Sets who is asked about groups of pods.
  void PlanGroupPoints();

  bool KeepsNoCache(const std::string& host) const {
    const auto info = infos_.find(host);
    return info != infos_.end() && hosts::KeepsNoCache(info->second);
  }
  bool Can(const std::string& host, v1beta1::Capability wanted) const {
    return framework::HasCapability(infos_.at(host), wanted);
  }
  bool CanFuse(const std::string& host) const { return Can(host, v1beta1::CAPABILITY_FUSED_CYCLE); }
  // Such a host selects nodes itself.
  bool PlacesSeveral(const std::string& host) const {
    return Can(host, v1beta1::CAPABILITY_BATCH) || Can(host, v1beta1::CAPABILITY_GROUP_PLAN);
  }
  // The host that answers all points in one message; empty: none. If several hosts can, the host
  // with the most filters, because its search ends with the sample; of several such hosts, the host
  // with the first filter.
  std::string MainHost() const;

  // Whether the failure policies of all these plugins allow a missing answer at the point.
  bool IsOpen(ExtensionPoint point, const std::vector<std::string>& plugins) const {
    return std::all_of(plugins.begin(), plugins.end(), [&](const std::string& plugin) {
      return config::PolicyFor(config_.shim, plugin, point) != config::FailurePolicy::kFailClosed;
    });
  }

  const config::Config& config_;
  const HostInfos& infos_;
  const config::Profile& profile_;
  const HostOfPlugin host_of_;
  framework::ProfilePlan plan_;
  std::ptrdiff_t num_algorithm_hosts_ = 0;
};

std::vector<std::string> Planner::Names(ExtensionPoint point, const std::string* host) const {
  std::vector<std::string> names;
  for (const config::EnabledPlugin& plugin : profile_.at(point)) {
    if (host == nullptr || host_of_.at(plugin.name) == *host) names.push_back(plugin.name);
  }
  return names;
}

std::vector<framework::WeightedPlugin> Planner::Weighted(const std::string* host,
                                                         ExtensionPoint point) const {
  std::vector<framework::WeightedPlugin> weighted;
  for (const config::EnabledPlugin& plugin : profile_.at(point)) {
    if (host != nullptr && host_of_.at(plugin.name) != *host) continue;
    weighted.push_back({plugin.name, plugin.weight});
  }
  return weighted;
}

std::vector<framework::HostExtensionPoint> Planner::Shares(ExtensionPoint point) const {
  std::vector<framework::HostExtensionPoint> shares;
  const std::vector<config::EnabledPlugin>& enabled = profile_.at(point);
  for (size_t position = 0; position < enabled.size(); ++position) {
    std::optional<framework::InterestedPlugin> interested =
        Interested(point, enabled[position].name, position);
    if (!interested.has_value()) continue;
    framework::InterestedPlugin& plugin = *interested;
    const std::string& host = host_of_.at(plugin.name);
    auto share = std::find_if(shares.begin(), shares.end(),
                              [&](const auto& other) { return other.host_name == host; });
    if (share == shares.end()) {
      share = shares.insert(shares.end(), framework::HostExtensionPoint());
      share->host_name = host;
      share->fail_open = true;
    }
    share->fail_open &= IsOpen(point, {plugin.name});
    share->plugins.push_back(std::move(plugin));
  }
  return shares;
}

std::optional<framework::InterestedPlugin> Planner::Interested(ExtensionPoint point,
                                                               const std::string& name,
                                                               size_t position) const {
  framework::InterestedPlugin plugin;
  plugin.name = name;
  plugin.position = position;
  // Without an interest PreBind gets only what Reserve named.
  bool is_called = point != v1beta1::EXTENSION_POINT_PRE_BIND;
  for (const v1beta1::Interest& interest : InfoOf(name).interests()) {
    if (interest.extension_point() != point) continue;
    plugin.fields.assign(interest.any_field_set().begin(), interest.any_field_set().end());
    const bool every_pod = point == v1beta1::EXTENSION_POINT_PRE_BIND && interest.every_pod();
    is_called = !plugin.fields.empty() || every_pod;
  }
  if (!is_called) return std::nullopt;
  return plugin;
}

void Planner::PlanBind() {
  const auto found = profile_.points.find(v1beta1::EXTENSION_POINT_BIND);
  if (found == profile_.points.end()) return;
  plan_.shim_binds = false;
  for (const config::EnabledPlugin& enabled : found->second) {
    std::optional<framework::InterestedPlugin> plugin;
    if (enabled.name != kDefaultBinder)
      plugin = Interested(v1beta1::EXTENSION_POINT_BIND, enabled.name, plan_.bind.size());
    if (!plugin.has_value()) {
      // What comes after it is never asked: it does not skip.
      plan_.shim_binds = true;
      return;
    }
    framework::HostExtensionPoint& share = plan_.bind.emplace_back();
    share.host_name = host_of_.at(enabled.name);
    share.fail_open = IsOpen(v1beta1::EXTENSION_POINT_BIND, {enabled.name});
    share.plugins.push_back(*std::move(plugin));
  }
}

void Planner::PlanGroupPoints() {
  plan_.placement_generate = Shares(v1beta1::EXTENSION_POINT_PLACEMENT_GENERATE);
  plan_.placement_score = Shares(v1beta1::EXTENSION_POINT_PLACEMENT_SCORE);
  plan_.placement_score_plugins = Weighted(nullptr, v1beta1::EXTENSION_POINT_PLACEMENT_SCORE);
  plan_.pod_group_post_filter = Shares(v1beta1::EXTENSION_POINT_POD_GROUP_POST_FILTER);
}

std::string Planner::MainHost() const {
  std::string main;
  size_t most = 0;
  for (const std::string& plugin : Names(v1beta1::EXTENSION_POINT_FILTER)) {
    const std::string& host = host_of_.at(plugin);
    const size_t count = Names(v1beta1::EXTENSION_POINT_FILTER, &host).size();
    if (!CanFuse(host) || count <= most) continue;
    main = host;
    most = count;
  }
  return main;
}

// The points of a plugin's interest: PRE_FILTER stands for those of the algorithm and of groups.
ExtensionPoint InterestPoint(ExtensionPoint point) {
  switch (point) {
    case v1beta1::EXTENSION_POINT_FILTER:
    case v1beta1::EXTENSION_POINT_POST_FILTER:
    case v1beta1::EXTENSION_POINT_PRE_SCORE:
    case v1beta1::EXTENSION_POINT_SCORE:
    case v1beta1::EXTENSION_POINT_PLACEMENT_GENERATE:
    case v1beta1::EXTENSION_POINT_PLACEMENT_SCORE:
    case v1beta1::EXTENSION_POINT_POD_GROUP_POST_FILTER:
      return v1beta1::EXTENSION_POINT_PRE_FILTER;
    default:
      return point;
  }
}

// The pods in which the plugin is interested at its points in the profile; nullopt: all pods.
std::optional<std::vector<framework::PodField>> InterestOf(const PluginInfo& plugin,
                                                           const config::Profile& profile) {
  std::vector<framework::PodField> fields;
  for (const auto& [point, enabled] : profile.points) {
    if (absl::c_none_of(enabled, [&](const auto& other) { return other.name == plugin.name(); }))
      continue;
    const auto interest = absl::c_find_if(plugin.interests(), [&, p = point](const auto& known) {
      return known.extension_point() == InterestPoint(p);
    });
    if (interest == plugin.interests().end()) {
      // Then PreBind only gets what Reserve named.
      if (point == v1beta1::EXTENSION_POINT_PRE_BIND) continue;
      return std::nullopt;
    }
    const bool every_pod = point == v1beta1::EXTENSION_POINT_PRE_BIND && interest->every_pod();
    // The shim binds in the plugin's name, so the profile must keep it.
    const bool is_binder = point == v1beta1::EXTENSION_POINT_BIND && interest->no_pod();
    if (every_pod || is_binder) return std::nullopt;
    fields.insert(fields.end(), interest->any_field_set().begin(), interest->any_field_set().end());
  }
  return fields;
}

// Adds the answer of a skipped plugin to this plan and to its plans without further hosts.
void AddSkippedStatus(const framework::SkippedPostFilterStatus& status, bool is_after,
                      framework::ProfilePlan* plan) {
  (is_after ? plan->skipped_after : plan->skipped_before).push_back(status);
  for (framework::SkippedHost& next : plan->skipped)
    AddSkippedStatus(status, is_after, next.without.get());
}

void ScoreNothing(const std::string& plugin, framework::ProfilePlan* plan) {
  plan->algorithm.skipped_score_plugins.push_back(plugin);
  for (framework::SkippedHost& next : plan->skipped) ScoreNothing(plugin, next.without.get());
}

// The administrator's exemptions from the shim's own check. The host reports invalid arguments.
cache::GuardScope GuardOf(const config::Profile& profile) {
  cache::GuardScope scope;
  const auto filters = [&](absl::string_view name) {
    const auto& plugins = profile.at(v1beta1::EXTENSION_POINT_FILTER);
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

framework::ProfilePlan Planner::Make() {
  framework::AlgorithmProfile& algorithm = plan_.algorithm;
  algorithm.name = profile_.name;
  algorithm.percentage_of_nodes_to_score =
      static_cast<uint32_t>(profile_.percentage_of_nodes_to_score);
  algorithm.pre_filter_plugins = Names(v1beta1::EXTENSION_POINT_PRE_FILTER);
  algorithm.filter_plugins = Names(v1beta1::EXTENSION_POINT_FILTER);
  algorithm.post_filter_plugins = Names(v1beta1::EXTENSION_POINT_POST_FILTER);
  algorithm.pre_score_plugins = Names(v1beta1::EXTENSION_POINT_PRE_SCORE);
  algorithm.score_plugins = Weighted();
  if (num_algorithm_hosts_ > 1 || KeepsNoCache(plan_.host_names[0])) {
    const std::string main = MainHost();
    for (std::ptrdiff_t i = 0; i < num_algorithm_hosts_; ++i) {
      const std::string& host = plan_.host_names[static_cast<size_t>(i)];
      framework::HostProfile& share = algorithm.shares.emplace_back();
      share.pre_filter_plugins = Names(v1beta1::EXTENSION_POINT_PRE_FILTER, &host);
      share.filter_plugins = Names(v1beta1::EXTENSION_POINT_FILTER, &host);
      share.pre_score_plugins = Names(v1beta1::EXTENSION_POINT_PRE_SCORE, &host);
      share.score_plugins = Weighted(&host);
      if (host == main) algorithm.main_host = static_cast<size_t>(i);
      share.can_fuse = CanFuse(host);
      if (num_algorithm_hosts_ == 1) continue;  // The only host is always needed.
      share.pre_filter_fail_open =
          IsOpen(v1beta1::EXTENSION_POINT_PRE_FILTER, share.pre_filter_plugins);
      share.filter_fail_open = IsOpen(v1beta1::EXTENSION_POINT_FILTER, share.filter_plugins);
      const std::vector<std::string> scoring = Names(v1beta1::EXTENSION_POINT_SCORE, &host);
      share.score_fail_open = IsOpen(v1beta1::EXTENSION_POINT_PRE_SCORE, share.pre_score_plugins) &&
                              IsOpen(v1beta1::EXTENSION_POINT_SCORE, scoring);
      share.score_uses_last =
          std::any_of(scoring.begin(), scoring.end(), [this](const std::string& plugin) {
            return config::PolicyFor(config_.shim, plugin, v1beta1::EXTENSION_POINT_SCORE) ==
                   config::FailurePolicy::kUseLast;
          });
    }
  }
  for (const std::string& plugin : algorithm.post_filter_plugins) {
    std::vector<std::string>& hosts = plan_.post_filter_hosts;
    const std::string& host = host_of_.at(plugin);
    if (std::find(hosts.begin(), hosts.end(), host) == hosts.end()) hosts.push_back(host);
    if (framework::SkippedPostFilterStatus status = SkippedStatusOf(plugin);
        num_algorithm_hosts_ > 1 && !status.reason.empty())
      plan_.pre_filter_behind[host] = std::move(status.behind);
  }
  PlanGroupPoints();
  for (const config::EnabledPlugin& gate : profile_.at(v1beta1::EXTENSION_POINT_PRE_ENQUEUE)) {
    if (absl::c_linear_search(algorithm.post_filter_plugins, gate.name) ||
        absl::c_linear_search(Names(v1beta1::EXTENSION_POINT_POD_GROUP_POST_FILTER), gate.name))
      plan_.preemption_gates.push_back(gate.name);
  }
  plan_.host_of = host_of_;
  plan_.guard = GuardOf(profile_);
  plan_.pre_enqueue = Shares(v1beta1::EXTENSION_POINT_PRE_ENQUEUE);
  plan_.reserve = Shares(v1beta1::EXTENSION_POINT_RESERVE);
  plan_.permit = Shares(v1beta1::EXTENSION_POINT_PERMIT);
  for (const config::EnabledPlugin& plugin : profile_.at(v1beta1::EXTENSION_POINT_PRE_BIND))
    plan_.pre_bind_plugins.insert(plugin.name);
  plan_.pre_bind = Shares(v1beta1::EXTENSION_POINT_PRE_BIND);
  plan_.post_bind = Shares(v1beta1::EXTENSION_POINT_POST_BIND);
  PlanBind();
  for (const config::EnabledPlugin& plugin : profile_.at(v1beta1::EXTENSION_POINT_QUEUE_SORT)) {
    if (plugin.name == kPrioritySort) continue;
    plan_.sort_host = host_of_.at(plugin.name);
    plan_.sort_reads_attempts =
        framework::DeclaresField(infos_.at(plan_.sort_host), plugin.name, kQueueAttempts);
  }
  for (const auto& [plugin, host] : host_of_) {
    if (WritesObjects(InfoOf(plugin), config_)) plan_.object_writers.insert(host);
    auto& events = plan_.wake_up_events[plugin];
    for (const v1beta1::ClusterEvent& event : InfoOf(plugin).wake_up_events()) {
      events.push_back(queue::FromContract(event));
    }
  }
  plan_.skipped = SkippedHosts();
  return plan_;
}

framework::SkippedPostFilterStatus Planner::SkippedStatusOf(const std::string& plugin) const {
  framework::SkippedPostFilterStatus status;
  for (const v1beta1::Interest& interest : InfoOf(plugin).interests()) {
    if (interest.extension_point() == v1beta1::EXTENSION_POINT_PRE_FILTER)
      status.reason = interest.post_filter_reason();
  }
  const std::vector<std::string> asked = Names(v1beta1::EXTENSION_POINT_PRE_FILTER);
  if (const auto it = absl::c_find(asked, plugin); it != asked.end())
    status.behind.insert(asked.begin(), it);
  return status;
}

std::vector<framework::SkippedHost> Planner::SkippedHosts() const {
  std::vector<framework::SkippedHost> skipped;
  for (const std::string& host : plan_.host_names) {
    framework::SkippedHost candidate;
    candidate.host_name = host;
    candidate.interest.name = host;
    HostOfPlugin others;
    bool can_be_skipped = true;
    for (const auto& [plugin, own_host] : host_of_) {
      if (own_host != host) {
        others[plugin] = own_host;
        continue;
      }
      const auto fields = InterestOf(InfoOf(plugin), profile_);
      can_be_skipped &= fields.has_value();
      if (!fields.has_value()) break;
      candidate.interest.fields.insert(candidate.interest.fields.end(), fields->begin(),
                                       fields->end());
    }
    if (!can_be_skipped || others.empty() || candidate.interest.fields.empty()) continue;
    config::Profile rest = profile_;
    for (auto& [point, plugins] : rest.points) {
      std::erase_if(plugins, [&](const auto& plugin) { return !others.contains(plugin.name); });
    }
    // Without scores the first feasible node would be enough.
    if (rest.at(v1beta1::EXTENSION_POINT_SCORE).empty() !=
        profile_.at(v1beta1::EXTENSION_POINT_SCORE).empty())
      continue;
    Planner planner(config_, plan_.host_names, infos_, rest, std::move(others));
    candidate.without = std::make_shared<framework::ProfilePlan>(planner.Make());
    bool others_came = false;
    for (const config::EnabledPlugin& plugin : profile_.at(v1beta1::EXTENSION_POINT_POST_FILTER)) {
      const bool is_own = host_of_.at(plugin.name) == host;
      others_came |= !is_own;
      if (!is_own) continue;
      const framework::SkippedPostFilterStatus status = SkippedStatusOf(plugin.name);
      if (!status.reason.empty()) AddSkippedStatus(status, others_came, candidate.without.get());
    }
    for (const config::EnabledPlugin& plugin : profile_.at(v1beta1::EXTENSION_POINT_SCORE)) {
      if (host_of_.at(plugin.name) == host) ScoreNothing(plugin.name, candidate.without.get());
    }
    skipped.push_back(std::move(candidate));
  }
  return skipped;
}

void Planner::AddToConfigure(const std::string& host, v1beta1::ConfigureRequest* request) const {
  v1beta1::ProfileConfig* configured = request->add_profiles();
  configured->set_name(profile_.name);
  for (const auto& [point, plugins] : profile_.points) {
    const std::vector<std::string> names = Names(point, &host);
    if (names.empty()) continue;
    v1beta1::PointConfig* point_config = configured->add_points();
    point_config->set_extension_point(point);
    point_config->mutable_plugins()->Assign(names.begin(), names.end());
    if (point != v1beta1::EXTENSION_POINT_SCORE || !PlacesSeveral(host)) continue;
    for (const framework::WeightedPlugin& plugin : Weighted(&host))
      point_config->add_weights(plugin.weight);
  }
  for (const config::PluginArgs& args : profile_.args) {
    if (host_of_.at(args.name) != host) continue;
    v1beta1::PluginArgs* plugin_args = configured->add_args();
    plugin_args->set_plugin(args.name);
    plugin_args->set_args_json(args.args_json);
  }
}

}  // namespace

absl::StatusOr<Plans> MakePlans(const config::Config& config, const std::vector<std::string>& hosts,
                                const HostInfos& infos) {
  config::PluginCatalog catalog;
  for (const auto& [name, info] : infos) catalog.Add(info);
  absl::StatusOr<config::Profiles> resolved = config::ResolveProfiles(config, catalog);
  if (!resolved.ok()) return resolved.status();

  Plans plans;
  std::vector<std::string> problems;
  for (const config::Profile& profile : resolved->profiles) {
    HostOfPlugin assigned = AssignHosts(config, hosts, infos, profile, &problems);
    if (!problems.empty()) continue;
    for (const auto& [plugin, host] : assigned)
      CheckDeclarations(config, profile.name, *FindPlugin(infos.at(host), plugin), &problems);
    if (!problems.empty()) continue;
    Planner planner(config, hosts, infos, profile, std::move(assigned));
    for (const std::string& host : planner.host_names()) {
      v1beta1::ConfigureRequest& request = plans.configure[host];
      request.set_cycle_deadline_micros(absl::ToInt64Microseconds(config.shim.deadlines.cycle));
      *request.mutable_shim() = ThisShim();
      planner.AddToConfigure(host, &request);
    }
    plans.profiles.push_back(planner.Make());
    CheckGroupPoints(config, plans.profiles.back(), infos, &problems, &resolved->warnings);
  }
  if (!problems.empty()) return absl::InvalidArgumentError(absl::StrJoin(problems, "\n"));
  plans.resolved = *std::move(resolved);
  return plans;
}

std::vector<framework::CustomResourceRule> AllowedResources(
    const std::vector<config::CustomResourceRule>& configured) {
  std::vector<framework::CustomResourceRule> rules;
  for (const config::CustomResourceRule& rule : configured)
    rules.push_back({rule.resource, rule.verbs, rule.namespaces});
  return rules;
}

std::map<std::string, framework::HostProfile> SharesOf(const Plans& plans,
                                                       const std::string& host) {
  std::map<std::string, framework::HostProfile> shares;
  for (const framework::ProfilePlan& plan : plans.profiles) {
    const auto end =
        plan.host_names.begin() +
        static_cast<std::ptrdiff_t>(std::min(plan.num_algorithm_hosts(), plan.host_names.size()));
    const auto found = std::find(plan.host_names.begin(), end, host);
    if (found == end) continue;
    framework::HostProfile share;
    if (plan.algorithm.shares.empty()) {
      share.pre_filter_plugins = plan.algorithm.pre_filter_plugins;
      share.filter_plugins = plan.algorithm.filter_plugins;
      share.pre_score_plugins = plan.algorithm.pre_score_plugins;
      share.score_plugins = plan.algorithm.score_plugins;
    } else {
      share = plan.algorithm.shares[static_cast<size_t>(found - plan.host_names.begin())];
    }
    if (!share.pre_filter_plugins.empty() || !share.filter_plugins.empty() ||
        !share.pre_score_plugins.empty() || !share.score_plugins.empty()) {
      shares[plan.algorithm.name] = std::move(share);
    }
  }
  return shares;
}

}  // namespace outboard::hosts
