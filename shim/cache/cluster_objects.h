// How ClusterState keeps its objects; for its own sources only.
#ifndef OUTBOARD_SHIM_CACHE_CLUSTER_OBJECTS_H_
#define OUTBOARD_SHIM_CACHE_CLUSTER_OBJECTS_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "shim/cache/cluster_state.h"

namespace outboard::cache {

// One life of a node in a slot. Stays in the log after the node was deleted.
struct ClusterState::NodeRecord : ChangeRecord {
  explicit NodeRecord(uint32_t s) : ChangeRecord(ChangeKind::kNode), slot(s) {}
  const uint32_t slot;
  kube::NodePtr object;  // null once removed
};

// A node name and the pods counted there. A "ghost" while no node has the name.
struct ClusterState::Node {
  std::string name;
  NodeUsage usage;
  std::vector<Pod*> pods;
  std::unique_ptr<NodeRecord> record;  // null: a ghost
  std::string zone;
  uint64_t generation = 0;

  uint32_t slot() const { return record == nullptr ? kNoSlot : record->slot; }
};

struct ClusterState::Pod : ChangeRecord {
  Pod() : ChangeRecord(ChangeKind::kPod) {}
  enum class State { kPending, kAssumed, kBound };
  State state = State::kPending;
  // The API server confirmed the placement, but hosts did not receive the object that names the
  // node. For them the pod is still assumed, or BOUND.
  bool bound_as_foreseen = false;
  kube::PodPtr object;  // null once removed
  PodDemand demand;     // as counted on `node`
  Node* node = nullptr;
  size_t index_in_node = 0;
  std::string nominated_node;
  uint64_t waiting_attempt = 0;
  std::vector<PluginWait> waits;
  std::vector<v1beta1::Effect> effects;  // of an assumed pod
  std::vector<HostState> states;         // of an assumed pod
  std::string removed_uid;               // once removed
};

struct ClusterState::Namespace : ChangeRecord {
  Namespace() : ChangeRecord(ChangeKind::kNamespace) {}
  kube::NamespacePtr object;  // null once removed
  std::string name;
};

// An object of the kinds of objects.proto.
struct ClusterState::Object : ChangeRecord {
  Object() : ChangeRecord(ChangeKind::kObject) {}
  kube::ClusterObjectPtr object;           // null once removed
  std::optional<absl::Time> unseen_since;  // time of a write that the informer has not reported
  v1beta1::ObjectReference removed_name;   // once removed
};

}  // namespace outboard::cache

#endif  // OUTBOARD_SHIM_CACHE_CLUSTER_OBJECTS_H_
