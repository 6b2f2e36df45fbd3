// The one place that answers what is known of a node. Plugins ask it, and never read a label
// themselves.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_NODE_FACTS_NODE_FACTS_H_
#define OUTBOARD_PLUGIN_HOST_SDK_NODE_FACTS_NODE_FACTS_H_

#include <memory>
#include <string>
#include <vector>

#include "outboard/v1beta1/objects.pb.h"
#include "outboard/v1beta1/types.pb.h"
#include "plugin_host/sdk/args_reader.h"
#include "plugin_host/sdk/label_values.h"
#include "plugin_host/sdk/node_facts/facts.h"
#include "plugin_host/sdk/node_facts/gpu_models.h"
#include "plugin_host/sdk/node_facts/instance_types.h"
#include "plugin_host/sdk/node_facts/price_list.h"
#include "plugin_host/sdk/node_facts/resource_slices.h"

namespace outboard::sdk {

// A condition of nodes, and the status that means that GPUs are ill: polarities differ.
struct BadCondition {
  std::string type;
  v1beta1::ConditionStatus status = v1beta1::CONDITION_STATUS_TRUE;
};

// What administrators may change.
struct NodeFactsOptions {
  Generations generations = DefaultGenerations();
  // A label gpu-generation with another name is malformed. False: it is not for this plugin.
  bool checks_generations = false;
  InstanceTypes instance_types = DefaultInstanceTypes();
  // Labels of network levels, the nearest first, and of NVLink domains. They come before the known
  // publishers'.
  std::vector<std::string> network_levels;
  std::vector<std::string> nvlink_domains;
  std::vector<BadCondition> bad_conditions;     // Besides the known ones.
  std::shared_ptr<const PriceList> price_list;  // Null: none.
};

// Part of a JSON schema: the argument `nodeFacts`.
extern const char kNodeFactsSchema[];
// Reads the argument `nodeFacts`; reports problems in `root`.
NodeFactsOptions ReadNodeFactsOptions(const ArgsObject& root);

// For PluginDescriptor::needed_fields: the annotations of nodes that are read. The facts
// `gpu_problems` also need Node.status.capacity and Node.status.conditions.
std::vector<std::string> NodeFactsFields();

// Reads facts. Plugins keep what they need of a node until it changes: a call reads some fifty
// labels.
//
// Threading: thread-compatible.
// Lifetime:  a value; not copied while it has ResourceSlices.
// Errors:    none. What cannot be read counts as absent.
class NodeFactsReader {
 public:
  explicit NodeFactsReader(NodeFactsOptions options = {}) : options_(std::move(options)) {}

  // Appends malformed labels and annotations to `malformed`, which may be null.
  NodeFacts Of(const v1beta1::Node& node, std::vector<MalformedLabel>* malformed) const;

  // For ClusterObserver: an object was added, changed or removed. Returns the name of the node
  // whose facts may have changed; empty: none.
  std::string SetObject(const v1beta1::ClusterObject& object) { return slices_.Set(object); }
  std::string RemoveObject(const v1beta1::ClusterObject& object) { return slices_.Remove(object); }
  void Clear() { slices_.Clear(); }

  const NodeFactsOptions& options() const { return options_; }

 private:
  const NodeFactsOptions options_;
  ResourceSlices slices_;
};

// Of clouds and Karpenter. `malformed` may be null.
Fact<CapacityType> ReadCapacityType(const StringMap& labels,
                                    std::vector<MalformedLabel>* malformed);

}  // namespace outboard::sdk

#endif  // OUTBOARD_PLUGIN_HOST_SDK_NODE_FACTS_NODE_FACTS_H_
