// The points of groups: where a group of pods may be placed, and which of these placements is best.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_PLACEMENT_POINTS_H_
#define OUTBOARD_PLUGIN_HOST_SDK_PLACEMENT_POINTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "plugin_host/sdk/attempt.h"
#include "plugin_host/sdk/group_preemption.h"
#include "plugin_host/sdk/verdict.h"
#include "plugin_host/sdk/views.h"

namespace outboard::sdk {

// A group as the shim describes it; which plugin knows groups, and on which host, does not matter.
struct PendingGroup {
  std::string name;  // for people
  std::string ns;
  std::vector<const PodRecord*> pending;  // the attempt's pod first
  int64_t needed = 1;                     // how many of them must get a node
  std::vector<Slot> placed;               // nodes of members that are placed already
};

// A set of nodes that could hold the group.
struct GroupPlacement {
  std::string name;  // unique; for people, at most 253 bytes: `rack-7`
  std::vector<Slot> nodes;
};

// For plugins that say where a group may be placed. A profile has at most one.
//
// Threading: as Plugin.
// Errors: a verdict other than SUCCESS rejects the group.
class PlacementGeneratePlugin {
 public:
  virtual ~PlacementGeneratePlugin() = default;
  // Fills `placements`, in order of preference, at most 256. SUCCESS without placements: no
  // opinion; the group is placed on any nodes. To reject the group, return a rejection.
  virtual Verdict GeneratePlacements(const Attempt& attempt, const PendingGroup& group,
                                     std::vector<GroupPlacement>* placements) const = 0;
};

// A placement that the group fits into, with the nodes that the search found there.
struct PlacementCandidate {
  absl::string_view name;
  absl::Span<const Slot> nodes;
  GroupPlaces places;  // at least `needed` members, the attempt's pod among them
};

struct PlacementScore {
  int64_t score = 0;     // 0..kMaxScore
  std::string excluded;  // why the placement must not be used; empty: it may be used
};

// For plugins that compare placements of a group.
//
// Threading: as Plugin.
// Errors: a verdict other than SUCCESS is a failure of the plugin.
class PlacementScorePlugin {
 public:
  virtual ~PlacementScorePlugin() = default;
  // `scores` has one entry per candidate.
  virtual Verdict ScorePlacements(const Attempt& attempt, const PendingGroup& group,
                                  absl::Span<const PlacementCandidate> candidates,
                                  absl::Span<PlacementScore> scores) const = 0;
};

}  // namespace outboard::sdk

#endif  // OUTBOARD_PLUGIN_HOST_SDK_PLACEMENT_POINTS_H_
