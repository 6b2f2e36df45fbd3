#include "plugin_host/sdk/node_facts/node_prices.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "plugin_host/sdk/node_facts/fact_readers.h"
#include "plugin_host/sdk/node_facts/node_labels.h"

namespace outboard::sdk {
namespace {

std::string TextOf(const LabelReader& labels, const char* key) {
  const std::string* text = labels.Text(key);
  return text == nullptr ? "" : *text;
}

}  // namespace

Fact<double> ReadPrice(const v1beta1::Node& node, const PriceSources& sources,
                       std::vector<MalformedLabel>* malformed) {
  LabelReader labels(node.labels(), malformed);
  if (const std::optional<double> price =
          labels.Amount(node_labels::kCostPerHour, kMaxPrice, "a decimal number"))
    return FromLabel(*price, FactSource::kAdministrator, node_labels::kCostPerHour);
  // Clouds leave their labels away from on-demand nodes.
  const CapacityType type =
      ReadCapacityType(node.labels(), nullptr).value.value_or(CapacityType::kOnDemand);
  if (sources.list != nullptr) {
    if (const PriceList::Entry* entry = sources.list->Find(node.labels(), type)) {
      return MakeFact(entry->price, FactSource::kAdministrator,
                      absl::StrCat("price list ", sources.list->file(), ":", entry->line));
    }
  }
  if (sources.published == nullptr) return {};
  const auto of_node = sources.published->by_node.find(node.name());
  if (of_node != sources.published->by_node.end())
    return MakeFact(of_node->second, FactSource::kMetrics, "node_total_hourly_cost of OpenCost");
  const auto offered = sources.published->by_offering.find(
      {TextOf(labels, node_labels::kInstanceType), CapacityTypeName(type),
       TextOf(labels, node_labels::kZone)});
  if (offered == sources.published->by_offering.end()) return {};
  return MakeFact(offered->second, FactSource::kMetrics, "price estimate of Karpenter");
}

}  // namespace outboard::sdk
