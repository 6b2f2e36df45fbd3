#include "shim/config/default_plugins.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>

namespace outboard::config {
namespace {

struct DefaultPlugin {
  const char* name;
  int32_t weight;
};

// Weights that kube-scheduler leaves unset are 0 here, and become 1.
constexpr std::array<DefaultPlugin, 20> kDefaults = {{
    {"SchedulingGates", 0},
    {"PrioritySort", 0},
    {"NodeUnschedulable", 0},
    {"NodeName", 0},
    {"TaintToleration", 3},
    {"NodeAffinity", 2},
    {"NodePorts", 0},
    {"NodeResourcesFit", 1},
    {"VolumeRestrictions", 0},
    {"NodeVolumeLimits", 0},
    {"VolumeBinding", 0},
    {"VolumeZone", 0},
    {"PodTopologySpread", 2},
    {"InterPodAffinity", 2},
    {"DynamicResources", 2},
    {"DefaultPreemption", 0},
    {"NodeResourcesBalancedAllocation", 1},
    {"ImageLocality", 1},
    {"DefaultBinder", 0},
    {"NodeDeclaredFeatures", 0},
}};

constexpr std::array<absl::string_view, 3> kUnserved = {
    "GangScheduling", "TopologyPlacementGenerator", "PodGroupPodsCount"};

constexpr std::array<absl::string_view, 4> kRemoved = {"AzureDiskLimits", "CinderLimits",
                                                       "EBSLimits", "GCEPDLimits"};

constexpr std::array<absl::string_view, 8> kWithArgs = {"DefaultPreemption",
                                                        "DynamicResources",
                                                        "InterPodAffinity",
                                                        "NodeAffinity",
                                                        "NodeResourcesBalancedAllocation",
                                                        "NodeResourcesFit",
                                                        "PodTopologySpread",
                                                        "VolumeBinding"};

template <typename List>
bool Contains(const List& list, absl::string_view name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

}  // namespace

std::vector<PluginEntry> DefaultMultiPoint() {
  std::vector<PluginEntry> entries;
  for (const DefaultPlugin& plugin : kDefaults) {
    entries.push_back(PluginEntry{plugin.name, plugin.weight, Location()});
  }
  return entries;
}

bool IsUpstreamPlugin(absl::string_view name) {
  return MayBeUnserved(name) ||
         std::any_of(kDefaults.begin(), kDefaults.end(),
                     [&](const DefaultPlugin& plugin) { return plugin.name == name; });
}

bool MayBeUnserved(absl::string_view name) { return Contains(kUnserved, name); }
bool IsRemovedPlugin(absl::string_view name) { return Contains(kRemoved, name); }
bool HasUpstreamArgs(absl::string_view name) { return Contains(kWithArgs, name); }

PluginSet MergePluginSet(const PluginSet& defaults, const PluginSet& custom) {
  PluginSet merged;
  merged.disabled = custom.disabled;
  merged.disabled.insert(merged.disabled.end(), defaults.disabled.begin(), defaults.disabled.end());
  std::set<std::string> disabled;
  for (const PluginEntry& entry : merged.disabled) disabled.insert(entry.name);

  // Of several entries with the same name, the last one replaces the default. The others stay and
  // are reported as duplicates later.
  std::map<std::string, size_t> custom_index;
  for (size_t i = 0; i < custom.enabled.size(); ++i) custom_index[custom.enabled[i].name] = i;

  std::set<size_t> used;
  if (disabled.count("*") == 0) {
    for (const PluginEntry& entry : defaults.enabled) {
      if (disabled.count(entry.name) > 0) continue;
      auto it = custom_index.find(entry.name);
      if (it == custom_index.end()) {
        merged.enabled.push_back(entry);
      } else {
        merged.enabled.push_back(custom.enabled[it->second]);
        used.insert(it->second);
      }
    }
  }
  for (size_t i = 0; i < custom.enabled.size(); ++i) {
    if (used.count(i) == 0) merged.enabled.push_back(custom.enabled[i]);
  }
  return merged;
}

}  // namespace outboard::config
