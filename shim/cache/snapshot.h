// The whole cluster at one version, for a host that is new or must start from scratch.
#ifndef OUTBOARD_SHIM_CACHE_SNAPSHOT_H_
#define OUTBOARD_SHIM_CACHE_SNAPSHOT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "outboard/v1beta1/cluster_state.pb.h"
#include "shim/cache/host_fields.h"
#include "shim/kube/objects.h"

namespace outboard::cache {

// Encodes objects for the contract, restricted to `fields`.
void FillNode(const kube::NodeObject& node, uint32_t slot, const HostFields& fields,
              v1beta1::NodeUpsert* out);
void FillPod(const kube::PodObject& pod, const HostFields& fields, v1beta1::PodUpsert* out);

// Holds the objects themselves, which never change. So it can be sent in pieces while the cluster
// changes: sending ten thousand pods at once would delay the next pod by a tenth of a second.
//
// Threading: thread-compatible.
// Lifetime: shares ownership of the objects; depends on nothing else.
class Snapshot {
 public:
  struct Node {
    uint32_t slot;
    kube::NodePtr object;
  };
  struct Pod {
    kube::PodPtr object;
    // Null if the object itself names its node, or the pod has none.
    std::unique_ptr<v1beta1::PodPlacement> placement;
  };
  struct Content {
    std::vector<Node> nodes;
    std::vector<kube::NamespacePtr> namespaces;
    std::vector<kube::ClusterObjectPtr> objects;
    // In the order in which they were placed. A host lists a node's pods in this order, and the
    // choice of victims may depend on it.
    std::vector<Pod> pods;
    v1beta1::NodeOrder node_order;
  };

  Snapshot(int64_t version, Content content, HostFields fields,
           std::vector<uint64_t> ended_attempts);

  int64_t version() const { return version_; }
  // The next message, of at most `bytes` unless a single object is larger; nullopt at the end.
  std::optional<v1beta1::SyncRequest> Next(size_t bytes);

 private:
  // False: everything was sent.
  bool AddNext(v1beta1::SyncRequest* request);

  const int64_t version_;
  const Content content_;
  const HostFields fields_;
  const std::vector<uint64_t> ended_attempts_;
  size_t sent_ = 0;  // count of nodes, namespaces, objects and pods sent, in this order
  bool begun_ = false;
  bool ended_ = false;
};

}  // namespace outboard::cache

#endif  // OUTBOARD_SHIM_CACHE_SNAPSHOT_H_
