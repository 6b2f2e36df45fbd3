#include "plugin_host/runtime/topology_domains.h"

#include <optional>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace outboard::runtime {
namespace {

// The node's values of all labels, with commas between them, which values do not have; none if it
// lacks one of them.
std::optional<std::string> DomainOf(const v1beta1::Node& node,
                                    const std::vector<std::string>& keys) {
  std::string value;
  for (size_t i = 0; i < keys.size(); ++i) {
    const auto label = node.labels().find(keys[i]);
    if (label == node.labels().end()) return std::nullopt;
    absl::StrAppend(&value, i == 0 ? "" : ",", label->second);
  }
  return value;
}

}  // namespace

const std::vector<TopologyDomain>& TopologyDomains::Of(const std::string& key) {
  const sdk::NodeTable& nodes = cache_->view().nodes();
  const auto [entry, is_new] = by_key_.try_emplace(key);
  Level& level = entry->second;
  // The order may change without a change of a node.
  if (!is_new && level.order == nodes.order) return level.domains;
  level.order = nodes.order;
  level.domains.clear();
  const std::vector<std::string> keys = absl::StrSplit(key, ',');
  absl::flat_hash_map<std::string, size_t> known;
  for (const sdk::Slot slot : nodes.order) {
    const std::optional<std::string> value = DomainOf(nodes.nodes[slot], keys);
    if (!value) continue;
    const auto [at, added] = known.try_emplace(*value, level.domains.size());
    if (added) level.domains.push_back({*value, {}});
    level.domains[at->second].nodes.push_back(slot);
  }
  return level.domains;
}

}  // namespace outboard::runtime
