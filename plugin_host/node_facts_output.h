// `outboard-host --node-facts FILE`: what the plugins of this host know of nodes. `outboard explain
// node` writes the file and prints the answer.
#ifndef OUTBOARD_PLUGIN_HOST_NODE_FACTS_OUTPUT_H_
#define OUTBOARD_PLUGIN_HOST_NODE_FACTS_OUTPUT_H_

#include <string>

#include "absl/status/statusor.h"
#include "outboard/v1beta1/cluster_state.pb.h"

namespace outboard::plugin_host {

// The nodes and objects that a SyncRequest adds, as JSON: {"nodes": [{"name", "facts": [{"fact",
// "value", "source", "origin", "publishers"}], "malformed": [{"key", "value", "wanted"}]}]}. An
// unknown fact has the value null.
std::string NodeFactsJson(const v1beta1::SyncRequest& changes);

// Of a file with a serialized SyncRequest.
// Errors: INVALID_ARGUMENT for a file that cannot be read.
absl::StatusOr<std::string> NodeFactsOfFile(const std::string& path);

}  // namespace outboard::plugin_host

#endif  // OUTBOARD_PLUGIN_HOST_NODE_FACTS_OUTPUT_H_
