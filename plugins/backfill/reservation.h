// The reservation for the first unit in line, and which pods may use its room until then.
#ifndef OUTBOARD_PLUGINS_BACKFILL_RESERVATION_H_
#define OUTBOARD_PLUGINS_BACKFILL_RESERVATION_H_

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "plugin_host/sdk/views.h"
#include "plugins/backfill/run_times.h"
#include "plugins/backfill/shadow_schedule.h"

namespace outboard::backfill {

// A resource of the nodes.
struct Resource {
  std::string name;  // as in Kubernetes; `pods`: the number of pods
  enum class Kind { kCpu, kMemory, kEphemeral, kPods, kExtended } kind = Kind::kCpu;
  uint32_t column = 0;  // with kExtended

  // By slot.
  const std::vector<int64_t>& Allocatable(const sdk::NodeTable& nodes) const;
  const std::vector<int64_t>& Requested(const sdk::NodeTable& nodes) const;
  int64_t Free(const sdk::NodeTable& nodes, sdk::Slot slot) const {
    return Allocatable(nodes)[slot] - Requested(nodes)[slot];
  }
  int64_t AskedBy(const sdk::PodRecord& pod) const;
};

// A pod's turn: higher priority first, then earlier creation, then name.
struct Turn {
  int64_t inverse_priority = 0;
  int64_t created = 0;
  std::string ns, name;  // of the group, or of a pod without a group
  std::string uid;
  friend auto operator<=>(const Turn&, const Turn&) = default;
};

// Pods that are placed together, or a single pod.
struct Unit {
  std::string id;    // unique
  std::string name;  // for people: `default/train`
  // Members that wait for a node; `needed` of them must get one.
  std::vector<const sdk::PodRecord*> pending;
  int64_t needed = 1;
  bool complete = true;  // It has enough members to be placed, and a readable size.

  // Pods below this priority may be evicted for any member; absent: no eviction.
  std::optional<int32_t> OutranksBelow() const;
};

// Returns the resources that the unit uses, the scarcest last; false: a resource is on no node.
bool ResourcesOf(const Unit& unit, const sdk::NodeTable& nodes, std::vector<Resource>* resources);
// Members that must get a node, grouped by requests and allowed nodes; large ones first.
std::vector<Demand> DemandsOf(const Unit& unit, const std::vector<Resource>& resources,
                              const sdk::ClusterView& cluster);
// The free amounts of each node, by slot; or those of an empty node.
Rooms FreeRooms(const std::vector<Resource>& resources, const sdk::ClusterView& cluster);
Rooms EmptyRooms(const std::vector<Resource>& resources, const sdk::ClusterView& cluster);

// Computes pods' end times for a reservation: declared ends, and evictions of borrowers.
struct Ends {
  absl::Time now;
  absl::Duration overrun;
  // Preemptible pods below this priority are evicted at once; absent: they keep running.
  std::optional<int32_t> take_back_below;

  bool TakesBack(const RunTime& run_time, int32_t priority) const {
    // A pod that is being deleted ends at its own time.
    return take_back_below && run_time.preemptible && !run_time.gone && priority < *take_back_below;
  }
  std::optional<absl::Time> Of(const RunTime& run_time, int32_t priority) const {
    return TakesBack(run_time, priority) ? now : run_time.EndAt(now, overrun);
  }
};

// All amounts are indexed like `resources`. Pods may be deleted before it is read, so it does not
// refer to them.
struct Reservation {
  std::string unit_id, unit_name;
  Turn turn;
  absl::Time when;
  Ends ends;
  // Preemptible pods below this priority may be evicted for the unit; absent: no eviction.
  std::optional<int32_t> outranks_below;
  std::vector<Resource> resources;
  struct Node {
    sdk::Slot slot;
    Amounts kept;
    Amounts released;     // by pods that end before `when`
    uint64_t generation;  // the node's, at which `released` was computed
  };
  std::vector<Node> nodes;
  std::vector<int32_t> node_at;  // by slot: index into `nodes`, -1 for others

  const Node* At(sdk::Slot slot) const {
    return slot < node_at.size() && node_at[slot] >= 0 ? &nodes[node_at[slot]] : nullptr;
  }
};

}  // namespace outboard::backfill

#endif  // OUTBOARD_PLUGINS_BACKFILL_RESERVATION_H_
