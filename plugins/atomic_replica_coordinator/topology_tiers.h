// Maps the levels of a group's topology to node labels.
#ifndef OUTBOARD_PLUGINS_ATOMIC_REPLICA_COORDINATOR_TOPOLOGY_TIERS_H_
#define OUTBOARD_PLUGINS_ATOMIC_REPLICA_COORDINATOR_TOPOLOGY_TIERS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "plugin_host/sdk/args_reader.h"
#include "plugin_host/sdk/group_plugin.h"
#include "plugin_host/sdk/pod_groups.h"

namespace outboard::atomic_replica_coordinator {

// Volcano numbers tiers, the closest first; other schedulers name node labels. The plugin does not
// read Volcano's HyperNodes: the args map each tier to a label.
//
// Threading: immutable.
// Errors: reported as problems of the args.
class TopologyTiers {
 public:
  // `topologyTiers` of the args.
  explicit TopologyTiers(const sdk::ArgsObject& args);

  // INVALID_ARGUMENT: the group must not cross a level whose label is not configured. If it only
  // prefers not to cross that level, the level is ignored.
  absl::StatusOr<sdk::TopologyLevels> LevelsOf(sdk::GroupDialect dialect,
                                               const sdk::TopologyPreference& preference) const;

 private:
  struct Tier {
    int64_t tier = 0;
    std::string name;
    std::string label;
  };
  // By name or number; null: unknown.
  const Tier* Find(const std::string& tier) const;

  std::vector<Tier> tiers_;  // the closest first
};

extern const char kTopologyTiersSchema[];

}  // namespace outboard::atomic_replica_coordinator

#endif  // OUTBOARD_PLUGINS_ATOMIC_REPLICA_COORDINATOR_TOPOLOGY_TIERS_H_
