// One profile on one small cluster: the real queue, cycle and host in one process, on virtual time.
#ifndef OUTBOARD_INTEGRATION_SIMULATOR_POINTS_POINTS_RUN_H_
#define OUTBOARD_INTEGRATION_SIMULATOR_POINTS_POINTS_RUN_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "outboard/v1beta1/plugin_host.pb.h"
#include "outboard/v1beta1/types.pb.h"
#include "plugin_host/sdk/plugin_registry.h"

namespace outboard::points {

using Points = std::set<v1beta1::ExtensionPoint>;

// A plugin of the profile, where it is enabled.
struct PluginAtPoints {
  std::string plugin;
  Points points;
};

// `preFilter`, as configurations name the point.
std::string ConfigName(v1beta1::ExtensionPoint point);

// A KubeSchedulerConfiguration whose profile `p` has only these plugins, and PrioritySort and
// DefaultBinder where these have none.
std::string ConfigText(const std::vector<PluginAtPoints>& plugins);

// A gang that the run must not split.
struct Gang {
  int min = 0;
  bool can_be_placed = false;  // all of its members exist, and fit
};

struct Cluster {
  std::vector<v1beta1::Node> nodes;
  std::vector<v1beta1::Pod> running;
  std::vector<v1beta1::Pod> pending;
  std::map<std::string, Gang> gangs;           // by name
  std::map<std::string, std::string> gang_of;  // by the pod's uid
};

struct Outcome {
  std::string refused;              // why the host refuses the configuration; empty: it does not
  std::vector<std::string> faults;  // what no profile may cause
  std::set<std::string> bound;      // uids of pods
  std::map<std::string, std::string> messages;  // the last attempt's, by the pod's uid
};

// Ends when nothing happens any more, or after some minutes of virtual time.
Outcome Run(const sdk::PluginRegistry& registry, const std::vector<PluginAtPoints>& plugins,
            const Cluster& cluster);

}  // namespace outboard::points

#endif  // OUTBOARD_INTEGRATION_SIMULATOR_POINTS_POINTS_RUN_H_
