// Counts of pods by selector and domain, updated by changes of the cluster cache.
//
// There are four kinds of columns over node slots. A constraint creates a column on first use; a
// column without use for some time is dropped:
//   Topology      the domain of each node by one label;
//   NodeGroup     the nodes that count for equal keys, affinity and tolerations;
//   MatchingPods  the pods of a namespace that match a selector, by node;
//   DomainSums    these pods by domain, over the nodes of a group.
#ifndef OUTBOARD_PLUGINS_POD_TOPOLOGY_SPREAD_SPREAD_INDEX_H_
#define OUTBOARD_PLUGINS_POD_TOPOLOGY_SPREAD_SPREAD_INDEX_H_

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "plugin_host/sdk/selectors.h"
#include "plugin_host/sdk/tolerations.h"
#include "plugin_host/sdk/views.h"
#include "plugins/pod_topology_spread/constraints.h"
#include "plugins/pod_topology_spread/label_buckets.h"

namespace outboard::pod_topology_spread {

// A domain of a Topology. Ids are dense. An id is reused once no node is in the domain.
using Domain = uint32_t;
inline constexpr Domain kNoDomain = 0xffffffff;  // The node lacks the label.
// The domain of the empty value; always exists. Nodes without the label count here (if they count),
// as in kube-scheduler's lookup.
inline constexpr Domain kEmptyValueDomain = 0;

class Topology {
 public:
  explicit Topology(std::string key) : key_(std::move(key)) {}
  Domain Of(sdk::Slot slot) const { return slot < of_slot_.size() ? of_slot_[slot] : kNoDomain; }
  // Greater than every id.
  size_t size() const { return node_counts_.size(); }
  const std::string& key() const { return key_; }

 private:
  friend class SpreadIndex;
  // The node's value of the label, StringTable::kNone without it.
  uint32_t ValueOf(const sdk::NodeView& node);
  bool Differs(const sdk::NodeView& node);
  void Update(const sdk::NodeView& node);

  std::string key_;
  uint32_t key_id_ = sdk::StringTable::kNone;
  std::vector<Domain> of_slot_;
  std::vector<uint32_t> node_counts_ = {0};                            // By domain.
  std::vector<uint32_t> value_of_domain_ = {sdk::StringTable::kNone};  // Of kEmptyValueDomain: any.
  absl::flat_hash_map<uint32_t, Domain> domain_of_value_;
  std::vector<Domain> free_;
  uint64_t last_use_ = 0;
  bool changing_ = false;
};

// The conditions under which a node counts.
struct NodeGroupSpec {
  std::vector<std::string> keys;  // Labels that it must have; sorted, distinct.
  // The pod whose node selector and affinity the node must match, and the pod that must tolerate
  // the node's taints; null: not checked.
  const v1beta1::Pod* affinity_of = nullptr;
  const v1beta1::Pod* tolerations_of = nullptr;
};

class NodeGroup {
 public:
  explicit NodeGroup(const NodeGroupSpec& spec);
  bool Contains(sdk::Slot slot) const { return slot < members_.size() && members_[slot] != 0; }

 private:
  friend class SpreadIndex;
  bool Admits(const sdk::NodeView& node) const;

  std::vector<std::string> keys_;
  sdk::RequiredNodeAffinity affinity_;
  bool honor_taints_ = false;
  sdk::Tolerations tolerations_;
  std::vector<uint8_t> members_;
  uint64_t last_use_ = 0;
  bool next_ = false;  // New membership of the changing node.
  bool changing_ = false;
};

class DomainSums {
 public:
  DomainSums(std::shared_ptr<const Topology> topology, std::shared_ptr<const NodeGroup> group)
      : topology_(std::move(topology)), group_(std::move(group)) {}
  // Matching pods of a domain, on nodes of the group.
  int64_t pods(Domain domain) const { return domain < pods_.size() ? pods_[domain] : 0; }
  // Nodes of the group in the domain; without any, the domain does not exist for the constraint.
  int32_t nodes(Domain domain) const { return domain < nodes_.size() ? nodes_[domain] : 0; }
  size_t size() const { return nodes_.size(); }
  // The number of domains that exist.
  int64_t present() const { return present_; }

 private:
  friend class SpreadIndex;
  friend class MatchingPods;
  void AddNode(sdk::Slot slot, int32_t pods, int32_t sign);
  void AddPods(sdk::Slot slot, int32_t count);

