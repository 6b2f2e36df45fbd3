// Where the members of a group go that names no topology itself.
#ifndef OUTBOARD_PLUGINS_ATOMIC_REPLICA_COORDINATOR_PREFERRED_LEVELS_H_
#define OUTBOARD_PLUGINS_ATOMIC_REPLICA_COORDINATOR_PREFERRED_LEVELS_H_

#include <string>
#include <vector>

#include "plugin_host/sdk/args_reader.h"
#include "plugin_host/sdk/group_plugin.h"

namespace outboard::atomic_replica_coordinator {

// Workers of a gang exchange data over the network, and wait for the slowest GPU, so they belong
// under one switch and on one model. Other work gains nothing from the labels, which only nodes
// with GPUs have.
//
// Threading: immutable.
// Errors: reported as problems of the args.
class PreferredLevels {
 public:
  // `preferredLevels` and `gpuResourceNames` of the args.
  explicit PreferredLevels(const sdk::ArgsObject& args);

  // Sets the levels of a group without a topology, if a member requests GPUs.
  void AddTo(sdk::GroupToPlace* group) const;

 private:
  std::vector<std::string> levels_;
  std::vector<std::string> gpus_;
};

extern const char kPreferredLevelsSchema[];  // of both args

}  // namespace outboard::atomic_replica_coordinator

#endif  // OUTBOARD_PLUGINS_ATOMIC_REPLICA_COORDINATOR_PREFERRED_LEVELS_H_
