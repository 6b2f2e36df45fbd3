#include "shim/config/profiles.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shim/config/default_plugins.h"
#include "shim/config/yaml_reader.h"

namespace outboard::config {
namespace {

using v1beta1::ExtensionPoint;

bool Names(const std::vector<PluginEntry>& entries, absl::string_view name) {
  return std::any_of(entries.begin(), entries.end(),
                     [&](const PluginEntry& e) { return e.name == name; });
}

std::string PointList(const std::set<ExtensionPoint>& points) {
  return points.empty() ? "nothing"
                        : absl::StrJoin(points, ", ", [](std::string* out, ExtensionPoint point) {
                            absl::StrAppend(out, PointName(point));
                          });
}

// Resolves one profile.
class Resolver {
 public:
  Resolver(const ProfileSpec& spec, const PluginCatalog& catalog, Problems* problems,
           std::vector<std::string>* warnings)
      : spec_(spec), catalog_(catalog), problems_(*problems), warnings_(*warnings) {
    for (const auto& [name, plugin] : catalog.plugins) known_.push_back(name);
  }

  Profile Resolve(int32_t global_percentage) {
    Profile profile;
    profile.name = spec_.scheduler_name;
    profile.percentage_of_nodes_to_score =
        spec_.percentage_of_nodes_to_score.value_or(global_percentage);
    multi_point_ = Served(spec_.multi_point.enabled);
    for (ExtensionPoint point : AllPoints()) {
      std::vector<EnabledPlugin>& plugins = profile.points[point];
      const std::map<std::string, int32_t> weights = WeightsAt(point);
      for (std::string& name : Expand(point)) {
        EnabledPlugin plugin{std::move(name), 0};
        if (HasWeights(point)) plugin.weight = weights.at(plugin.name);
        plugins.push_back(std::move(plugin));
      }
    }
    if (missing_defaults_.empty()) {
      PlaceNotServed(&profile);
      CheckCounts(profile);
    } else {
      problems_.Add(spec_.where, absl::StrCat("no host serves these default plugins of profile \"",
                                              spec_.scheduler_name,
                                              "\": ", absl::StrJoin(missing_defaults_, ", ")));
    }
    TakeArgs(&profile);
    WarnAboutDisabled();
    return profile;
  }

 private:
  const PluginSet& SetOf(ExtensionPoint point) const {
    static const auto& empty = *new PluginSet();
    auto it = spec_.points.find(point);
    return it == spec_.points.end() ? empty : it->second;
  }

  // The plugin in the catalog. If no host serves it: null, and a problem is added unless a default
  // plugin may be missing.
  const CatalogPlugin* Find(const PluginEntry& entry) {
    auto it = catalog_.plugins.find(entry.name);
    if (it != catalog_.plugins.end()) return &it->second;
    if (MayBeUnserved(entry.name)) {
      if (entry.where.line > 0) {
        problems_.Add(entry.where,
                      absl::StrCat("plugin \"", entry.name,
                                   "\" is not supported yet; remove it here (NotServed rejects "
                                   "pods that need it)"));
      }
      return nullptr;
    }
    if (entry.where.line == 0) {
      if (std::find(missing_defaults_.begin(), missing_defaults_.end(), entry.name) ==
          missing_defaults_.end())
        missing_defaults_.push_back(entry.name);
      return nullptr;
    }
    std::string hint = DidYouMean(entry.name, known_);
    if (hint.empty())
      hint = absl::StrCat("; hosts serve ", known_.empty() ? "none" : absl::StrJoin(known_, ", "));
    problems_.Add(entry.where, absl::StrCat("no host serves plugin \"", entry.name,
                                            "\" of profile \"", spec_.scheduler_name, "\"", hint));
    return nullptr;
  }

  std::vector<PluginEntry> Served(const std::vector<PluginEntry>& entries) {
    std::vector<PluginEntry> served;
    for (const PluginEntry& entry : entries) {
      if (Find(entry) != nullptr) served.push_back(entry);
    }
    return served;
  }

  // The plugins that the point itself names.
  std::vector<std::string> Explicit(ExtensionPoint point) {
    std::vector<std::string> names;
    for (const PluginEntry& entry : SetOf(point).enabled) {
      const CatalogPlugin* plugin = Find(entry);
      if (plugin == nullptr) continue;
      if (plugin->points.count(point) == 0) {
        problems_.Add(entry.where, absl::StrCat("plugin \"", entry.name, "\" does not implement ",
                                                PointName(point), "; it implements ",
                                                PointList(plugin->points)));
      } else if (std::find(names.begin(), names.end(), entry.name) != names.end()) {
        problems_.Add(entry.where, absl::StrCat("plugin \"", entry.name, "\" is enabled twice"));
      } else {
        names.push_back(entry.name);
      }
    }
    return names;
  }

