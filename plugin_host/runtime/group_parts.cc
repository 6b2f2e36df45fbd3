#include "plugin_host/runtime/group_parts.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
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

std::string FaultOf(const sdk::GroupToPlace& group, const sdk::PodRecord& pod) {
  const absl::flat_hash_set<const sdk::PodRecord*> distinct(group.pending.begin(),
                                                            group.pending.end());
  if (distinct.size() != group.pending.size()) return "the group names a member twice";
  if (!distinct.contains(&pod)) return "the group does not name the pod";
  if (group.needed < 1 || group.needed > static_cast<int64_t>(group.pending.size())) {
    return absl::StrCat("the group needs ", group.needed, " of ", group.pending.size(), " members");
  }
  return "";
}

bool LimitMembers(const sdk::PodRecord& pod, sdk::GroupToPlace* group) {
  std::vector<const sdk::PodRecord*>& pending = group->pending;
  if (pending.size() <= kMaxPlacedTogether) return true;
  // The pod may be one more than those that are needed.
  if (group->needed >= static_cast<int64_t>(kMaxPlacedTogether)) return false;
  GroupParts(*group).PutNeededFirst(&pending);
  const auto at = std::find(pending.begin(), pending.end(), &pod);
  std::rotate(pending.begin(), at, at + 1);
  pending.resize(kMaxPlacedTogether);
  const absl::flat_hash_set<const sdk::PodRecord*> left(pending.begin(), pending.end());
  for (sdk::GroupToPlace::Part& part : group->parts)
    std::erase_if(part.pending, [&](const auto* member) { return !left.contains(member); });
  return true;
}

}  // namespace outboard::runtime
