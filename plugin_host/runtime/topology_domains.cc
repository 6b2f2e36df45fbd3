#include "plugin_host/runtime/topology_domains.h"

#include "absl/container/flat_hash_map.h"

namespace outboard::runtime {

const std::vector<TopologyDomain>& TopologyDomains::Of(const std::string& key) {
  const sdk::NodeTable& nodes = cache_->view().nodes();
  const auto [entry, is_new] = by_key_.try_emplace(key);
  Level& level = entry->second;
  // The order may change without a change of a node.
  if (!is_new && level.order == nodes.order) return level.domains;
  level.order = nodes.order;
  level.domains.clear();
  absl::flat_hash_map<std::string, size_t> known;
  for (const sdk::Slot slot : nodes.order) {
    const auto& labels = nodes.nodes[slot].labels();
    const auto label = labels.find(key);
    if (label == labels.end()) continue;
    const auto [at, added] = known.try_emplace(label->second, level.domains.size());
    if (added) level.domains.push_back({label->second, {}});
    level.domains[at->second].nodes.push_back(slot);
  }
  return level.domains;
}

}  // namespace outboard::runtime
