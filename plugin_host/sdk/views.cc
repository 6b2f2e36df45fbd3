#include "plugin_host/sdk/views.h"

namespace outboard::sdk {

int64_t NodeView::Allocatable(absl::string_view resource) const {
  if (resource == "cpu") return table_->allocatable_cpu[slot_];
  if (resource == "memory") return table_->allocatable_memory[slot_];
  if (resource == "ephemeral-storage") return table_->allocatable_ephemeral[slot_];
  if (resource == "pods") return table_->allocatable_pods[slot_];
  auto it = table_->extended_by_name.find(resource);
  return it == table_->extended_by_name.end() ? 0 : table_->extended[it->second].allocatable[slot_];
}

int64_t NodeView::Requested(absl::string_view resource) const {
  if (resource == "cpu") return table_->requested_cpu[slot_];
  if (resource == "memory") return table_->requested_memory[slot_];
  if (resource == "ephemeral-storage") return table_->requested_ephemeral[slot_];
  if (resource == "pods") return table_->pod_count[slot_];
  auto it = table_->extended_by_name.find(resource);
  return it == table_->extended_by_name.end() ? 0 : table_->extended[it->second].requested[slot_];
}

std::optional<NodeView> ClusterView::FindNode(absl::string_view name) const {
  auto it = nodes_->slot_by_name.find(name);
  if (it == nodes_->slot_by_name.end()) return std::nullopt;
  return NodeView(nodes_, it->second);
}

const PodRecord* ClusterView::FindPod(absl::string_view uid) const {
  auto it = pods_->find(uid);
  return it == pods_->end() ? nullptr : it->second.get();
}

const std::map<std::string, std::string>* ClusterView::NamespaceLabels(
    absl::string_view name) const {
  auto it = namespaces_->find(name);
  return it == namespaces_->end() ? nullptr : &it->second;
}

}  // namespace outboard::sdk
