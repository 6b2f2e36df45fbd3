// The arguments of PodTopologySpread: constraints for pods without any.
#ifndef OUTBOARD_PLUGINS_POD_TOPOLOGY_SPREAD_POD_TOPOLOGY_SPREAD_ARGS_H_
#define OUTBOARD_PLUGINS_POD_TOPOLOGY_SPREAD_POD_TOPOLOGY_SPREAD_ARGS_H_

#include <vector>

#include "outboard/v1beta1/types.pb.h"
#include "plugin_host/sdk/args_reader.h"

namespace outboard::pod_topology_spread {

// A JSON schema of the arguments.
extern const char kArgsSchema[];

struct SpreadArgs {
  // The constraints are the system's; nodes without one of the labels still count.
  bool system_defaulted = true;
  std::vector<v1beta1::TopologySpreadConstraint> default_constraints;
};

// Reads and checks the arguments; reports errors to the reader.
SpreadArgs ReadArgs(sdk::ArgsReader* reader);

}  // namespace outboard::pod_topology_spread

#endif  // OUTBOARD_PLUGINS_POD_TOPOLOGY_SPREAD_POD_TOPOLOGY_SPREAD_ARGS_H_
