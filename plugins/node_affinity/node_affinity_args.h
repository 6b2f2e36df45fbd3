// The arguments of NodeAffinity: `addedAffinity`, in the fields of a pod's nodeAffinity.
#ifndef OUTBOARD_PLUGINS_NODE_AFFINITY_NODE_AFFINITY_ARGS_H_
#define OUTBOARD_PLUGINS_NODE_AFFINITY_NODE_AFFINITY_ARGS_H_

#include "outboard/v1beta1/types.pb.h"
#include "plugin_host/sdk/args_reader.h"

namespace outboard::node_affinity {

// A JSON schema of the arguments.
extern const char kArgsSchema[];

// Reads and checks `addedAffinity`; reports errors to the reader. Absent: an affinity without
// rules.
v1beta1::NodeAffinity ReadAddedAffinity(const sdk::ArgsObject& args);

}  // namespace outboard::node_affinity

#endif  // OUTBOARD_PLUGINS_NODE_AFFINITY_NODE_AFFINITY_ARGS_H_
