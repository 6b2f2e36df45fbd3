// Resolves profiles: the plugins at each point with order and weight, given the plugins that hosts
// serve.
#ifndef OUTBOARD_SHIM_CONFIG_PROFILES_H_
#define OUTBOARD_SHIM_CONFIG_PROFILES_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "outboard/v1beta1/plugin_host.pb.h"
#include "shim/config/config.h"

namespace outboard::config {

// The plugin that rejects pods which need an unsupported plugin. First at PreFilter of every
// profile unless disabled by name.
inline constexpr char kNotServedPlugin[] = "NotServed";

// The capabilities of one plugin, as reported by its host.
struct CatalogPlugin {
  std::set<v1beta1::ExtensionPoint> points;
  int32_t default_weight = 0;  // 0: 1. Not used for kube-scheduler's own plugins: the configuration
                               // API has their defaults.
};

// The plugins of all hosts, by name.
struct PluginCatalog {
  std::map<std::string, CatalogPlugin> plugins;

  // Adds a host's plugins. If two hosts serve a plugin, it has the points of both.
  void Add(const v1beta1::GetHostInfoResponse& info);
};

struct EnabledPlugin {
  std::string name;
  int32_t weight = 0;  // only at Score and PlacementScore; never 0 there

  friend bool operator==(const EnabledPlugin&, const EnabledPlugin&) = default;
};

struct Profile {
  std::string name;
  // Contains every point of the contract; points without plugins are empty.
  std::map<v1beta1::ExtensionPoint, std::vector<EnabledPlugin>> points;
  // Args of plugins that run in the profile.
  std::vector<PluginArgs> args;
  int32_t percentage_of_nodes_to_score =
      0;  // the profile's, otherwise the global value; 0: depends on cluster size

  const std::vector<EnabledPlugin>& at(v1beta1::ExtensionPoint point) const {
    return points.at(point);
  }
};

struct Profiles {
  std::vector<Profile> profiles;  // in configuration order
  std::vector<std::string> warnings;
};

// Expands multiPoint like kube-scheduler. The order at each point:
// - plugins that both the point and multiPoint name, in the point's order;
// - the other plugins of multiPoint;
// - the other plugins of the point.
//
// kube-scheduler's plugins that no host serves yet are removed from the defaults, and NotServed
// replaces them.
//
// Errors: INVALID_ARGUMENT, one problem per line with file and line: a plugin that no host serves
// (with the nearest names), a plugin at a point that it does not implement, a duplicate plugin, not
// exactly one QueueSort plugin or not the same one in all profiles, no Bind plugin, several
// PlacementGenerate plugins.
absl::StatusOr<Profiles> ResolveProfiles(const Config& config, const PluginCatalog& catalog);

// The configuration in force as YAML: both documents with all defaults; with `resolved`, plugins
// per point instead of multiPoint.
std::string EffectiveConfigYaml(const Config& config, const Profiles* resolved);

}  // namespace outboard::config

#endif  // OUTBOARD_SHIM_CONFIG_PROFILES_H_
