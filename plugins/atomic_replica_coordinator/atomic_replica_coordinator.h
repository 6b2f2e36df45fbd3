// AtomicReplicaCoordinator: the replicas of a job start together or not at all.
#ifndef OUTBOARD_PLUGINS_ATOMIC_REPLICA_COORDINATOR_ATOMIC_REPLICA_COORDINATOR_H_
#define OUTBOARD_PLUGINS_ATOMIC_REPLICA_COORDINATOR_ATOMIC_REPLICA_COORDINATOR_H_

#include "plugin_host/sdk/plugin.h"

namespace outboard::atomic_replica_coordinator {

sdk::PluginDescriptor Descriptor();

}  // namespace outboard::atomic_replica_coordinator

#endif  // OUTBOARD_PLUGINS_ATOMIC_REPLICA_COORDINATOR_ATOMIC_REPLICA_COORDINATOR_H_
