// Which labels of nodes the levels of a group's topology are.
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

// Volcano counts tiers, the closest first, where others name labels of nodes. Its HyperNodes are
// not read: the tiers are the labels that the args say.
//
// Threading: immutable. Errors: as problems of the args.
class TopologyTiers {
 public:
  // `topologyTiers` of the args.
  explicit TopologyTiers(const sdk::ArgsObject& args);

  // INVALID_ARGUMENT: the group must not cross a level that nobody has said the label of; where it
  // only should not, that is left out.
  absl::StatusOr<sdk::TopologyLevels> LevelsOf(sdk::GroupDialect dialect,
                                               const sdk::TopologyWish& wish) const;

 private:
  struct Tier {
    int64_t tier = 0;
    std::string name;
    std::string label;
  };
  // Null: none of them. By its name or its number.
  const Tier* Find(const std::string& tier) const;

  std::vector<Tier> tiers_;  // the closest first
};

extern const char kTopologyTiersSchema[];

}  // namespace outboard::atomic_replica_coordinator

#endif  // OUTBOARD_PLUGINS_ATOMIC_REPLICA_COORDINATOR_TOPOLOGY_TIERS_H_
