// Facts in words.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_NODE_FACTS_DESCRIBE_H_
#define OUTBOARD_PLUGIN_HOST_SDK_NODE_FACTS_DESCRIBE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "plugin_host/sdk/node_facts/facts.h"

namespace outboard::sdk {

struct FactLine {
  std::string fact;        // `memory of a GPU`
  std::string value;       // Empty: unknown.
  std::string source;      // FactSourceName
  std::string origin;      // `label nvidia.com/gpu.memory`
  std::string publishers;  // Who would publish it; only of an unknown fact.
};

// `1 GPU`, `8 GPUs`.
std::string GpusInWords(int64_t gpus);
// All facts, in the order of NodeFacts.
std::vector<FactLine> DescribeFacts(const NodeFacts& facts);

}  // namespace outboard::sdk

#endif  // OUTBOARD_PLUGIN_HOST_SDK_NODE_FACTS_DESCRIBE_H_
