// Domains: the values of a node label, by which pods are counted.
#ifndef OUTBOARD_PLUGINS_INTER_POD_AFFINITY_TOPOLOGY_H_
#define OUTBOARD_PLUGINS_INTER_POD_AFFINITY_TOPOLOGY_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "plugin_host/sdk/views.h"

namespace outboard::inter_pod_affinity {

inline constexpr uint32_t kNoDomain = 0xffffffff;

// The domain of every node for one topology key, as a column over slots. Domains are numbered in
// the order in which their values appeared. A number is never reused for another value.
//
// Threading: thread-compatible.
// Lifetime:  Topologies updates it while a shared_ptr to it exists, until Topologies::Clear.
// Errors:    none.
class Topology {
 public:
  // kNoDomain for a node without the label, and for a slot without a node.
  uint32_t DomainOf(sdk::Slot slot) const {
    return slot < domains_.size() ? domains_[slot] : kNoDomain;
  }
  // The number of domains so far, including those without nodes now.
  uint32_t size() const { return static_cast<uint32_t>(domain_of_value_.size()); }
  // Index in NodeTable::label_keys; StringTable::kNone if no node has had the key yet.
  uint32_t key_id() const { return key_id_; }

 private:
  friend class Topologies;
  explicit Topology(std::string key) : key_(std::move(key)) {}
  // The value id in the node's current labels.
  uint32_t ValueOf(const sdk::NodeView& node);
  bool Moves(const sdk::NodeView& node);
  void Update(const sdk::NodeView& node);

  const std::string key_;
  uint32_t key_id_ = sdk::StringTable::kNone;
  std::vector<uint32_t> domains_;                            // By slot.
  std::vector<uint32_t> values_;                             // By domain.
  absl::flat_hash_map<uint32_t, uint32_t> domain_of_value_;  // By the value's id.
};

// The columns that are in use.
//
// Threading: thread-compatible.
// Lifetime:  the cluster must outlive it.
// Errors:    none.
class Topologies {
 public:
  explicit Topologies(sdk::ClusterView cluster) : cluster_(cluster) {}
  // Builds the column over all nodes if it is not in use yet.
  std::shared_ptr<const Topology> Get(const std::string& key);
  // Whether the node's current labels move it to another domain in any column.
  bool Moves(sdk::Slot slot);
  // Applies the node's current labels, or its removal.
  void Update(sdk::Slot slot);
  // Removes keys whose columns are not in use any more.
  void Sweep();
  void Clear() { held_.clear(); }

 private:
  sdk::ClusterView cluster_;
  absl::flat_hash_map<std::string, std::weak_ptr<Topology>> held_;
};

// Counts and sums of weights by domain. Domains with count 0 use no memory.
//
// Threading: thread-compatible.
// Lifetime:  a value.
// Errors:    none.
class DomainCounts {
 public:
  struct Cell {
    uint32_t domain;
    int32_t count;   // Never 0.
    int64_t weight;  // The sum.
  };
  void Add(uint32_t domain, int32_t count, int64_t weight);
  const std::vector<Cell>& cells() const { return cells_; }
  bool empty() const { return cells_.empty(); }

 private:
  std::vector<Cell> cells_;
  absl::flat_hash_map<uint32_t, uint32_t> position_;  // In cells_, by domain.
};

}  // namespace outboard::inter_pod_affinity

#endif  // OUTBOARD_PLUGINS_INTER_POD_AFFINITY_TOPOLOGY_H_
