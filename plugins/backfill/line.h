// The line of pods that wait for a node, who is first in it, and what is kept for them.
#ifndef OUTBOARD_PLUGINS_BACKFILL_LINE_H_
#define OUTBOARD_PLUGINS_BACKFILL_LINE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/time/time.h"
#include "plugin_host/sdk/label_values.h"
#include "plugin_host/sdk/pod_group_index.h"
#include "plugin_host/sdk/views.h"
#include "plugins/backfill/endings.h"
#include "plugins/backfill/reservation.h"
#include "plugins/backfill/run_times.h"

namespace outboard::backfill {

// Kept up to date by the mirror: who waits, and when those that have a place are over. Places that
// are only tried change nothing of it.
//
// Threading: thread-compatible; the mirror's thread. Lifetime: as the plugin. Errors: none; what
// cannot be read counts as absent, and is warned of once.
class Line {
 public:
  struct Options {
    std::optional<absl::Duration> default_run_time;
    absl::Duration overrun = absl::Minutes(5);
  };
  // So long room is kept for a unit that fits and does not get its place: longer than the longest
  // default backoff, after which it is tried again. Then others than this plugin keep it out.
  static constexpr absl::Duration kSettles = absl::Seconds(15);

  Line(std::string plugin, std::string profile, const Options& options, sdk::ClusterView cluster)
      : profile_(std::move(profile)),
        options_(options),
        cluster_(cluster),
        groups_(plugin),
        malformed_(std::move(plugin)) {}

  void Clear();
  void SetPod(const sdk::PodRecord& pod);
  void RemovePod(const sdk::PodRecord& pod);
  // Of places that are only tried nothing more is heard than these two.
  void PodOnNode(const sdk::PodRecord& pod);
  void PodOffNode(const sdk::PodRecord& pod);
  void NodeChanged() { NoteChange(); }
  void NodeRemoved();
  void SetObject(const v1alpha1::ClusterObject& object);
  void RemoveObject(const v1alpha1::ClusterObject& object);

  // What tells the pod's unit from others, and the unit's turn: that of the earliest member.
  std::string UnitIdOf(const v1alpha1::Pod& pod) const;
  Turn TurnOf(const v1alpha1::Pod& pod) const;
  RunTime RunTimeOf(const v1alpha1::Pod& pod) const;
  // Nobody waits that comes before the pod's unit.
  bool IsNext(const v1alpha1::Pod& pod) const {
    return turns_.empty() || TurnOf(pod) <= *turns_.begin();
  }

  // Null: nobody has to be waited for. It is the same until something changes, for a second at
  // most; also while places are tried, unless something has changed right before.
  std::shared_ptr<const Reservation> ReservationAt(absl::Time now) const;
  // See Endings.
  absl::Time InUseUntil(sdk::Slot slot, const sdk::PodRecord& by, absl::Time now) const {
    return endings_.InUseUntil(slot, by, {now, options_.overrun, std::nullopt});
  }
  // Whether the node has room for `asked` beside what is kept there, by what runs on it now.
  bool HasRoomBeside(const Reservation& reservation, const Reservation::Node& node,
                     const Amounts& asked) const;

 private:
  // Since when units fit, by id.
  using FittingSince = absl::flat_hash_map<std::string, absl::Time>;

  bool trial() const { return !tried_.empty() || !absent_.empty(); }
  void NoteChange();
  void Leave(const std::string& uid);
  void SetPlaced(const sdk::PodRecord& pod) { endings_.Set(pod, RunTimeOf(pod.pod)); }
  Turn OwnTurnOf(const v1alpha1::Pod& pod, const sdk::GroupRef* ref) const;
  Unit UnitOf(const sdk::PodRecord& pod) const;
  std::shared_ptr<const Reservation> Reserve(absl::Time now, FittingSince* fitting) const;
  std::shared_ptr<const Reservation> ReserveFor(const Unit& unit, const Turn& turn, absl::Time now,
                                                FittingSince* fitting) const;
  // What pods that are on the node release until the reservation's time.
  Amounts ReleasedUntil(const Reservation& reservation, sdk::Slot slot) const;

  const std::string profile_;
  const Options options_;
  const sdk::ClusterView cluster_;
  sdk::PodGroupIndex groups_;
  mutable sdk::MalformedValues malformed_;

  // Each pod by its own turn; those of groups besides by group.
  struct Waiting {
    Turn turn;
    std::optional<sdk::GroupKey> group;
  };
  absl::btree_set<Turn> turns_;
  absl::flat_hash_map<std::string, Waiting> waiting_;  // by uid
  absl::flat_hash_map<sdk::GroupKey, absl::btree_set<Turn>> group_turns_;

  Endings endings_;

  // Places that are only tried, by uid: pods that have none are on a node, or pods that have one
  // are not. Empty between calls.
  absl::flat_hash_set<std::string> tried_, absent_;

  uint64_t changes_ = 0;
  mutable std::shared_ptr<const Reservation> cached_;
  mutable uint64_t cached_changes_ = UINT64_MAX;
  mutable absl::Time cached_at_ = absl::InfinitePast();
  // Of the units that were looked at last; one that did not fit then begins anew.
  mutable FittingSince fitting_since_;
};

}  // namespace outboard::backfill

#endif  // OUTBOARD_PLUGINS_BACKFILL_LINE_H_
