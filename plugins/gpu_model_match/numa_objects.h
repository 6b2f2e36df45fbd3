// NodeResourceTopology objects (topology.node.k8s.io/v1alpha2), as NFD's topology-updater and
// resource-topology-exporter write them.
#ifndef OUTBOARD_PLUGINS_GPU_MODEL_MATCH_NUMA_OBJECTS_H_
#define OUTBOARD_PLUGINS_GPU_MODEL_MATCH_NUMA_OBJECTS_H_

#include <optional>
#include <string>

#include "outboard/v1beta1/objects.pb.h"
#include "plugins/gpu_model_match/numa_fit.h"

namespace outboard::gpu_model_match {

// GenericObject.resource. Objects have the names of their nodes.
inline constexpr char kNodeResourceTopologies[] =
    "noderesourcetopologies.v1alpha2.topology.node.k8s.io";

struct NumaObject {
  NumaTopology topology;
  NumaAvailable available;  // as the object says
  // The first value that could not be read; it counts as absent.
  struct Malformed {
    std::string field;  // `zones[0].resources[1].available`
    std::string value;
    std::string wanted;  // `a quantity`
  };
  std::optional<Malformed> malformed;
};

// Policy and scope come from `attributes`, and where these are absent from the older
// `topologyPolicies`; the kubelet's defaults without both. Zones of another type than `Node`, with
// another name than `node-0` to `node-63`, or without resources are ignored. So are CPUs if no zone
// has an allocatable one: the kubelet does not manage them.
// Pure.
NumaObject ReadNumaObject(const v1beta1::GenericObject& object);

}  // namespace outboard::gpu_model_match

#endif  // OUTBOARD_PLUGINS_GPU_MODEL_MATCH_NUMA_OBJECTS_H_
