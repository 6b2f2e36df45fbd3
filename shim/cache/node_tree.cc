#include "shim/cache/node_tree.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace outboard::cache {
namespace {

const std::string* Label(const v1beta1::Node& node, const char* key) {
  const auto it = node.labels().find(key);
  return it == node.labels().end() ? nullptr : &it->second;
}

}  // namespace

std::string ZoneKey(const v1beta1::Node& node) {
  const std::string* zone = Label(node, "failure-domain.beta.kubernetes.io/zone");
  if (zone == nullptr) zone = Label(node, "topology.kubernetes.io/zone");
  const std::string* region = Label(node, "failure-domain.beta.kubernetes.io/region");
  if (region == nullptr) region = Label(node, "topology.kubernetes.io/region");
  if ((zone == nullptr || zone->empty()) && (region == nullptr || region->empty())) return "";
  // A label cannot contain a null character, so no two pairs give the same key.
  return absl::StrCat(region == nullptr ? "" : *region, absl::string_view(":\0:", 3),
                      zone == nullptr ? "" : *zone);
}

void NodeTree::Add(const std::string& zone, uint32_t slot) {
  auto it =
      std::find_if(zones_.begin(), zones_.end(), [&](const Zone& z) { return z.key == zone; });
  if (it == zones_.end()) it = zones_.insert(zones_.end(), {zone, {}});
  it->slots.push_back(slot);
  ++size_;
  stale_ = true;
}

void NodeTree::Remove(const std::string& zone, uint32_t slot) {
  const auto it =
      std::find_if(zones_.begin(), zones_.end(), [&](const Zone& z) { return z.key == zone; });
  if (it == zones_.end()) return;
  const auto at = std::find(it->slots.begin(), it->slots.end(), slot);
  if (at == it->slots.end()) return;
  it->slots.erase(at);
  if (it->slots.empty()) zones_.erase(it);
  --size_;
  stale_ = true;
}

const std::vector<uint32_t>& NodeTree::Order() {
  if (!stale_) return order_;
  stale_ = false;
  order_.clear();
  order_.reserve(size_);
  for (size_t round = 0; order_.size() < size_; ++round) {
    for (const Zone& zone : zones_) {
      if (round < zone.slots.size()) order_.push_back(zone.slots[round]);
    }
  }
  return order_;
}

}  // namespace outboard::cache
