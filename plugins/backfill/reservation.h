// Who is first in line, when and where it will have room, and who may use that room meanwhile.
#ifndef OUTBOARD_PLUGINS_BACKFILL_RESERVATION_H_
#define OUTBOARD_PLUGINS_BACKFILL_RESERVATION_H_

#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "plugin_host/sdk/label_values.h"
#include "plugin_host/sdk/pod_group_index.h"
#include "plugin_host/sdk/resources.h"
#include "plugin_host/sdk/views.h"
#include "plugins/backfill/run_times.h"
#include "plugins/backfill/shadow_schedule.h"

namespace outboard::backfill {

// A resource of the nodes.
struct Resource {
  std::string name;  // as in Kubernetes; `pods`: how many pods
  enum class Kind { kCpu, kMemory, kEphemeral, kPods, kExtended } kind = Kind::kCpu;
  uint32_t column = 0;  // with kExtended

  int64_t Free(const sdk::NodeTable& nodes, sdk::Slot slot) const;
  int64_t AskedBy(const sdk::Resources& requests) const;
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
  bool is_group = false;
  // Members that wait for a node; `needed` of them have to get one.
  std::vector<const sdk::PodRecord*> pending;
  int64_t needed = 1;
  int64_t size = 1;      // of the group
  bool complete = true;  // There are enough of them to be placed at all, and its size can be read.
};

// What is kept for the first in line. Positions in `resources` are those of all amounts.
struct Reservation {
  std::string unit_id, unit_name;
  Turn turn;
  absl::Time when;
  std::vector<Resource> resources;
  struct Node {
    sdk::Slot slot;
    Amounts kept, released;
  };
  std::vector<Node> nodes;
  std::vector<int32_t> node_at;  // by slot: index into `nodes`, -1 for others

  const Node* At(sdk::Slot slot) const {
    return slot < node_at.size() && node_at[slot] >= 0 ? &nodes[node_at[slot]] : nullptr;
  }
  // What is left of a resource at `when` beside the group, as the node is now.
  int64_t Spare(const sdk::NodeTable& table, const Node& node, size_t resource) const {
    return resources[resource].Free(table, node.slot) + node.released[resource] -
           node.kept[resource];
  }
};

// The line of pods that wait, and the ends of those that run, kept up to date by the mirror.
//
// Threading: thread-compatible; the mirror's thread. Lifetime: as the plugin. Errors: none; what
// cannot be read counts as absent, and is warned of once.
class Line {
 public:
  struct Options {
    std::optional<absl::Duration> default_run_time;
    absl::Duration overrun = absl::Minutes(5);
  };
  Line(std::string plugin, std::string profile, const Options& options, sdk::ClusterView cluster)
      : profile_(std::move(profile)),
        options_(options),
        cluster_(cluster),
        groups_(plugin),
        malformed_(std::move(plugin)) {}

  void Clear();
  void SetPod(const sdk::PodRecord& pod);
  void RemovePod(const sdk::PodRecord& pod);
  void PodOnNode(const sdk::PodRecord& pod, sdk::Slot slot);
  void PodOffNode(const sdk::PodRecord& pod);
  void RoomChanged() { ++releases_; }
  void SetObject(const v1alpha1::ClusterObject& object);
  void RemoveObject(const v1alpha1::ClusterObject& object);

  // What the pod is a part of; its id alone where that is enough.
  Unit UnitOf(const sdk::PodRecord& pod) const;
  std::string UnitIdOf(const v1alpha1::Pod& pod) const;
  Turn TurnOf(const v1alpha1::Pod& pod) const;
  RunTime RunTimeOf(const v1alpha1::Pod& pod) const;
  // The pod is tried now, and seems to fit. If it waits for a node still when somebody else is
  // tried, others than this plugin keep it out, and nothing is kept for it until room is given
  // back.
  void NoteTrial(const std::string& uid);

  // Null: nobody has to be waited for. It is the same until something changes, for a second at
  // most.
  std::shared_ptr<const Reservation> ReservationAt(absl::Time now) const;
  // How many of the unit's members find room now, of those that are needed; with `others`, not in
  // room that is kept.
  int64_t CountThatFitNow(const Unit& unit, const Reservation* others) const;
  size_t waiting() const { return turns_.size(); }

 private:
  using Ending = std::pair<absl::Time, std::string>;  // of which pod, by uid
  struct Running {
    const sdk::PodRecord* pod = nullptr;
    sdk::Slot slot = sdk::kNoSlot;
    RunTime run_time;
    std::optional<absl::Time> end;  // in `endings_`
  };

  std::shared_ptr<const Reservation> Reserve(absl::Time now) const;
  std::shared_ptr<const Reservation> ReserveFor(const Unit& unit, const Turn& turn,
                                                absl::Time now) const;
  bool AllTried(const Unit& unit) const;
  // False: no node has one of them.
  bool ResourcesOf(const Unit& unit, std::vector<Resource>* resources) const;
  std::vector<Demand> DemandsOf(const Unit& unit, const std::vector<Resource>& resources) const;
  Rooms FreeRooms(const std::vector<Resource>& resources) const;

  const std::string profile_;
  const Options options_;
  const sdk::ClusterView cluster_;
  sdk::PodGroupIndex groups_;
  mutable sdk::MalformedValues malformed_;
  absl::btree_set<Turn> turns_;
  absl::flat_hash_map<std::string, Turn> turn_of_;  // by uid
  absl::flat_hash_map<std::string, Running> running_;
  absl::btree_set<Ending> endings_;
  absl::btree_set<std::string> not_started_;  // uids of those that say how long, but not since when
  uint64_t changes_ = 0;                      // of what is not in the table of nodes
  uint64_t releases_ = 0;
  absl::flat_hash_map<std::string, uint64_t> tried_;  // `releases_` then, by uid

  mutable std::shared_ptr<const Reservation> cached_;
  mutable uint64_t cached_table_ = 0, cached_changes_ = 0;
  mutable absl::Time cached_at_ = absl::InfinitePast();
};

}  // namespace outboard::backfill

#endif  // OUTBOARD_PLUGINS_BACKFILL_RESERVATION_H_
