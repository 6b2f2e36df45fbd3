// The price of a node, and whether it is a spot node.
#ifndef OUTBOARD_PLUGINS_COST_OPTIMIZED_NODE_PRICE_H_
#define OUTBOARD_PLUGINS_COST_OPTIMIZED_NODE_PRICE_H_

#include <map>
#include <optional>
#include <string>

#include "outboard/v1beta1/types.pb.h"
#include "plugin_host/sdk/label_values.h"
#include "plugin_host/sdk/node_facts/node_prices.h"

namespace outboard::cost_optimized {

struct NodePrice {
  std::optional<double> cost;  // Per hour. Absent: unknown.
  bool spot = false;           // May be reclaimed at any time.
};

// `spot_labels`: further labels, with the values that mean spot. Malformed values are reported with
// the node's name.
NodePrice ReadNodePrice(const v1beta1::Node& node, const sdk::PriceSources& sources,
                        const std::map<std::string, std::string>& spot_labels,
                        sdk::MalformedValues* malformed);

}  // namespace outboard::cost_optimized

#endif  // OUTBOARD_PLUGINS_COST_OPTIMIZED_NODE_PRICE_H_
