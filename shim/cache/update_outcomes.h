// What an update from an informer did to ClusterState.
#ifndef OUTBOARD_SHIM_CACHE_UPDATE_OUTCOMES_H_
#define OUTBOARD_SHIM_CACHE_UPDATE_OUTCOMES_H_

#include <string>

#include "shim/kube/objects.h"

namespace outboard::cache {

struct PodOutcome {
  enum class Kind {
    kIgnored,        // nothing new: the same resource version, or an unknown pod that has finished
    kAddedPending,   // new, without a node
    kAddedAssigned,  // new, on a node
    kUpdatedPending,
    kUpdatedAssigned,
    kBound,      // was pending, has a node now, and was not assumed
    kConfirmed,  // was assumed on the node that it has now
    kMoved,      // was assumed on, or had, another node: the API server is right
    kRemoved,    // deleted, or finished
  };
  Kind kind = Kind::kIgnored;
  // The previous version of the pod; null if it is new.
  kube::PodPtr old;
  // Another known pod of this name, which this update replaces.
  kube::PodPtr replaced;
  // With kRemoved and kMoved: the pod was assumed until now. Its attempt may be in progress.
  bool was_assumed = false;
  // The name of the node that it was assumed on or bound to before; empty: none.
  std::string old_node;
  // This update set its deletionTimestamp.
  bool deletion_started = false;
};

struct NodeOutcome {
  enum class Kind { kIgnored, kAdded, kUpdated, kReplaced, kRemoved };
  Kind kind = Kind::kIgnored;
  kube::NodePtr old;
};

// Of an object of another kind.
struct ObjectOutcome {
  enum class Kind { kIgnored, kAdded, kUpdated, kReplaced, kRemoved };
  Kind kind = Kind::kIgnored;
  kube::ClusterObjectPtr old;
};

}  // namespace outboard::cache

#endif  // OUTBOARD_SHIM_CACHE_UPDATE_OUTCOMES_H_
