#include "plugin_host/sdk/group_preemption.h"

#include <algorithm>

#include "plugin_host/sdk/preemption.h"

namespace outboard::sdk {
namespace {

std::vector<Slot> NodesOf(const GroupPlaces& places) {
  std::vector<Slot> nodes;
  for (const auto& [pod, slot] : places) nodes.push_back(slot);
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  return nodes;
}

}  // namespace

Verdict MayPreemptForGroup(const Attempt& attempt, const GroupToPlace& group) {
  const v1beta1::Pod& pod = attempt.pod().proto();
  if (pod.preemption_policy() == v1beta1::PREEMPTION_POLICY_NEVER)
    return SayPreemption(v1beta1::CODE_UNSCHEDULABLE,
                         "not eligible due to preemptionPolicy=Never.");
  if (group.some_wait) {
    return SayPreemption(v1beta1::CODE_UNSCHEDULABLE,
                         "not eligible while members of the group wait at Permit.");
  }
  const auto is_nominated = [](const PodRecord* pod) { return pod->place == Place::kNominated; };
  if (!is_nominated(&attempt.pod().record()) &&
      std::count_if(group.pending.begin(), group.pending.end(), is_nominated) >= group.needed) {
    return SayPreemption(v1beta1::CODE_UNSCHEDULABLE,
                         "not eligible while nodes are nominated for other members of the group.");
  }
  for (const PodRecord* member : group.pending) {
    if (member->place != Place::kNominated) continue;
    for (const PodRecord* other : attempt.cluster().node(member->slot).pods()) {
      if (other->pod.priority() >= pod.priority() || !IsLeavingForAnother(other->pod)) continue;
      return SayPreemption(v1beta1::CODE_UNSCHEDULABLE,
                           "not eligible due to a terminating pod on the nominated node.");
    }
  }
  return Verdict::Success();
}

std::optional<Room> MakeRoom(absl::Span<const VictimUnit> units, GroupDryRun& dry_run) {
  size_t gone = 0;  // Units [0, gone) are removed.
  const auto set_gone = [&](size_t wanted) {
    for (; gone < wanted; ++gone) {
      for (const PodRecord* pod : units[gone].pods) dry_run.Remove(*pod);
    }
    for (; gone > wanted; --gone) {
      for (const PodRecord* pod : units[gone - 1].pods) dry_run.Return(*pod);
    }
  };
  set_gone(units.size());
  Room room;
  room.places = dry_run.Place({});
  if (room.places.empty()) return std::nullopt;
  // The shortest prefix. Removing more never hurts, except for pods with affinity to others, so the
  // result is checked again at the end.
  size_t too_few = 0, enough = units.size();
  while (too_few < enough) {
    const size_t half = too_few + (enough - too_few) / 2;
    set_gone(half);
    GroupPlaces places = dry_run.Place({});
    if (places.empty()) {
      too_few = half + 1;
    } else {
      enough = half;
      room.places = std::move(places);
    }
  }
  set_gone(enough);
  std::vector<Slot> nodes = NodesOf(room.places);
  for (size_t i = enough; i-- > 0;) {
    const VictimUnit& unit = units[i];
    for (const PodRecord* pod : unit.pods) dry_run.Return(*pod);
    GroupPlaces places = dry_run.Place(nodes);
    if (!places.empty()) {
      room.places = std::move(places);
      continue;
    }
    for (const PodRecord* pod : unit.pods) dry_run.Remove(*pod);
    room.leaving.push_back(i);
  }
  std::reverse(room.leaving.begin(), room.leaving.end());
  room.places = dry_run.Place(nodes);
  if (room.places.empty()) return std::nullopt;
  for (const size_t leaving : room.leaving) {
    for (const PodRecord* pod : units[leaving].pods) dry_run.Return(*pod);
  }
  return room;
}

Verdict SplitVictims(const Room& room, absl::Span<const VictimUnit> units,
                     GroupPreemption* preemption) {
  preemption->places = room.places;
  const std::vector<Slot> nodes = NodesOf(room.places);
  // The least important first.
  for (size_t i = room.leaving.size(); i-- > 0;) {
    const VictimUnit& unit = units[room.leaving[i]];
    bool any_there = false;
    for (const PodRecord* pod : unit.pods) {
      const bool there = std::binary_search(nodes.begin(), nodes.end(), pod->slot);
      (there ? preemption->victims : preemption->companions).push_back(pod);
      any_there |= there;
    }
    // For example, a pod elsewhere in the zone that repels the group. As in kube-scheduler, only
    // pods on the nodes themselves may be evicted for the room, and their groups.
    if (!any_there) {
      return SayPreemption(v1beta1::CODE_UNSCHEDULABLE,
                           "not eligible because pods on other nodes would have to leave.");
    }
  }
  if (!preemption->victims.empty()) return Verdict::Success();
  return SayPreemption(
      v1beta1::CODE_UNSCHEDULABLE,
      "not eligible because the group fits on the nodes nominated for its members.");
}

}  // namespace outboard::sdk
