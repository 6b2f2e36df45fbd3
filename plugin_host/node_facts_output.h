// `outboard-host --node-facts FILE`: what the plugins of this host know of nodes. `outboard explain
// node` writes the file and prints the answer.
#ifndef OUTBOARD_PLUGIN_HOST_NODE_FACTS_OUTPUT_H_
#define OUTBOARD_PLUGIN_HOST_NODE_FACTS_OUTPUT_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "outboard/v1beta1/cluster_state.pb.h"
#include "plugin_host/sdk/node_facts/price_list.h"

namespace outboard::plugin_host {

// The nodes and objects that a SyncRequest adds, as JSON: {"nodes": [{"name", "facts": [{"fact",
// "value", "source", "origin", "publishers"}], "malformed": [{"key", "value", "wanted"}]}]}. An
// unknown fact has the value null. `price_list` may be null.
std::string NodeFactsJson(const v1beta1::SyncRequest& changes,
                          std::shared_ptr<const sdk::PriceList> price_list = nullptr);

// Of a file with a serialized SyncRequest, and of a price list; empty: none.
// Errors: INVALID_ARGUMENT or NOT_FOUND for a file that cannot be read.
absl::StatusOr<std::string> NodeFactsOfFile(const std::string& path,
                                            const std::string& price_list = "");

}  // namespace outboard::plugin_host

#endif  // OUTBOARD_PLUGIN_HOST_NODE_FACTS_OUTPUT_H_
