// GPUs of clouds' machines, by instance type: for clusters in which nothing else publishes them.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_NODE_FACTS_INSTANCE_TYPES_H_
#define OUTBOARD_PLUGIN_HOST_SDK_NODE_FACTS_INSTANCE_TYPES_H_

#include <cstdint>
#include <map>
#include <string>

#include "plugin_host/sdk/args_reader.h"
#include "plugin_host/sdk/node_facts/facts.h"

namespace outboard::sdk {

struct InstanceType {
  std::string model;     // As GPU Feature Discovery writes the product on such a machine.
  double memory_gb = 0;  // Of one GPU; 0: unknown.
  int64_t gpus = 0;      // 0: unknown.
  GpuTopology topology = GpuTopology::kUnknown;  // kUnknown: what the model and count tell.
  friend bool operator==(const InstanceType&, const InstanceType&) = default;
};

// By the value of node.kubernetes.io/instance-type.
using InstanceTypes = std::map<std::string, InstanceType, std::less<>>;
const InstanceTypes& DefaultInstanceTypes();

// Reads a map of instance types, which replace and extend the default ones; reports problems.
InstanceTypes ReadInstanceTypes(const ArgsObject& args);

}  // namespace outboard::sdk

#endif  // OUTBOARD_PLUGIN_HOST_SDK_NODE_FACTS_INSTANCE_TYPES_H_
