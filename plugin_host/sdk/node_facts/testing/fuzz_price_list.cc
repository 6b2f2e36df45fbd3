#include "plugin_host/sdk/node_facts/testing/fuzz_price_list.h"

#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "integration/fuzz/seeds.h"
#include "plugin_host/sdk/node_facts/price_list.h"

namespace outboard::sdk {

void FuzzPriceList(absl::string_view bytes) {
  if (bytes.size() > 1 << 16) return;
  const absl::StatusOr<PriceList> list = PriceList::Parse(bytes, "f");
  if (!list.ok()) {
    fuzz::Require(absl::StartsWith(list.status().message(), "f:"), "an error names file and line");
    return;
  }
  size_t found = 0;
  // Any value may be the type, or the zone: whatever is found is a price.
  StringMap labels;
  for (const absl::string_view line : absl::StrSplit(bytes, '\n')) {
    const std::vector<std::string> values = absl::StrSplit(line, ',');
    for (const std::string& value : values) {
      labels["node.kubernetes.io/instance-type"] = std::string(absl::StripAsciiWhitespace(value));
      for (const CapacityType type :
           {CapacityType::kOnDemand, CapacityType::kSpot, CapacityType::kReserved}) {
        const PriceList::Entry* entry = list->Find(labels, type);
        if (entry == nullptr) continue;
        ++found;
        fuzz::Require(entry->price >= 0 && entry->price <= kMaxPrice, "a price is in range");
        fuzz::Require(entry->line > 1, "a price has a line after the columns'");
      }
    }
  }
  fuzz::Require(found == 0 || list->size() > 0, "only entries are found");
}

}  // namespace outboard::sdk
