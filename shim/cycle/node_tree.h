// The order in which nodes are examined: kube-scheduler's node tree.
#ifndef OUTBOARD_SHIM_CYCLE_NODE_TREE_H_
#define OUTBOARD_SHIM_CYCLE_NODE_TREE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "proto/outboard/v1alpha1/types.pb.h"

namespace outboard::cycle {

// The failure zone of a node, region and zone together; empty if it names neither. The beta labels
// win, as in Kubernetes.
std::string ZoneKey(const v1alpha1::Node& node);

// Nodes by zone. Order() takes one node from each zone in turn; zones in the order in which they
// were first seen, nodes in that of arrival.
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
  // In order of first sight. A zone that loses its last node loses its place, too.
  std::vector<Zone> zones_;
  std::vector<uint32_t> order_;
  bool stale_ = false;
  size_t size_ = 0;
};

}  // namespace outboard::cycle

#endif  // OUTBOARD_SHIM_CYCLE_NODE_TREE_H_
