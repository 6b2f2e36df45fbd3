// The NUMA zones of all nodes, and what of them is free: what their NodeResourceTopology objects
// say, less what pods take that an object does not have yet.
#ifndef OUTBOARD_PLUGINS_GPU_MODEL_MATCH_NODE_TOPOLOGIES_H_
#define OUTBOARD_PLUGINS_GPU_MODEL_MATCH_NODE_TOPOLOGIES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/time/time.h"
#include "plugin_host/sdk/label_values.h"
#include "plugin_host/sdk/views.h"
#include "plugins/gpu_model_match/numa_fit.h"
#include "plugins/gpu_model_match/numa_objects.h"

namespace outboard::gpu_model_match {

// An object has a pod if the object changed after the pod had started: by then the kubelet had
// allocated the pod's resources. An object that does not change because a pod that ended was like
// the new one is trusted after `update_period`, which also bounds what a restart forgets.
//
// Threading: thread-compatible.
// Lifetime: as the cluster; what Find returns, until the next call.
// Errors: malformed values count as absent, and are logged once per object.
class NodeTopologies {
 public:
  struct Options {
    bool every_zone = false;  // TakeFromEveryZone instead of TakeAsKubelet
    absl::Duration update_period = absl::Minutes(1);
  };
  NodeTopologies(Options options, const sdk::ClusterView& cluster)
      : options_(options), cluster_(cluster) {}

  // `changed`: it replaces an object that was known.
  void Set(const v1beta1::GenericObject& object, bool changed, sdk::MalformedValues* malformed);
  void Remove(const std::string& name);
  void SetNode(sdk::Slot slot);
  void RemoveNode(sdk::Slot slot);
  void Clear();

  bool empty() const { return known_.empty(); }
  struct Found {
    const NumaTopology* topology;
    const NumaAvailable* available;
  };
  // The node in `nodes`, which may be a hypothesis about the cluster. Null: it has no object.
  Found Find(const sdk::NodeTable& nodes, sdk::Slot slot, absl::Time now);
  // As the object says, without what other pods take; null: the node has no object.
  Found FindObject(const std::string& node_name) const;

 private:
  struct Known {
    NumaObject object;
    absl::flat_hash_set<std::string> has;  // uids of pods
    // What Find computed last, and for which state of the node.
    NumaAvailable available;
    uint64_t generation = 0;
    absl::Time until = absl::InfinitePast();
  };
  bool Has(const Known& known, const v1beta1::Pod& pod, absl::Time now) const;
  void Compute(const sdk::NodeTable& nodes, sdk::Slot slot, absl::Time now, Known* known) const;

  const Options options_;
  const sdk::ClusterView cluster_;
  absl::flat_hash_map<std::string, std::unique_ptr<Known>> known_;  // by name of the node
  std::vector<Known*> by_slot_;
};

}  // namespace outboard::gpu_model_match

#endif  // OUTBOARD_PLUGINS_GPU_MODEL_MATCH_NODE_TOPOLOGIES_H_