  std::vector<std::string> Expand(ExtensionPoint point) {
    std::vector<std::string> own = Explicit(point);
    const PluginSet& set = SetOf(point);
    if (Names(set.disabled, "*")) return own;
    std::vector<std::string> from_multi_point;
    std::set<std::string> overridden;
    for (const PluginEntry& entry : multi_point_) {
      if (catalog_.plugins.at(entry.name).points.count(point) == 0) continue;
      if (Names(set.disabled, entry.name)) continue;
      if (std::find(own.begin(), own.end(), entry.name) != own.end()) {
        overridden.insert(entry.name);
      } else if (std::find(from_multi_point.begin(), from_multi_point.end(), entry.name) !=
                 from_multi_point.end()) {
        problems_.Add(entry.where, absl::StrCat("plugin \"", entry.name, "\" is enabled twice"));
      } else {
        from_multi_point.push_back(entry.name);
      }
    }
    std::vector<std::string> names;
    for (const std::string& name : own) {
      if (overridden.count(name) > 0) names.push_back(name);
    }
    names.insert(names.end(), from_multi_point.begin(), from_multi_point.end());
    for (const std::string& name : own) {
      if (overridden.count(name) == 0) names.push_back(name);
    }
    return names;
  }

  static bool HasWeights(ExtensionPoint point) {
    return point == v1beta1::EXTENSION_POINT_SCORE ||
           point == v1beta1::EXTENSION_POINT_PLACEMENT_SCORE;
  }

  // A plugin's weight at its first occurrence; entries of the point precede those of multiPoint.
  std::map<std::string, int32_t> WeightsAt(ExtensionPoint point) {
    std::map<std::string, int32_t> weights;
    if (!HasWeights(point)) return weights;
    const std::vector<PluginEntry>* lists[] = {&SetOf(point).enabled, &multi_point_};
    for (const std::vector<PluginEntry>* entries : lists) {
      for (const PluginEntry& entry : *entries) {
        auto it = catalog_.plugins.find(entry.name);
        if (it == catalog_.plugins.end()) continue;
        int32_t weight = entry.weight;
        if (weight == 0 && !IsUpstreamPlugin(entry.name)) weight = it->second.default_weight;
        weights.emplace(entry.name, weight == 0 ? 1 : weight);
      }
    }
    return weights;
  }

  void PlaceNotServed(Profile* profile) {
    std::vector<EnabledPlugin>& pre_filter = profile->points[v1beta1::EXTENSION_POINT_PRE_FILTER];
    auto it = std::find_if(pre_filter.begin(), pre_filter.end(), [](const EnabledPlugin& plugin) {
      return plugin.name == kNotServedPlugin;
    });
    const bool enabled = it != pre_filter.end();
    if (enabled) pre_filter.erase(it);
    if (!enabled &&
        (Names(spec_.multi_point.disabled, kNotServedPlugin) ||
         Names(SetOf(v1beta1::EXTENSION_POINT_PRE_FILTER).disabled, kNotServedPlugin))) {
      return;
    }
    auto plugin = catalog_.plugins.find(kNotServedPlugin);
    if (plugin == catalog_.plugins.end() ||
        plugin->second.points.count(v1beta1::EXTENSION_POINT_PRE_FILTER) == 0) {
      problems_.Add(spec_.where,
                    "no host serves NotServed, which rejects pods that need an unsupported plugin; "
                    "to run without it, add it to plugins.preFilter.disabled");
      return;
    }
    pre_filter.insert(pre_filter.begin(), EnabledPlugin{kNotServedPlugin, 0});
  }

  void CheckCounts(const Profile& profile) {
    const std::vector<EnabledPlugin>& sort = profile.at(v1beta1::EXTENSION_POINT_QUEUE_SORT);
    if (sort.size() != 1) {
      const std::string names = absl::StrJoin(
          sort, ", ",
          [](std::string* out, const EnabledPlugin& plugin) { out->append(plugin.name); });
      problems_.Add(
          spec_.where,
          absl::StrCat("only one queue sort plugin required for profile with scheduler name \"",
                       profile.name, "\", but got ", sort.size(),
                       names.empty() ? "" : absl::StrCat(": ", names)));
    }
    if (profile.at(v1beta1::EXTENSION_POINT_BIND).empty()) {
      problems_.Add(
          spec_.where,
          absl::StrCat("at least one bind plugin is needed for profile with scheduler name \"",
                       profile.name, "\""));
    }
    CheckGroupPoints(profile);
  }

  void CheckGroupPoints(const Profile& profile) {
    const size_t generators = profile.at(v1beta1::EXTENSION_POINT_PLACEMENT_GENERATE).size();
    if (generators > 1) {
      problems_.Add(spec_.where,
                    absl::StrCat("at most one placement generate plugin is allowed for profile "
                                 "with scheduler name \"",
                                 profile.name, "\", but got ", generators));
    }
    if (generators == 0 && !profile.at(v1beta1::EXTENSION_POINT_PLACEMENT_SCORE).empty()) {
      const PluginSet& set = SetOf(v1beta1::EXTENSION_POINT_PLACEMENT_SCORE);
      Warn(set.enabled.empty() ? spec_.where : set.enabled.front().where,
           "plugins at placementScore have no effect without a plugin at placementGenerate");
    }
  }

