// Domains: the values that a node label takes, in which pods are counted.
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

// The domain of every node under one topology key, as a column over slots. Domains are small
// numbers, in the order in which their values appeared; a number is never used for another value.
//
// Threading: thread-compatible.
// Lifetime:  kept up to date by Topologies while anybody holds it, until its Clear.
// Errors:    none.
class Topology {
 public:
  // kNoDomain for a node without the label, and for a slot without a node.
  uint32_t DomainOf(sdk::Slot slot) const {
    return slot < domains_.size() ? domains_[slot] : kNoDomain;
  }
  // How many domains there have been.
  uint32_t size() const { return static_cast<uint32_t>(domain_of_value_.size()); }
  // The key in NodeTable::label_keys; StringTable::kNone while no node ever had it.
  uint32_t key_id() const { return key_id_; }

 private:
  friend class Topologies;
  explicit Topology(std::string key) : key_(std::move(key)) {}
  // What the node's labels say now.
  uint32_t ValueOf(const sdk::NodeView& node);
  bool Moves(const sdk::NodeView& node);
  void Update(const sdk::NodeView& node);

  const std::string key_;
  uint32_t key_id_ = sdk::StringTable::kNone;
  std::vector<uint32_t> domains_;                            // By slot.
  std::vector<uint32_t> values_;                             // By domain.
  absl::flat_hash_map<uint32_t, uint32_t> domain_of_value_;  // By the value's id.
};

// The columns that somebody holds.
//
// Threading: thread-compatible. Lifetime: as the cluster. Errors: none.
class Topologies {
 public:
  explicit Topologies(sdk::ClusterView cluster) : cluster_(cluster) {}
  // Made over all nodes if nobody holds it yet.
  std::shared_ptr<const Topology> Get(const std::string& key);
  // Whether a node's labels put it into another domain of any column than it is in.
  bool Moves(sdk::Slot slot);
  // Follows the node's labels, or its removal.
  void Update(sdk::Slot slot);
  // Forgets keys whose columns nobody holds any more.
  void Sweep();
  void Clear() { held_.clear(); }

 private:
  sdk::ClusterView cluster_;
  absl::flat_hash_map<std::string, std::weak_ptr<Topology>> held_;
};

// How often something is in each domain, and what it weighs there. Only domains in which it is
// take memory.
//
// Threading: thread-compatible. Lifetime: a value. Errors: none.
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
