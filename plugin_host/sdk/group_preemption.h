// PostFilter for groups: which pods have to leave so that a whole group fits at the same time.
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

// Removes pods for a dry run. Until the end of the call the cluster's views and the observers'
// state lack the removed pods. Afterwards everything is restored.
//
// Threading: within the call of PostFilterGroup.
// Lifetime: within the call.
// Errors: none; if a plugin fails, there are no places.
class GroupDryRun {
 public:
  virtual ~GroupDryRun() = default;
  // `pod` is on a node.
  virtual void Remove(const PodRecord& pod) = 0;
  // Returns a removed pod to its node.
  virtual void Return(const PodRecord& pod) = 0;
  // Nodes for the needed members, the attempt's pod first; empty: they do not fit. `among`: only on
  // these nodes; empty: on any.
  virtual GroupPlaces Place(absl::Span<const Slot> among) = 0;
};

struct GroupPreemption {
  // From Place. The shim accepts nodes only for members of the pod's group, by GroupOf.
  GroupPlaces places;
  // On the nodes of `places`, the most important first; at least one.
  std::vector<const PodRecord*> victims;
  std::vector<const PodRecord*> companions;  // elsewhere, see PreemptionCandidate.companion_uids
  int budget_violations = 0;
  // With a rejection: as PostFilterAnswer.clear_nomination, for all members in the queue.
  bool clear_nomination = false;
};

// For PostFilter plugins that also preempt for groups; without it groups wait.
//
// Threading, lifetime, errors: as PostFilterPlugin.
class GroupPostFilterPlugin {
 public:
  virtual ~GroupPostFilterPlugin() = default;
  // Called instead of PostFilter, for a pod whose group did not fit. SUCCESS fills `preemption`.
  virtual Verdict PostFilterGroup(const Attempt& attempt, const GroupToPlace& group,
                                  GroupDryRun& dry_run, GroupPreemption* preemption) const = 0;
};

// Whether the group may preempt: SUCCESS, or the rejection to return; as MayPreempt. Not while
// victims are leaving the node of any member, and not while members wait at Permit. If enough other
// members have nominated nodes, those members must be scheduled first.
Verdict MayPreemptForGroup(const Attempt& attempt, const GroupToPlace& group);

// Pods that leave together or stay together.
struct VictimUnit {
  std::vector<const PodRecord*> pods;
};

// Selects the units that have to leave. Takes the shortest prefix of `units` (in order of
// preference) that makes the group fit, then keeps units of it that need not leave, beginning with
// the last. Absent: the group does not fit even without all of them. Costs about one placement of
// the group per victim, plus log(units). Afterwards all pods are on their nodes again.
struct Room {
  GroupPlaces places;
  std::vector<size_t> leaving;  // indices of units, in their order
};
std::optional<Room> MakeRoom(absl::Span<const VictimUnit> units, GroupDryRun& dry_run);
// Fills in the places and the pods that leave: pods on the places' nodes as victims, the most
// important first, others as companions. A rejection if a unit has no pod on these nodes, and
// without victims: then the group already fits, on nodes nominated for other members.
Verdict SplitVictims(const Room& room, absl::Span<const VictimUnit> units,
                     GroupPreemption* preemption);

}  // namespace outboard::sdk

#endif  // OUTBOARD_PLUGIN_HOST_SDK_GROUP_PREEMPTION_H_
