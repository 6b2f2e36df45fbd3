#include "plugins/cost_optimized/node_price.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "plugin_host/sdk/node_facts/node_facts.h"

namespace outboard::cost_optimized {
namespace {

constexpr char kInstanceTypeLabel[] = "node.kubernetes.io/instance-type";
constexpr const char* kSpotTypes[] = {"spot", "preemptible", "low-priority"};

bool Says(const sdk::StringMap& labels, const std::string& key, absl::string_view value) {
  const std::string* found = sdk::FindValue(labels, key);
  return found != nullptr && absl::EqualsIgnoreCase(*found, value);
}

}  // namespace

NodePrice ReadNodePrice(const sdk::StringMap& labels,
                        const std::map<std::string, std::string>& spot_labels,
                        const std::string& object, sdk::MalformedValues* malformed) {
  NodePrice price;
  if (const std::string* cost = sdk::FindValue(labels, kCostLabel)) {
    price.cost = sdk::ParseAmount(*cost);
    if (!price.cost) malformed->Warn(object, kCostLabel, *cost, "a decimal number");
  }
  if (const std::string* type = sdk::FindValue(labels, kInstanceTypeLabel)) {
    const std::string lower = absl::AsciiStrToLower(*type);
    for (const char* spot : kSpotTypes) price.spot |= absl::StrContains(lower, spot);
  }
  for (const auto& [key, value] : spot_labels) price.spot |= Says(labels, key, value);
  std::vector<sdk::MalformedLabel> labels_of_clouds;
  price.spot |= sdk::ReadCapacityType(labels, &labels_of_clouds).value == sdk::CapacityType::kSpot;
  for (const sdk::MalformedLabel& label : labels_of_clouds)
    malformed->Warn(object, label.key, label.value, label.wanted);
  return price;
}

}  // namespace outboard::cost_optimized
