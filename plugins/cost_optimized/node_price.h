// The price of a node, from its labels.
#ifndef OUTBOARD_PLUGINS_COST_OPTIMIZED_NODE_PRICE_H_
#define OUTBOARD_PLUGINS_COST_OPTIMIZED_NODE_PRICE_H_

#include <map>
#include <optional>
#include <string>

#include "plugin_host/sdk/label_values.h"

namespace outboard::cost_optimized {

inline constexpr char kCostLabel[] = "node-cost-per-hour";

struct NodePrice {
  std::optional<double> cost;  // Per hour. Absent: unknown.
  bool spot = false;           // Cheap, and may be reclaimed at any time.
};

// `spot_labels`: further labels, with the values that mean spot. Malformed values are reported with
// the name `object`.
NodePrice ReadNodePrice(const sdk::StringMap& labels,
                        const std::map<std::string, std::string>& spot_labels,
                        const std::string& object, sdk::MalformedValues* malformed);

}  // namespace outboard::cost_optimized

#endif  // OUTBOARD_PLUGINS_COST_OPTIMIZED_NODE_PRICE_H_
