// Which nodes have the same value of a label.
#ifndef OUTBOARD_PLUGIN_HOST_RUNTIME_TOPOLOGY_DOMAINS_H_
#define OUTBOARD_PLUGIN_HOST_RUNTIME_TOPOLOGY_DOMAINS_H_

#include <map>
#include <string>
#include <vector>

#include "plugin_host/cache/cluster_cache.h"
#include "plugin_host/sdk/plugin.h"

namespace outboard::runtime {

// Nodes of one domain, in node order.
struct TopologyDomain {
  std::string value;
  std::vector<sdk::Slot> nodes;
};

// Domains by requested keys; rebuilt only after nodes changed.
//
// Threading: thread-compatible; the cache's thread.
// Lifetime: the cache outlives it.
// Errors: none.
class TopologyDomains : private sdk::ClusterObserver {
 public:
  explicit TopologyDomains(host_cache::ClusterCache* cache) : cache_(cache) {
    cache_->AddObserver(this);
  }
  ~TopologyDomains() override { cache_->RemoveObserver(this); }
  TopologyDomains(const TopologyDomains&) = delete;
  TopologyDomains& operator=(const TopologyDomains&) = delete;

  // In the order of their first nodes; nodes without the label are in none. `key` may be several
  // labels, as in sdk::TopologyLevels. Valid until the cache changes.
  const std::vector<TopologyDomain>& Of(const std::string& key);

 private:
  void OnReset() override { by_key_.clear(); }
  void OnNodeChanged(sdk::Slot) override { by_key_.clear(); }
  void OnNodeRemoved(sdk::Slot, const std::string&) override { by_key_.clear(); }

  struct Level {
    std::vector<sdk::Slot> order;  // of all nodes, when the domains were built
    std::vector<TopologyDomain> domains;
  };

  host_cache::ClusterCache* const cache_;
  std::map<std::string, Level> by_key_;  // Addresses are stable.
};

}  // namespace outboard::runtime

#endif  // OUTBOARD_PLUGIN_HOST_RUNTIME_TOPOLOGY_DOMAINS_H_
