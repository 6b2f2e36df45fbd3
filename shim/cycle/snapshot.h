// The whole cluster at one version, for the mirror of a host that is new or begins anew.
#ifndef OUTBOARD_SHIM_CYCLE_SNAPSHOT_H_
#define OUTBOARD_SHIM_CYCLE_SNAPSHOT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "proto/outboard/v1alpha1/cluster_state.pb.h"
#include "shim/kube/objects.h"

namespace outboard::cycle {

// What a host's plugins read beyond the contract's own fields.
struct MirrorFields {
  absl::flat_hash_set<std::string> pod_annotations;
  absl::flat_hash_set<std::string> node_annotations;
  bool command = false;                        // of containers
  bool args = false;                           // of containers
  absl::flat_hash_set<std::string> variables;  // of containers' environments
  // Of which custom resources objects are sent.
  absl::flat_hash_set<std::string> custom_resources;

  bool Wants(const v1alpha1::ClusterObject& object) const {
    return !object.has_custom_object() ||
           custom_resources.contains(object.custom_object().resource());
  }
};

// Objects as the contract tells them, with no more than `fields` says.
void FillNode(const kube::NodeObject& node, uint32_t slot, const MirrorFields& fields,
              v1alpha1::NodeUpsert* out);
// What a pod has beyond `fields` and the contract's own goes.
void StripUndeclared(const MirrorFields& fields, v1alpha1::Pod* pod);
void FillPod(const kube::PodObject& pod, const MirrorFields& fields, v1alpha1::PodUpsert* out);

// Holds the objects themselves, which never change, so it is told piece by piece while the cluster
// goes on: telling ten thousand pods in one piece would keep the next pod waiting for a tenth of a
// second.
//
// Threading: thread-compatible. Lifetime: keeps the objects; needs nobody else.
class Snapshot {
 public:
  struct Node {
    uint32_t slot;
    kube::NodePtr object;
  };
  struct Pod {
    kube::PodPtr object;
    // Null where the object itself says where it is, or it is nowhere.
    std::unique_ptr<v1alpha1::PodPlacement> placement;
  };
  struct Content {
    std::vector<Node> nodes;
    std::vector<kube::NamespacePtr> namespaces;
    std::vector<kube::ClusterObjectPtr> objects;
    // In the order in which they got their places: in it a node's pods stand in a mirror, and who
    // is evicted may depend on it.
    std::vector<Pod> pods;
    v1alpha1::NodeOrder node_order;
  };

  Snapshot(int64_t version, Content content, MirrorFields fields,
           std::vector<uint64_t> ended_attempts);

  int64_t version() const { return version_; }
  // The next message, of at most `bytes` unless a single object is larger; none: that was all.
  std::optional<v1alpha1::SyncRequest> Next(size_t bytes);

 private:
  // False: all are told.
  bool AddNext(v1alpha1::SyncRequest* request);

  const int64_t version_;
  const Content content_;
  const MirrorFields fields_;
  const std::vector<uint64_t> ended_attempts_;
  size_t told_ = 0;  // of nodes, namespaces, objects and pods, in this order
  bool begun_ = false;
  bool ended_ = false;
};

}  // namespace outboard::cycle

#endif  // OUTBOARD_SHIM_CYCLE_SNAPSHOT_H_
