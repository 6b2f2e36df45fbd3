// Finds the node that a sample belongs to.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_PROMETHEUS_NODE_NAMES_H_
#define OUTBOARD_PLUGIN_HOST_SDK_PROMETHEUS_NODE_NAMES_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "plugin_host/sdk/views.h"

namespace outboard::prometheus {

// Labels of samples that may name the node, in the order of trust: dcgm-exporter's `Hostname`;
// `node`, `kubernetes_node`, `nodename` of common relabelling rules; `exported_node` of metrics
// that have a label `node` themselves; `instance`, the scraped address.
std::vector<std::string> DefaultNodeLabels();

// Finds nodes by the names of samples: the node's name, also with a port, or its label
// `kubernetes.io/hostname`, which differs from the name on some clouds.
//
// Threading: thread-compatible.
// Lifetime: for one reading: it does not follow changes of nodes.
// Errors: nullopt for an unknown name.
class NodeNames {
 public:
  explicit NodeNames(const sdk::ClusterView& cluster) : cluster_(cluster) {}
  // The node of the first of the names that is known.
  std::optional<sdk::Slot> Find(const std::vector<std::string>& names);

 private:
  std::optional<sdk::Slot> FindOne(absl::string_view name);

  const sdk::ClusterView cluster_;
  // Built when a name is not a node's.
  std::optional<absl::flat_hash_map<std::string, sdk::Slot>> by_hostname_;
};

}  // namespace outboard::prometheus

#endif  // OUTBOARD_PLUGIN_HOST_SDK_PROMETHEUS_NODE_NAMES_H_
