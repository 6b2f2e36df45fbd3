// Which plugins run at which point of each profile, in which order and with which weight, given
// what hosts serve.
#ifndef OUTBOARD_SHIM_CONFIG_PROFILES_H_
#define OUTBOARD_SHIM_CONFIG_PROFILES_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/outboard/v1alpha1/plugin_host.pb.h"
#include "shim/config/config.h"

namespace outboard::config {

// The plugin that refuses pods which need something that no plugin serves. First at PreFilter of
// every profile unless disabled by name.
inline constexpr char kNotServedPlugin[] = "NotServed";

// What one plugin can do, as its host said.
struct CatalogPlugin {
  std::set<v1alpha1::ExtensionPoint> points;
  int32_t default_weight = 0;  // 0: 1; not used for kube-scheduler's own plugins, whose defaults
                               // stand in the configuration API
};

// Plugins by name, over all hosts.
struct PluginCatalog {
  std::map<std::string, CatalogPlugin> plugins;

  // Adds what a host serves; where two hosts serve a name, the points of both.
  void Add(const v1alpha1::GetHostInfoResponse& info);
};

struct EnabledPlugin {
  std::string name;
  int32_t weight = 0;  // only at Score, never 0 there

  friend bool operator==(const EnabledPlugin&, const EnabledPlugin&) = default;
};

struct Profile {
  std::string name;
  // Every point of the contract is present; those without a plugin are empty.
  std::map<v1alpha1::ExtensionPoint, std::vector<EnabledPlugin>> points;
  // Args of plugins that run somewhere in the profile.
  std::vector<PluginArgs> args;
  int32_t percentage_of_nodes_to_score =
      0;  // the profile's, else the global one; 0: by the size of the cluster

  const std::vector<EnabledPlugin>& at(v1alpha1::ExtensionPoint point) const {
    return points.at(point);
  }
};

struct Profiles {
  std::vector<Profile> profiles;  // in the order of the configuration
  std::vector<std::string> warnings;
};

// Expands multiPoint as kube-scheduler does: at each point first the plugins that the point and
// multiPoint both name, in the point's order; then multiPoint's; then the point's others.
//
// kube-scheduler's plugins that no host serves yet are left out of the defaults, and NotServed
// stands in for them.
// Errors: INVALID_ARGUMENT, one problem a line with file and line: a plugin that no host serves
// (with the nearest names), a plugin at a point that it does not implement, twice the same plugin,
// not exactly one QueueSort plugin or not the same one in all profiles, no Bind plugin.
absl::StatusOr<Profiles> ResolveProfiles(const Config& config, const PluginCatalog& catalog);

// The configuration in force as YAML: both documents with all defaults, and if `resolved` is given,
// with plugins per point instead of multiPoint.
std::string EffectiveConfigYaml(const Config& config, const Profiles* resolved);

}  // namespace outboard::config

#endif  // OUTBOARD_SHIM_CONFIG_PROFILES_H_
