// Parts of a group with their own minimum.
#ifndef OUTBOARD_PLUGIN_HOST_RUNTIME_GROUP_PARTS_H_
#define OUTBOARD_PLUGIN_HOST_RUNTIME_GROUP_PARTS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "plugin_host/sdk/group_plugin.h"

namespace outboard::runtime {

// Threading: thread-compatible.
// Lifetime: the group outlives it.
// Errors: none.
class GroupParts {
 public:
  explicit GroupParts(const sdk::GroupToPlace& group);
  // 1 + the index of the pod's part; 0: none.
  size_t Of(const sdk::PodRecord* pod) const;
  int64_t needed(size_t part) const { return part == 0 ? 0 : parts_[part - 1].needed; }
  // Moves the pods that parts need before the others, each in order. Earlier pods count first.
  void PutNeededFirst(std::vector<const sdk::PodRecord*>* pods) const;
  // The first part with too few of these members (by part, as in Of): `1 of 3 of worker`; empty:
  // none.
  std::string Short(absl::Span<const int64_t> members) const;
  size_t size() const { return parts_.size(); }

 private:
  const std::vector<sdk::GroupToPlace::Part>& parts_;
  absl::flat_hash_map<const sdk::PodRecord*, size_t> part_of_;
};

// How many pods an answer can place.
inline constexpr size_t kMaxPlacedTogether = 4096;

// What is wrong with a plugin's group of the attempt's pod; empty: nothing. Pure.
std::string FaultOf(const sdk::GroupToPlace& group, const sdk::PodRecord& pod);

// Leaves so many members of a larger group that an answer can place all of them: the pod, those
// that parts need, and the first others. The plugin places the rest later. False: the group needs
// more, so its members are scheduled individually.
bool LimitMembers(const sdk::PodRecord& pod, sdk::GroupToPlace* group);

}  // namespace outboard::runtime

#endif  // OUTBOARD_PLUGIN_HOST_RUNTIME_GROUP_PARTS_H_
