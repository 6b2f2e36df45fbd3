#include "plugins/cost_optimized/node_price.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
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

NodePrice ReadNodePrice(const v1beta1::Node& node, const sdk::PriceSources& sources,
                        const std::map<std::string, std::string>& spot_labels,
                        sdk::MalformedValues* malformed) {
  const sdk::StringMap& labels = node.labels();
  std::vector<sdk::MalformedLabel> malformed_labels;
  NodePrice price;
  price.cost = sdk::ReadPrice(node, sources, &malformed_labels).value;
  if (const std::string* type = sdk::FindValue(labels, kInstanceTypeLabel)) {
    const std::string lower = absl::AsciiStrToLower(*type);
    for (const char* spot : kSpotTypes) price.spot |= absl::StrContains(lower, spot);
  }
  for (const auto& [key, value] : spot_labels) price.spot |= Says(labels, key, value);
  price.spot |= sdk::ReadCapacityType(labels, &malformed_labels).value == sdk::CapacityType::kSpot;
  for (const sdk::MalformedLabel& label : malformed_labels)
    malformed->Warn(absl::StrCat("node ", node.name()), label.key, label.value, label.wanted);
  return price;
}

}  // namespace outboard::cost_optimized
