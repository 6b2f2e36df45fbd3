#include "plugin_host/runtime/group_parts.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace outboard::runtime {

GroupParts::GroupParts(const sdk::GroupToPlace& group) : parts_(group.parts) {
  for (size_t i = 0; i < parts_.size(); ++i) {
    for (const sdk::PodRecord* pod : parts_[i].pending) part_of_[pod] = i + 1;
  }
}

size_t GroupParts::Of(const sdk::PodRecord* pod) const {
  const auto part = part_of_.find(pod);
  return part == part_of_.end() ? 0 : part->second;
}

void GroupParts::PutNeededFirst(std::vector<const sdk::PodRecord*>* pods) const {
  if (parts_.empty()) return;
  std::vector<int64_t> members(parts_.size() + 1, 0);
  std::vector<const sdk::PodRecord*> first, others;
  for (const sdk::PodRecord* pod : *pods) {
    const size_t part = Of(pod);
    (members[part]++ < needed(part) ? first : others).push_back(pod);
  }
  first.insert(first.end(), others.begin(), others.end());
  *pods = std::move(first);
}

std::string GroupParts::Short(absl::Span<const int64_t> members) const {
  for (size_t part = 1; part <= parts_.size(); ++part) {
    if (members[part] >= needed(part)) continue;
    return absl::StrCat(members[part], " of ", needed(part), " of ", parts_[part - 1].name);
  }
  return "";
}

}  // namespace outboard::runtime
