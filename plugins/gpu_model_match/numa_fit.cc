#include "plugins/gpu_model_match/numa_fit.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "absl/strings/match.h"
#include "plugin_host/sdk/plugin.h"

namespace outboard::gpu_model_match {
namespace {

// Bit z: NumaTopology::zones[z].
using ZoneSet = uint64_t;

// An amount that a part of the pod needs of NumaTopology::resources[resource].
struct Need {
  size_t resource;
  int64_t amount;
};
using Needs = absl::InlinedVector<Need, 4>;

// Memory and huge pages: the kubelet's memory manager chooses zones for all of them together.
bool IsMemory(const std::string& resource) {
  return resource == "memory" || absl::StartsWith(resource, "hugepages-");
}

// Without resources that no zone lists: the kubelet has no choice of zones for them.
Needs NeedsOf(const NumaPart& part, const NumaTopology& topology) {
  Needs needs;
  for (const auto& [name, amount] : part.amounts) {
    const auto found = std::lower_bound(topology.resources.begin(), topology.resources.end(), name);
    if (found == topology.resources.end() || *found != name) continue;
    needs.push_back({static_cast<size_t>(found - topology.resources.begin()), amount});
  }
  return needs;
}

absl::Span<const NumaPart> PartsOf(const NumaRequests& pod, NumaScope scope) {
  if (scope == NumaScope::kPod) return absl::MakeConstSpan(&pod.pod, 1);
  return pod.containers;
}

size_t IndexOf(const NumaTopology& topology, size_t zone, size_t resource) {
  return zone * topology.resources.size() + resource;
}

template <typename Fn>
void ForEachZone(ZoneSet zones, const Fn& fn) {
  for (; zones != 0; zones &= zones - 1) fn(static_cast<size_t>(std::countr_zero(zones)));
}

// Calls fn(set) for the sets of `size` zones, in the order of their bits as numbers, until it
// returns true.
template <typename Fn>
bool FindSet(size_t zones, int size, const Fn& fn) {
  const ZoneSet end = ZoneSet{1} << zones;
  for (ZoneSet set = (ZoneSet{1} << size) - 1; set < end;) {
    if (fn(set)) return true;
    const ZoneSet lowest = set & -set;
    const ZoneSet carried = set + lowest;
    set = carried | (((carried ^ set) >> 2) / lowest);
  }
  return false;
}

bool Have(ZoneSet zones, const Needs& needs, const NumaTopology& topology,
          const NumaAvailable& available) {
  return std::all_of(needs.begin(), needs.end(), [&](const Need& need) {
    int64_t sum = 0;
    ForEachZone(zones,
                [&](size_t zone) { sum += available[IndexOf(topology, zone, need.resource)]; });
    return sum >= need.amount;
  });
}

// The fewest zones of an otherwise idle machine that have all of `needs`; 0: no number is enough.
// Reserved CPUs count, reserved memory does not, as in the kubelet's managers.
int FewestWhenIdle(const Needs& needs, const NumaTopology& topology) {
  NumaAvailable idle(topology.amounts.size(), 0);
  for (const Need& need : needs) {
    for (size_t zone = 0; zone < topology.zones.size(); ++zone) {
      const size_t index = IndexOf(topology, zone, need.resource);
      const NumaAmounts& amounts = topology.amounts[index];
      idle[index] =
          IsMemory(topology.resources[need.resource]) ? amounts.allocatable : amounts.capacity;
    }
  }
  for (int size = 1; size <= static_cast<int>(topology.zones.size()); ++size) {
    if (FindSet(topology.zones.size(), size,
                [&](ZoneSet set) { return Have(set, needs, topology, idle); }))
      return size;
  }
  return 0;
}

// The zone of policy single-numa-node: the first that has everything.
std::optional<ZoneSet> OneZone(const Needs& needs, const NumaTopology& topology,
                               const NumaAvailable& available) {
  for (size_t zone = 0; zone < topology.zones.size(); ++zone) {
    const ZoneSet set = ZoneSet{1} << zone;
    const bool listed = std::all_of(needs.begin(), needs.end(), [&](const Need& need) {
      return topology.amounts[IndexOf(topology, zone, need.resource)].listed;
    });
    if (listed && Have(set, needs, topology, available)) return set;
  }
  return std::nullopt;
}

// The zones of policy restricted. A resource prefers as few zones as an idle machine would need for
// it; the kubelet admits only zones that all resources prefer.
std::optional<ZoneSet> PreferredZones(const Needs& needs, const NumaTopology& topology,
                                      const NumaAvailable& available) {
  int size = 0;
  Needs memory;
  const auto agrees = [&](const Needs& together) {
    const int fewest = FewestWhenIdle(together, topology);
    if (size == 0) size = fewest;
    return fewest != 0 && fewest == size;
  };
  for (const Need& need : needs) {
    if (IsMemory(topology.resources[need.resource])) {
      memory.push_back(need);
    } else if (!agrees({need})) {
      return std::nullopt;
    }
  }
  if (!memory.empty() && !agrees(memory)) return std::nullopt;
  std::optional<ZoneSet> preferred;
  FindSet(topology.zones.size(), size, [&](ZoneSet set) {
    if (!Have(set, needs, topology, available)) return false;
    preferred = set;
    return true;
  });
  return preferred;
}

// The sum of the distances of each pair, which compares sets of the same size. 255: unknown, as in
// ACPI's table.
int64_t DistanceOf(ZoneSet zones, const NumaTopology& topology) {
  int64_t sum = 0;
  ForEachZone(zones, [&](size_t a) {
    ForEachZone(zones, [&](size_t b) {
      const auto found = topology.zones[a].distances.find(topology.zones[b].id);
      sum += found == topology.zones[a].distances.end() ? 255 : found->second;
    });
  });
  return sum;
}

// In the order of the lists of their zones: {0, 3} before {1, 2}.
bool IsBefore(ZoneSet a, ZoneSet b) {
  const ZoneSet differ = a ^ b;
  return (a & differ & -differ) != 0;
}

struct ChosenZones {
  ZoneSet zones = 0;
  bool closest = false;
};
// The closest of the smallest sets that have everything.
std::optional<ChosenZones> FewestZones(const Needs& needs, const NumaTopology& topology,
                                       const NumaAvailable& available) {
  const size_t zones = topology.zones.size();
  for (int size = 1; size <= static_cast<int>(zones); ++size) {
    std::optional<ChosenZones> best;
    int64_t best_distance = 0;
    std::optional<int64_t> least;  // of any set, also one with too little
    FindSet(zones, size, [&](ZoneSet set) {
      const int64_t distance = DistanceOf(set, topology);
      least = std::min(least.value_or(distance), distance);
      if (!Have(set, needs, topology, available)) return false;
      if (!best.has_value() || distance < best_distance ||
          (distance == best_distance && IsBefore(set, best->zones))) {
        best = ChosenZones{set, false};
        best_distance = distance;
      }
      return false;
    });
    if (!best.has_value()) continue;
    best->closest = best_distance == *least;
    return best;
  }
  return std::nullopt;
}

void TakeFrom(ZoneSet zones, const Needs& needs, const NumaTopology& topology,
              NumaAvailable* available) {
  for (Need need : needs) {
    ForEachZone(zones, [&](size_t zone) {
      int64_t& left = (*available)[IndexOf(topology, zone, need.resource)];
      const int64_t taken = std::min(left, need.amount);
      left -= taken;
      need.amount -= taken;
    });
  }
}

// The kubelet gives an init container's resources to the containers after it.
bool Keeps(const NumaPart& part) { return part.kind != NumaPart::Kind::kInitContainer; }

NumaMisfit MisfitOf(NumaPart::Kind kind) {
  switch (kind) {
    case NumaPart::Kind::kPod:
      return NumaMisfit::kPod;
    case NumaPart::Kind::kInitContainer:
      return NumaMisfit::kInitContainer;
    case NumaPart::Kind::kSidecar:
      return NumaMisfit::kSidecar;
    case NumaPart::Kind::kContainer:
      break;
  }
  return NumaMisfit::kContainer;
}

ZoneSet AllZones(const NumaTopology& topology) {
  const size_t zones = topology.zones.size();
  return zones >= 64 ? ~ZoneSet{0} : (ZoneSet{1} << zones) - 1;
}

// The zones that the kubelet chooses; none: it rejects the pod, or (with other policies) there is
// not enough in all zones.
std::optional<ZoneSet> KubeletsZones(const Needs& needs, const NumaTopology& topology,
                                     const NumaAvailable& available) {
  if (topology.policy == NumaPolicy::kSingleNumaNode) return OneZone(needs, topology, available);
  if (topology.policy == NumaPolicy::kNone || topology.zones.size() > kMaxZonesInSets)
    return AllZones(topology);
  if (topology.policy == NumaPolicy::kRestricted) return PreferredZones(needs, topology, available);
  const auto fewest = FewestZones(needs, topology, available);
  return fewest.has_value() ? std::optional(fewest->zones) : std::nullopt;
}

}  // namespace

NumaMisfit FindMisfit(const NumaRequests& pod, const NumaTopology& topology,
                      const NumaAvailable& available) {
  if (topology.policy != NumaPolicy::kSingleNumaNode && topology.policy != NumaPolicy::kRestricted)
    return NumaMisfit::kNone;
  NumaAvailable left = available;
  for (const NumaPart& part : PartsOf(pod, topology.scope)) {
    const Needs needs = NeedsOf(part, topology);
    if (needs.empty()) continue;
    const std::optional<ZoneSet> zones = KubeletsZones(needs, topology, left);
    if (!zones.has_value()) return MisfitOf(part.kind);
    if (Keeps(part)) TakeFrom(*zones, needs, topology, &left);
  }
  return NumaMisfit::kNone;
}

NumaSpan FindSpan(const NumaRequests& pod, const NumaTopology& topology,
                  const NumaAvailable& available) {
  NumaSpan span;
  if (topology.zones.size() > kMaxZonesInSets) return span;
  NumaAvailable left = available;
  for (const NumaPart& part : PartsOf(pod, topology.scope)) {
    const Needs needs = NeedsOf(part, topology);
    if (needs.empty()) continue;
    const std::optional<ChosenZones> chosen = FewestZones(needs, topology, left);
    if (!chosen.has_value()) return NumaSpan();
    span.zones = std::max(span.zones, std::popcount(chosen->zones));
    span.closest = span.closest && chosen->closest;
    if (Keeps(part)) TakeFrom(chosen->zones, needs, topology, &left);
  }
  span.fits = true;
  return span;
}

int64_t ScoreOf(const NumaSpan& span, int64_t max_numa_nodes) {
  if (!span.fits) return 0;
  if (span.zones == 0) return sdk::kMaxScore;
  const int64_t share = sdk::kMaxScore / std::max<int64_t>(1, max_numa_nodes);
  const int64_t score = sdk::kMaxScore - span.zones * share + (span.closest ? share / 2 : 0);
  return std::clamp<int64_t>(score, 0, sdk::kMaxScore);
}

void TakeAsKubelet(const NumaRequests& pod, const NumaTopology& topology,
                   NumaAvailable* available) {
  for (const NumaPart& part : PartsOf(pod, topology.scope)) {
    const Needs needs = NeedsOf(part, topology);
    if (needs.empty() || !Keeps(part)) continue;
    const ZoneSet all = AllZones(topology);
    TakeFrom(KubeletsZones(needs, topology, *available).value_or(all), needs, topology, available);
  }
}

void TakeFromEveryZone(const NumaRequests& pod, const NumaTopology& topology,
                       NumaAvailable* available) {
  const Needs needs = NeedsOf(pod.pod, topology);
  for (size_t zone = 0; zone < topology.zones.size(); ++zone)
    TakeFrom(ZoneSet{1} << zone, needs, topology, available);
}

}  // namespace outboard::gpu_model_match
