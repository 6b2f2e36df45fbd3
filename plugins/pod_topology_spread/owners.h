// Finds the pods with the same service or controller as a pod.
#ifndef OUTBOARD_PLUGINS_POD_TOPOLOGY_SPREAD_OWNERS_H_
#define OUTBOARD_PLUGINS_POD_TOPOLOGY_SPREAD_OWNERS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "plugin_host/sdk/cluster_objects.h"
#include "plugins/pod_topology_spread/constraints.h"
#include "plugins/pod_topology_spread/label_buckets.h"

namespace outboard::pod_topology_spread {

// Services by namespace and label, updated by changes of the cluster cache. A lookup does not visit
// all services.
//
// Threading: thread-compatible.
// Lifetime:  stores copies of selectors.
// Errors:    none.
class Owners {
 public:
  void Reset() { services_.clear(); }
  void ObjectChanged(const v1beta1::ClusterObject& object);
  void ObjectRemoved(const v1beta1::ClusterObject& object);

  // The conjunction of the selectors of the services that match the pod, and of the
  // ReplicationController, ReplicaSet or StatefulSet that controls it. Empty if there are none.
  PodSelector SelectorOf(const v1beta1::Pod& pod, const sdk::ClusterObjects& objects) const;

 private:
  struct ServiceSelector {
    std::vector<sdk::Requirement> labels;
    int place = 0;  // In the buckets.
  };
  struct NamespaceServices {
    absl::flat_hash_map<std::string, std::unique_ptr<ServiceSelector>> by_name;
    LabelBuckets<const ServiceSelector*> buckets;
  };

  void RemoveService(absl::string_view ns, absl::string_view name);

  absl::flat_hash_map<std::string, NamespaceServices> services_;
};

}  // namespace outboard::pod_topology_spread

#endif  // OUTBOARD_PLUGINS_POD_TOPOLOGY_SPREAD_OWNERS_H_
