// A plugin's views: a pod, a node, the cluster. Cheap handles over the cache, passed by value.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_VIEWS_H_
#define OUTBOARD_PLUGIN_HOST_SDK_VIEWS_H_

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "plugin_host/sdk/cluster_objects.h"
#include "plugin_host/sdk/node_table.h"

namespace outboard::sdk {

// A pod. `proto()` has every field of the contract; the other methods are precomputed.
//
// Threading: a value.
// Lifetime: as the record; within one call.
// Errors: none.
class PodView {
 public:
  explicit PodView(const PodRecord* record) : record_(record) {}
  const v1beta1::Pod& proto() const { return record_->pod; }
  const PodRecord& record() const { return *record_; }
  absl::string_view uid() const { return record_->pod.uid(); }
  absl::string_view name() const { return record_->pod.name(); }
  absl::string_view namespace_name() const { return record_->pod.namespace_(); }
  int32_t priority() const { return record_->pod.priority(); }
  // Its usage on a node, including resizes. A pending pod's request is ComputePodRequests(proto()).
  const PodUsage& usage() const { return record_->usage; }
  std::optional<absl::string_view> Label(const std::string& key) const {
    auto it = record_->pod.labels().find(key);
    if (it == record_->pod.labels().end()) return std::nullopt;
    return it->second;
  }
  std::optional<absl::string_view> Annotation(const std::string& key) const {
    auto it = record_->pod.annotations().find(key);
    if (it == record_->pod.annotations().end()) return std::nullopt;
    return it->second;
  }

 private:
  const PodRecord* record_;
};

// A node with the pods on it.
//
// Threading: a value.
// Lifetime: within one call.
// Errors: none.
class NodeView {
 public:
  NodeView(const NodeTable* table, Slot slot) : table_(table), slot_(slot) {}
  Slot slot() const { return slot_; }
  const NodeTable& table() const { return *table_; }
  const v1beta1::Node& proto() const { return table_->nodes[slot_]; }
  const std::string& name() const { return proto().name(); }
  bool unschedulable() const { return table_->unschedulable[slot_] != 0; }
  const std::vector<v1beta1::Taint>& taints() const {
    return table_->taint_sets[table_->taint_set[slot_]];
  }
  // The id of the value of a label (in NodeTable::label_values), StringTable::kNone if the node
  // lacks the label.
  uint32_t LabelValueId(uint32_t key_id) const {
    const auto& labels = table_->labels[slot_];
    auto it = std::lower_bound(labels.begin(), labels.end(), key_id,
                               [](const auto& entry, uint32_t key) { return entry.first < key; });
    return it == labels.end() || it->first != key_id ? StringTable::kNone : it->second;
  }
  std::optional<absl::string_view> Label(absl::string_view key) const {
    const uint32_t key_id = table_->label_keys.Find(key);
    if (key_id == StringTable::kNone) return std::nullopt;
    const uint32_t value_id = LabelValueId(key_id);
    if (value_id == StringTable::kNone) return std::nullopt;
    return table_->label_values.Text(value_id);
  }
  std::optional<absl::string_view> Annotation(const std::string& key) const {
    auto it = proto().annotations().find(key);
    if (it == proto().annotations().end()) return std::nullopt;
    return it->second;
  }
  // By Kubernetes' resource name (`cpu` in millis, `memory`, `ephemeral-storage`, `pods`, or an
  // extended name).
  int64_t Allocatable(absl::string_view resource) const;
  int64_t Requested(absl::string_view resource) const;  // `pods`: the number of pods.
  // Bound, assumed and waiting pods.
  const std::vector<PodRecord*>& pods() const { return table_->pods[slot_]; }
  const std::vector<HostPort>& host_ports() const { return table_->host_ports[slot_]; }
  bool HasImage(uint32_t image_id) const {
    const auto& images = table_->images[slot_];
    return std::binary_search(images.begin(), images.end(), image_id);
  }

 private:
  const NodeTable* table_;
  Slot slot_;
};

// Pods by uid.
using PodMap = absl::flat_hash_map<std::string, std::unique_ptr<PodRecord>>;
// Labels of namespaces by name.
using NamespaceMap = absl::flat_hash_map<std::string, std::map<std::string, std::string>>;

// The whole cluster: nodes, pods of every scheduler (also pending), namespaces, and other objects.
//
// Threading: a value.
// Lifetime: as the cache; returned references are valid within one call.
// Errors: none.
class ClusterView {
 public:
  ClusterView(const NodeTable* nodes, const PodMap* pods, const NamespaceMap* namespaces,
              const ClusterObjects* objects)
      : nodes_(nodes), pods_(pods), namespaces_(namespaces), objects_(objects) {}
  const NodeTable& nodes() const { return *nodes_; }
  // Slots in the order in which nodes are examined.
  absl::Span<const Slot> node_order() const { return nodes_->order; }
  NodeView node(Slot slot) const { return NodeView(nodes_, slot); }
  std::optional<NodeView> FindNode(absl::string_view name) const;
  const PodMap& pods() const { return *pods_; }
  const PodRecord* FindPod(absl::string_view uid) const;
  // Null for an unknown namespace.
  const std::map<std::string, std::string>* NamespaceLabels(absl::string_view name) const;
  const NamespaceMap& namespaces() const { return *namespaces_; }
  const ClusterObjects& objects() const { return *objects_; }

 private:
  const NodeTable* nodes_;
  const PodMap* pods_;
  const NamespaceMap* namespaces_;
  const ClusterObjects* objects_;
};

}  // namespace outboard::sdk

#endif  // OUTBOARD_PLUGIN_HOST_SDK_VIEWS_H_