  std::shared_ptr<const Topology> topology_;
  std::shared_ptr<const NodeGroup> group_;
  std::vector<int32_t> pods_;   // By domain.
  std::vector<int32_t> nodes_;  // By domain.
  int64_t present_ = 0;
  uint64_t last_use_ = 0;
};

class MatchingPods {
 public:
  // Matching pods on the node, independent of groups.
  int32_t On(sdk::Slot slot) const { return slot < on_slot_.size() ? on_slot_[slot] : 0; }

 private:
  friend class SpreadIndex;
  bool Counts(const v1beta1::Pod& pod) const;
  void AddPods(sdk::Slot slot, int32_t count);

  std::string namespace_;
  PodSelector selector_;
  int place_ = 0;  // In the namespace's buckets.
  bool registered_ = false;
  std::vector<int32_t> on_slot_;
  std::vector<std::shared_ptr<DomainSums>> sums_;
  uint64_t last_use_ = 0;
};

// Creates, finds and drops the columns. Bound, assumed and waiting pods count; pods that are being
// deleted do not.
//
// Threading: thread-compatible; called on the cluster cache's thread.
// Lifetime:  the cluster cache must outlive it. A result is current until the next change of the
//            cluster cache; after that it can be read, but may be outdated.
// Errors:    none.
class SpreadIndex {
 public:
  // Maximum number of columns by kind; the least recently used one is dropped first.
  struct Limits {
    size_t topologies = 64;
    size_t groups = 128;
    size_t selectors = 1024;
    size_t sums_of_selector = 16;
  };
  explicit SpreadIndex(const sdk::ClusterView& cluster) : SpreadIndex(cluster, Limits()) {}
  SpreadIndex(const sdk::ClusterView& cluster, Limits limits)
      : cluster_(cluster), limits_(limits) {}

  std::shared_ptr<const Topology> TopologyOf(const std::string& key);
  std::shared_ptr<const NodeGroup> GroupOf(const NodeGroupSpec& spec);
  // Selectors that match nothing or everything count no pod.
  std::shared_ptr<MatchingPods> Matching(absl::string_view ns, const PodSelector& selector);
  std::shared_ptr<const DomainSums> SumsOf(MatchingPods& matching,
                                           const std::shared_ptr<const Topology>& topology,
                                           const std::shared_ptr<const NodeGroup>& group);

  void Reset();
  // A node was added, changed or removed; its pods are unchanged.
  void NodeChanged(sdk::Slot slot);
  void PodAdded(const sdk::PodRecord& pod, sdk::Slot slot);
  void PodRemoved(const sdk::PodRecord& pod, sdk::Slot slot);
  // About once a second; drops columns without use for ten minutes.
  void Tick();

  // For tests.
  size_t columns() const { return topologies_.size() + groups_.size() + matching_.size(); }

 private:
  struct Namespace {
    absl::flat_hash_set<const sdk::PodRecord*> pods;  // On nodes.
    LabelBuckets<MatchingPods*> selectors;
  };
  using MatchingMap = absl::flat_hash_map<std::string, std::shared_ptr<MatchingPods>>;

  // The least recently used entry.
  template <typename Map>
  static typename Map::iterator Oldest(Map& map) {
    return std::min_element(map.begin(), map.end(), [](const auto& a, const auto& b) {
      return a.second->last_use_ < b.second->last_use_;
    });
  }
  void Count(const Namespace& ns, const sdk::PodRecord& pod, sdk::Slot slot, int32_t sign);
  void BuildMatching(MatchingPods* matching);
  void DropMatching(MatchingMap::iterator it);
  // Drops the sums over a topology or group that is dropped.
  void DropSumsOver(const void* topology_or_group);
  // Drops topologies and groups not used after `clock`.
  void DropUnused(uint64_t clock);

  sdk::ClusterView cluster_;
  Limits limits_;
  absl::flat_hash_map<std::string, std::shared_ptr<Topology>> topologies_;
  absl::flat_hash_map<std::string, std::shared_ptr<NodeGroup>> groups_;
  MatchingMap matching_;
  absl::flat_hash_map<std::string, Namespace> namespaces_;
  uint64_t clock_ = 0;             // Counts uses.
  std::deque<uint64_t> at_ticks_;  // clock_ at the last ticks.
};

}  // namespace outboard::pod_topology_spread

#endif  // OUTBOARD_PLUGINS_POD_TOPOLOGY_SPREAD_SPREAD_INDEX_H_
