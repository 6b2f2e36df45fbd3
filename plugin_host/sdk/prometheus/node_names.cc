#include "plugin_host/sdk/prometheus/node_names.h"

namespace outboard::prometheus {
namespace {

constexpr char kHostnameLabel[] = "kubernetes.io/hostname";

}  // namespace

std::vector<std::string> DefaultNodeLabels() {
  return {"Hostname",      "node",     "kubernetes_node", "nodename",
          "exported_node", "hostname", "instance"};
}

std::optional<sdk::Slot> NodeNames::Find(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (const auto slot = FindOne(name)) return slot;
    const size_t colon = name.rfind(':');
    if (colon == std::string::npos) continue;
    if (const auto slot = FindOne(absl::string_view(name).substr(0, colon))) return slot;
  }
  return std::nullopt;
}

std::optional<sdk::Slot> NodeNames::FindOne(absl::string_view name) {
  if (const auto node = cluster_.FindNode(name)) return node->slot();
  if (!by_hostname_) {
    by_hostname_.emplace();
    for (const sdk::Slot slot : cluster_.node_order()) {
      const sdk::NodeView node = cluster_.node(slot);
      const auto hostname = node.Label(kHostnameLabel);
      if (hostname && *hostname != node.name()) by_hostname_->emplace(std::string(*hostname), slot);
    }
  }
  const auto it = by_hostname_->find(name);
  if (it == by_hostname_->end()) return std::nullopt;
  return it->second;
}

}  // namespace outboard::prometheus
