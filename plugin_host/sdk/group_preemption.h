// PostFilter for groups: who has to leave so that all of a group find room at the same time.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_GROUP_PREEMPTION_H_
#define OUTBOARD_PLUGIN_HOST_SDK_GROUP_PREEMPTION_H_

#include <optional>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "plugin_host/sdk/attempt.h"
#include "plugin_host/sdk/group_plugin.h"
#include "plugin_host/sdk/verdict.h"

namespace outboard::sdk {

// Nodes for members of a group.
using GroupPlaces = std::vector<std::pair<const PodRecord*, Slot>>;

// What if some pods were gone? From here to the end of the call the cluster's views, and what
// observers were told, are without those that were removed. Afterwards everything is as before.
//
// Threading: within the call of PostFilterGroup. Lifetime: within the call. Errors: none; a plugin
// that fails leaves no places.
class GroupDryRun {
 public:
  virtual ~GroupDryRun() = default;
  // A pod that is on a node.
  virtual void Remove(const PodRecord& pod) = 0;
  // One that was removed comes back to its node.
  virtual void Return(const PodRecord& pod) = 0;
  // Nodes for as many members as have to have one, the attempt's pod first; empty: there is no
  // room. `among`: on these nodes only; empty: on any.
  virtual GroupPlaces Place(absl::Span<const Slot> among) = 0;
};

struct GroupPreemption {
  GroupPlaces places;  // as of Place
  // On the nodes of `places`, the most important first; at least one.
  std::vector<const PodRecord*> victims;
  std::vector<const PodRecord*> companions;  // elsewhere, see PreemptionCandidate.companion_uids
  int budget_violations = 0;
  // With a rejection: as PostFilterAnswer.clear_nomination, of all members in the queue.
  bool clear_nomination = false;
};

// For PostFilter plugins that make room for groups, too; those that do not leave groups waiting.
//
// Threading, lifetime, errors: as PostFilterPlugin.
class GroupPostFilterPlugin {
 public:
  virtual ~GroupPostFilterPlugin() = default;
  // In place of PostFilter, for a pod whose group found no room. SUCCESS fills `preemption`.
  virtual Verdict PostFilterGroup(const Attempt& attempt, const GroupToPlace& group,
                                  GroupDryRun& dry_run, GroupPreemption* preemption) const = 0;
};

// Whether the group may have others leave at all: SUCCESS, or the rejection to answer with; as
// MayPreempt. Victims that are on their way off the node of one member hold all, and so do members
// that wait at Permit. Where enough others have nodes in mind, it is their turn to see to those.
Verdict MayPreemptForGroup(const Attempt& attempt, const GroupToPlace& group);

// Pods that leave together or stay together.
struct VictimUnit {
  std::vector<const PodRecord*> pods;
};

// Who of `units` has to leave, in the order in which they may: of as few of the first as give room,
// those that need not leave after all are left out, the last first. Absent: there is no room though
// all leave. Takes about as many placements of the group as there are victims, and the logarithm of
// `units`. Afterwards all are on their nodes again.
struct Room {
  GroupPlaces places;
  std::vector<size_t> leaving;  // indices of units, in their order
};
std::optional<Room> MakeRoom(absl::Span<const VictimUnit> units, GroupDryRun& dry_run);
// Fills in the places and who leaves: those on the places' nodes as victims, the most important
// first, others as companions. Without victims there is room as it is, kept for other members: the
// rejection to answer with.
Verdict SplitVictims(const Room& room, absl::Span<const VictimUnit> units,
                     GroupPreemption* preemption);

}  // namespace outboard::sdk

#endif  // OUTBOARD_PLUGIN_HOST_SDK_GROUP_PREEMPTION_H_
