// The order in which nodes are examined: kube-scheduler's node tree.
#ifndef OUTBOARD_SHIM_CACHE_NODE_TREE_H_
#define OUTBOARD_SHIM_CACHE_NODE_TREE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "outboard/v1beta1/types.pb.h"

namespace outboard::cache {

// The failure zone of a node: region and zone. Empty if the node has neither label. The beta labels
// take precedence, as in Kubernetes.
std::string ZoneKey(const v1beta1::Node& node);

// Nodes by zone. Order() takes one node from each zone in turn. Zones are in the order in which
// they were first seen, nodes in order of arrival.
//
// Threading: thread-compatible.
class NodeTree {
 public:
  // The slot must not be in the tree.
  void Add(const std::string& zone, uint32_t slot);
  // The slot must be in that zone.
  void Remove(const std::string& zone, uint32_t slot);

  // Rebuilt only after Add or Remove.
  const std::vector<uint32_t>& Order();
  size_t size() const { return size_; }

 private:
  struct Zone {
    std::string key;
    std::vector<uint32_t> slots;
  };
  // In the order first seen. A zone that loses its last node also loses its place.
  std::vector<Zone> zones_;
  std::vector<uint32_t> order_;
  bool stale_ = false;
  size_t size_ = 0;
};

}  // namespace outboard::cache

#endif  // OUTBOARD_SHIM_CACHE_NODE_TREE_H_