  void TakeArgs(Profile* profile) {
    std::set<std::string> running;
    for (const auto& [point, plugins] : profile->points) {
      for (const EnabledPlugin& plugin : plugins) running.insert(plugin.name);
    }
    for (const PluginArgs& args : spec_.plugin_config) {
      if (running.count(args.name) > 0) {
        profile->args.push_back(args);
      } else {
        Warn(args.where, absl::StrCat("plugin \"", args.name,
                                      "\" does not run in this profile: its args have no effect",
                                      DidYouMean(args.name, {running.begin(), running.end()})));
      }
    }
  }

  void WarnAboutDisabled() {
    std::vector<const PluginSet*> sets = {&spec_.multi_point};
    for (const auto& [point, set] : spec_.points) sets.push_back(&set);
    for (const PluginSet* set : sets) {
      for (const PluginEntry& entry : set->disabled) {
        if (entry.name == "*" || entry.name == kNotServedPlugin || IsUpstreamPlugin(entry.name) ||
            catalog_.plugins.count(entry.name) > 0) {
          continue;
        }
        Warn(entry.where,
             absl::StrCat("unknown plugin \"", entry.name, "\": disabling it has no effect",
                          DidYouMean(entry.name, known_)));
      }
    }
  }

  void Warn(const Location& where, absl::string_view what) {
    warnings_.push_back(problems_.Line(where, where.path, what));
  }

  const ProfileSpec& spec_;
  const PluginCatalog& catalog_;
  Problems& problems_;
  std::vector<std::string>& warnings_;
  std::vector<std::string> known_;
  std::vector<std::string> missing_defaults_;  // that no host serves
  std::vector<PluginEntry> multi_point_;
};

const std::string* ArgsOf(const Profile& profile, const std::string& plugin) {
  for (const PluginArgs& args : profile.args) {
    if (args.name == plugin) return &args.args_json;
  }
  return nullptr;
}

void CheckOneQueueSort(const Config& config, const std::vector<Profile>& profiles,
                       Problems* problems) {
  const std::vector<EnabledPlugin>& first = profiles[0].at(v1beta1::EXTENSION_POINT_QUEUE_SORT);
  for (size_t i = 1; i < profiles.size(); ++i) {
    const std::vector<EnabledPlugin>& other = profiles[i].at(v1beta1::EXTENSION_POINT_QUEUE_SORT);
    if (first.size() != 1 || other.size() != 1) continue;  // already reported
    const Location& where = config.scheduler.profiles[i].where;
    if (first[0].name != other[0].name) {
      problems->Add(where,
                    absl::StrCat("different queue sort plugins for profile \"", profiles[i].name,
                                 "\": \"", other[0].name, "\", first: \"", first[0].name, "\""));
      continue;
    }
    const std::string* a = ArgsOf(profiles[0], first[0].name);
    const std::string* b = ArgsOf(profiles[i], first[0].name);
    if ((a == nullptr ? "{}" : *a) != (b == nullptr ? "{}" : *b)) {
      problems->Add(where, absl::StrCat("different queue sort plugin args for profile \"",
                                        profiles[i].name, "\""));
    }
  }
}

void CheckPolicies(const ShimConfig& shim, const PluginCatalog& catalog, Problems* problems) {
  std::vector<std::string> known;
  for (const auto& [name, plugin] : catalog.plugins) known.push_back(name);
  for (const FailurePolicyRule& rule : shim.failure_policies) {
    auto it = catalog.plugins.find(rule.plugin);
    if (it == catalog.plugins.end()) {
      problems->Add(rule.where, absl::StrCat("no host serves plugin \"", rule.plugin, "\"",
                                             DidYouMean(rule.plugin, known)));
    } else if (it->second.points.count(rule.point) == 0) {
      problems->Add(rule.where, absl::StrCat("plugin \"", rule.plugin, "\" does not implement ",
                                             PointName(rule.point), "; it implements ",
                                             PointList(it->second.points)));
    }
  }
}

}  // namespace

void PluginCatalog::Add(const v1beta1::GetHostInfoResponse& info) {
  for (const v1beta1::PluginInfo& plugin : info.plugins()) {
    CatalogPlugin& entry = plugins[plugin.name()];
    for (int point : plugin.extension_points()) {
      // Unknown points are ignored, as the contract requires.
      if (!PointName(static_cast<ExtensionPoint>(point)).empty())
        entry.points.insert(static_cast<ExtensionPoint>(point));
    }
    if (entry.default_weight == 0) entry.default_weight = plugin.default_weight();
  }
}

absl::StatusOr<Profiles> ResolveProfiles(const Config& config, const PluginCatalog& catalog) {
  Problems problems(config.file);
  Profiles out;
  for (const ProfileSpec& spec : config.scheduler.profiles) {
    out.profiles.push_back(Resolver(spec, catalog, &problems, &out.warnings)
                               .Resolve(config.scheduler.percentage_of_nodes_to_score));
  }
  if (out.profiles.empty())
    return absl::InvalidArgumentError(absl::StrCat(config.file, ": no profiles"));
  CheckOneQueueSort(config, out.profiles, &problems);
  CheckPolicies(config.shim, catalog, &problems);
  absl::Status status = problems.ToStatus();
  if (!status.ok()) return status;
  return out;
}

}  // namespace outboard::config
