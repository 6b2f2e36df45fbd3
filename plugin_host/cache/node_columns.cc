// The part of the cache that turns a node into columns.
#include <algorithm>

#include "plugin_host/cache/cluster_cache.h"
#include "plugin_host/sdk/resources.h"

namespace outboard::host_cache {

using sdk::Slot;

void ClusterCache::GrowTo(Slot slot) {
  const size_t size = static_cast<size_t>(slot) + 1;
  if (size <= nodes_.occupied.size()) return;
  for (auto* column : {&nodes_.allocatable_cpu, &nodes_.allocatable_memory,
                       &nodes_.allocatable_ephemeral, &nodes_.allocatable_pods,
                       &nodes_.requested_cpu, &nodes_.requested_memory, &nodes_.requested_ephemeral,
                       &nodes_.nonzero_cpu, &nodes_.nonzero_memory, &nodes_.pod_count}) {
    column->resize(size, 0);
  }
  nodes_.occupied.resize(size, 0);
  nodes_.unschedulable.resize(size, 0);
  nodes_.taint_set.resize(size, 0);
  nodes_.nominated_count.resize(size, 0);
  for (sdk::ExtendedColumn& column : nodes_.extended) {
    column.allocatable.resize(size, 0);
    column.requested.resize(size, 0);
  }
  nodes_.nodes.resize(size);
  nodes_.labels.resize(size);
  nodes_.pods.resize(size);
  nodes_.nominated.resize(size);
  nodes_.host_ports.resize(size);
  nodes_.images.resize(size);
  nodes_.generation.resize(size, 0);
}

uint32_t ClusterCache::ExtendedColumn(const std::string& name) {
  auto [it, inserted] =
      nodes_.extended_by_name.try_emplace(name, static_cast<uint32_t>(nodes_.extended.size()));
  if (inserted) {
    sdk::ExtendedColumn column;
    column.name = name;
    column.allocatable.resize(nodes_.occupied.size(), 0);
    column.requested.resize(nodes_.occupied.size(), 0);
    nodes_.extended.push_back(std::move(column));
  }
  return it->second;
}

uint32_t ClusterCache::InternTaints(const v1beta1::Node& node) {
  std::string key;
  for (const v1beta1::Taint& taint : node.taints()) {
    key.append(taint.key()).push_back('\0');
    key.append(taint.value()).push_back('\0');
    key.push_back(static_cast<char>(taint.effect()));
  }
  auto [it, inserted] =
      taint_set_ids_.try_emplace(std::move(key), static_cast<uint32_t>(nodes_.taint_sets.size()));
  if (inserted) nodes_.taint_sets.emplace_back(node.taints().begin(), node.taints().end());
  return it->second;
}

void ClusterCache::SetNodeColumns(Slot slot, const v1beta1::Node& node) {
  nodes_.nodes[slot] = node;
  const v1beta1::ResourceList& allocatable = node.allocatable();
  nodes_.allocatable_cpu[slot] = allocatable.cpu_millis();
  nodes_.allocatable_memory[slot] = allocatable.memory_bytes();
  nodes_.allocatable_ephemeral[slot] = allocatable.ephemeral_storage_bytes();
  nodes_.allocatable_pods[slot] = allocatable.pods();
  for (sdk::ExtendedColumn& column : nodes_.extended) column.allocatable[slot] = 0;
  for (const auto& [name, amount] : allocatable.scalar()) {
    if (!sdk::IsScalarResourceName(name)) continue;
    nodes_.extended[ExtendedColumn(name)].allocatable[slot] = amount;
  }
  nodes_.unschedulable[slot] = node.unschedulable();
  nodes_.taint_set[slot] = InternTaints(node);
  auto& labels = nodes_.labels[slot];
  labels.clear();
  for (const auto& [key, value] : node.labels()) {
    labels.emplace_back(nodes_.label_keys.Intern(key), nodes_.label_values.Intern(value));
  }
  std::sort(labels.begin(), labels.end());
}

void ClusterCache::SetImages(Slot slot, const v1beta1::Node* node) {
  std::vector<uint32_t>& images = nodes_.images[slot];
  for (uint32_t id : images) --nodes_.image_states[id].node_count;
  images.clear();
  if (node == nullptr) return;
  for (const v1beta1::ContainerImage& image : node->images()) {
    for (const std::string& name : image.names()) {
      const uint32_t id = nodes_.image_names.Intern(name);
      if (id == nodes_.image_states.size()) nodes_.image_states.emplace_back();
      if (std::find(images.begin(), images.end(), id) != images.end()) continue;
      sdk::ImageState& state = nodes_.image_states[id];
      // The size comes from the first node with the image, as long as any node has it.
      if (state.node_count == 0) state.size_bytes = image.size_bytes();
      ++state.node_count;
      images.push_back(id);
    }
  }
  std::sort(images.begin(), images.end());
}

}  // namespace outboard::host_cache
