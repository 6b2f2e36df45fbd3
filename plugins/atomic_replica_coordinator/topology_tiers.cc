#include "plugins/atomic_replica_coordinator/topology_tiers.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "plugin_host/sdk/validation.h"

namespace outboard::atomic_replica_coordinator {
namespace {

constexpr size_t kMaxTiers = 16;

}  // namespace

const char kTopologyTiersSchema[] = R"json({"type": "array", "maxItems": 16, "items": {
      "type": "object", "additionalProperties": false, "required": ["tier", "label"],
      "properties": {
        "tier": {"type": "integer", "minimum": 0, "maximum": 2147483647,
          "description": "Its number, as in highestTierAllowed: the lower, the closer."},
        "tierName": {"type": "string", "description": "As in highestTierName."},
        "label": {"type": "string", "pattern": ".",
          "description": "Key of the nodes' label: nodes with one value are one domain."}}},
      "description": "The labels that are the tiers of Volcano's PodGroups."})json";

TopologyTiers::TopologyTiers(const sdk::ArgsObject& args) {
  const std::vector<sdk::ArgsObject> objects = args.Objects("topologyTiers");
  if (objects.size() > kMaxTiers) {
    args.Problem("topologyTiers", absl::StrCat("Too many: ", objects.size(), ": must have at most ",
                                               kMaxTiers, " items"));
  }
  for (const sdk::ArgsObject& object : objects) {
    Tier tier{object.Int("tier", -1), object.String("tierName", ""), object.String("label", "")};
    if (tier.tier < 0 || tier.tier > std::numeric_limits<int32_t>::max()) {
      object.Problem("tier", sdk::InvalidValue(tier.tier, "not in valid range [0, 2147483647]"));
    } else if (Find(absl::StrCat(tier.tier)) != nullptr) {
      object.Problem("tier", absl::StrCat("Duplicate value: ", tier.tier));
    }
    if (!tier.name.empty() && Find(tier.name) != nullptr)
      object.Problem("tierName", absl::StrCat("Duplicate value: ", sdk::Quote(tier.name)));
    if (tier.label.empty()) object.Problem("label", "Required value");
    tiers_.push_back(std::move(tier));
  }
  std::sort(tiers_.begin(), tiers_.end(),
            [](const Tier& a, const Tier& b) { return a.tier < b.tier; });
}

const TopologyTiers::Tier* TopologyTiers::Find(const std::string& tier) const {
  const auto found = std::find_if(tiers_.begin(), tiers_.end(), [&](const Tier& known) {
    return known.name == tier || absl::StrCat(known.tier) == tier;
  });
  return found == tiers_.end() ? nullptr : &*found;
}

absl::StatusOr<sdk::TopologyLevels> TopologyTiers::LevelsOf(
    sdk::GroupDialect dialect, const sdk::TopologyPreference& preference) const {
  sdk::TopologyLevels levels;
  if (dialect != sdk::GroupDialect::kVolcano) {
    if (preference.required) levels.required = preference.required->value;
    if (preference.preferred) levels.preferred.push_back(preference.preferred->value);
    return levels;
  }
  const auto& wanted = preference.required ? preference.required : preference.preferred;
  if (!wanted) return levels;
  const Tier* const widest = Find(wanted->value);
  if (widest == nullptr) {
    if (!preference.required) return levels;
    return absl::InvalidArgumentError(
        absl::StrCat(wanted->from, ": tier ", sdk::Quote(wanted->value),
                     " is none of topologyTiers in the plugin's args"));
  }
  // As Volcano: the closest tier in which all members fit, up to the widest allowed tier.
  for (const Tier& tier : tiers_) {
    if (tier.tier > widest->tier || (preference.required && &tier == widest)) break;
    levels.preferred.push_back(tier.label);
  }
  if (preference.required) levels.required = widest->label;
  return levels;
}

}  // namespace outboard::atomic_replica_coordinator
