// The price of a node, from its labels, a price list, and what exporters of prices publish.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_NODE_FACTS_NODE_PRICES_H_
#define OUTBOARD_PLUGIN_HOST_SDK_NODE_FACTS_NODE_PRICES_H_

#include <map>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "outboard/v1beta1/types.pb.h"
#include "plugin_host/sdk/node_facts/facts.h"
#include "plugin_host/sdk/node_facts/price_list.h"

namespace outboard::sdk {

// What Karpenter can order.
struct Offering {
  std::string instance_type;
  std::string capacity_type;  // CapacityTypeName
  std::string zone;
  friend auto operator<=>(const Offering&, const Offering&) = default;
};

// Prices that exporters publish, per hour.
struct PublishedPrices {
  absl::flat_hash_map<std::string, double> by_node;  // OpenCost's.
  std::map<Offering, double> by_offering;            // Karpenter's.
};

struct PriceSources {
  const PriceList* list = nullptr;             // Null: none.
  const PublishedPrices* published = nullptr;  // Null: none.
};

// The first of: the label node-cost-per-hour, the price list, OpenCost, Karpenter. The price list
// comes before exporters, because OpenCost assumes a price for every machine that it does not know.
// Appends a malformed label to `malformed`, which may be null.
Fact<double> ReadPrice(const v1beta1::Node& node, const PriceSources& sources,
                       std::vector<MalformedLabel>* malformed);

}  // namespace outboard::sdk

#endif  // OUTBOARD_PLUGIN_HOST_SDK_NODE_FACTS_NODE_PRICES_H_
