// What is kept for the first in line, and who may use it meanwhile.
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
  std::string name;  // as in Kubernetes; `pods`: how many pods
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

// A pod's turn: a higher priority first, then who was made earlier, then by name.
struct Turn {
  int64_t inverse_priority = 0;
  int64_t created = 0;
  std::string ns, name;  // of its group, or its own
  std::string uid;
  friend auto operator<=>(const Turn&, const Turn&) = default;
};

// Pods that are placed together, or one.
struct Unit {
  std::string id;    // what tells it from others
  std::string name;  // for people: `default/train`
  // Members that wait for a node; `needed` of them have to get one.
  std::vector<const sdk::PodRecord*> pending;
  int64_t needed = 1;
  bool complete = true;  // There are enough of them to be placed at all, and its size can be read.

  // Pods of a lower priority may be made to leave for any of them; absent: nobody may.
  std::optional<int32_t> OutranksBelow() const;
};

// Resources that matter to the unit, the scarcest last; false: no node has one of them.
bool ResourcesOf(const Unit& unit, const sdk::NodeTable& nodes, std::vector<Resource>* resources);
// Members that have to get a node, by what they ask for and where they may go; large ones first.
std::vector<Demand> DemandsOf(const Unit& unit, const std::vector<Resource>& resources,
                              const sdk::ClusterView& cluster);
// What is free on each node, by slot; or what there would be if nothing ran.
Rooms FreeRooms(const std::vector<Resource>& resources, const sdk::ClusterView& cluster);
Rooms EmptyRooms(const std::vector<Resource>& resources, const sdk::ClusterView& cluster);

// When pods are over, as a reservation takes it: those that say so, and borrowers that are made to
// leave.
struct Ends {
  absl::Time now;
  absl::Duration overrun;
  // Preemptible pods of a lower priority leave at once; absent: they go on.
  std::optional<int32_t> take_back_below;

  bool TakesBack(const RunTime& run_time, int32_t priority) const {
    // Those on their way out are gone when they say.
    return take_back_below && run_time.preemptible && !run_time.gone && priority < *take_back_below;
  }
  std::optional<absl::Time> Of(const RunTime& run_time, int32_t priority) const {
    return TakesBack(run_time, priority) ? now : run_time.EndAt(now, overrun);
  }
};

// Positions in `resources` are those of all amounts. Says nothing of pods that may be gone when it
// is looked at.
struct Reservation {
  std::string unit_id, unit_name;
  Turn turn;
  absl::Time when;
  Ends ends;
  // Preemptible pods of a lower priority may be made to leave for the unit; absent: nobody.
  std::optional<int32_t> outranks_below;
  std::vector<Resource> resources;
  struct Node {
    sdk::Slot slot;
    Amounts kept;
    Amounts released;     // by pods that end until `when`, …
    uint64_t generation;  // … as the node was then
  };
  std::vector<Node> nodes;
  std::vector<int32_t> node_at;  // by slot: index into `nodes`, -1 for others

  const Node* At(sdk::Slot slot) const {
    return slot < node_at.size() && node_at[slot] >= 0 ? &nodes[node_at[slot]] : nullptr;
  }
};

}  // namespace outboard::backfill

#endif  // OUTBOARD_PLUGINS_BACKFILL_RESERVATION_H_
