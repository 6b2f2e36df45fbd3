#include "plugins/cost_optimized/node_price.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"

namespace outboard::cost_optimized {
namespace {

constexpr char kInstanceTypeLabel[] = "node.kubernetes.io/instance-type";
constexpr const char* kSpotTypes[] = {"spot", "preemptible", "low-priority"};
constexpr char kGkeSpotLabel[] = "cloud.google.com/gke-spot";
constexpr struct {
  const char* key;
  const char* value;
} kSpotLabels[] = {{"karpenter.sh/capacity-type", "spot"},
                   {"eks.amazonaws.com/capacityType", "SPOT"},
                   {"kubernetes.azure.com/scalesetpriority", "spot"}};

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
  for (const auto& label : kSpotLabels) price.spot |= Says(labels, label.key, label.value);
  for (const auto& [key, value] : spot_labels) price.spot |= Says(labels, key, value);
  if (const std::string* spot = sdk::FindValue(labels, kGkeSpotLabel)) {
    const std::optional<bool> parsed = sdk::ParseBool(*spot);
    if (!parsed) malformed->Warn(object, kGkeSpotLabel, *spot, "true or false");
    price.spot |= parsed.value_or(false);
  }
  return price;
}

}  // namespace outboard::cost_optimized
