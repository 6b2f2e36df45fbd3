// The pods that wait for a node, the first of them, and its reservation.
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
#include "plugin_host/sdk/job_gangs.h"
#include "plugin_host/sdk/label_values.h"
#include "plugin_host/sdk/metrics.h"
#include "plugin_host/sdk/pod_group_index.h"
#include "plugin_host/sdk/run_facts/run_facts.h"
#include "plugin_host/sdk/views.h"
#include "plugins/backfill/endings.h"
#include "plugins/backfill/reservation.h"
#include "plugins/backfill/run_times.h"

namespace outboard::backfill {

// Follows the cluster cache: which pods wait, and when pods with a place end. Places of dry runs do
// not change it.
//
// Threading: thread-compatible; runs on the cluster cache's thread.
// Lifetime: as the plugin.
// Errors: none; a malformed value counts as absent, with one warning.
class Line {
 public:
  struct Options {
    std::optional<absl::Duration> default_run_time;
    absl::Duration overrun = absl::Minutes(5);
    sdk::JobGangRules jobs;
  };
  // How long room is kept for a unit that fits and gets no place. It is longer than the longest
  // default backoff, so the unit was retried: another plugin rejects it.
  static constexpr absl::Duration kSettles = absl::Seconds(15);

  // `overruns` is counted up for each pod that runs longer than it declared.
  Line(std::string plugin, std::string profile, const Options& options, sdk::ClusterView cluster,
       std::shared_ptr<sdk::Counter> overruns)
      : profile_(std::move(profile)),
        options_(options),
        cluster_(cluster),
        overruns_(std::move(overruns)),
        groups_(plugin, options.jobs, cluster),
        malformed_(std::move(plugin)) {}

  void Clear();
  void SetPod(const sdk::PodRecord& pod);
  void RemovePod(const sdk::PodRecord& pod);
  // Places of dry runs are reported only by these two calls.
  void PodOnNode(const sdk::PodRecord& pod);
  void PodOffNode(const sdk::PodRecord& pod);
  void NodeChanged() { NoteChange(); }
  void NodeRemoved();
  void SetObject(const v1beta1::ClusterObject& object);
  void RemoveObject(const v1beta1::ClusterObject& object);
  // About once a second: pods that run longer than they declared are not trusted again.
  void Tick(absl::Time now);
  // The number of pods on nodes of which no end is known.
  size_t unknown_ends() const { return endings_.unknown(); }

  // The id of the pod's unit, and the unit's turn: the turn of its earliest member.
  std::string UnitIdOf(const v1beta1::Pod& pod) const;
  Turn TurnOf(const v1beta1::Pod& pod) const;
  RunTime RunTimeOf(const v1beta1::Pod& pod) const;
  // No pod waits ahead of the pod's unit.
  bool IsNext(const v1beta1::Pod& pod) const {
    return turns_.empty() || TurnOf(pod) <= *turns_.begin();
  }

  // Null: no reservation. The result is cached until a change, for at most a second; also during a
  // dry run, unless a change preceded it directly.
  std::shared_ptr<const Reservation> ReservationAt(absl::Time now) const;
  // See Endings.
  absl::Time InUseUntil(sdk::Slot slot, const sdk::PodRecord& by, absl::Time now) const {
    return endings_.InUseUntil(slot, by, {now, options_.overrun, std::nullopt});
  }
  // Returns true if, with the pods that run now, the node has room for `asked` beside the
  // reservation.
  bool HasRoomBeside(const Reservation& reservation, const Reservation::Node& node,
                     const Amounts& asked) const;

 private:
  // The time since which units fit, by id.
  using FittingSince = absl::flat_hash_map<std::string, absl::Time>;

  bool trial() const { return !tried_.empty() || !absent_.empty(); }
  void NoteChange();
  void Leave(const std::string& uid);
  void SetPlaced(const sdk::PodRecord& pod);
  // The pods' owners say something else now.
  void SetPlaced(const std::vector<std::string>& uids);
  // The members of its group are one unit.
  bool IsOfUnit(const sdk::GroupRef& ref) const;
  Turn OwnTurnOf(const v1beta1::Pod& pod, const sdk::GroupRef* ref) const;
  Unit UnitOf(const sdk::PodRecord& pod) const;
  std::shared_ptr<const Reservation> Reserve(absl::Time now, FittingSince* fitting) const;
  std::shared_ptr<const Reservation> ReserveFor(const Unit& unit, const Turn& turn, absl::Time now,
                                                FittingSince* fitting) const;
  // What the pods that are on the node release before the reservation's time.
  Amounts ReleasedUntil(const Reservation& reservation, sdk::Slot slot) const;

  const std::string profile_;
  const Options options_;
  const sdk::ClusterView cluster_;
  const std::shared_ptr<sdk::Counter> overruns_;
  sdk::PodGroupIndex groups_;
  sdk::RunFactsReader runs_;
  mutable sdk::MalformedValues malformed_;

  // Every pod by its own turn; members of groups also by group.
  struct Waiting {
    Turn turn;
    std::optional<sdk::GroupKey> group;
  };
  absl::btree_set<Turn> turns_;
  absl::flat_hash_map<std::string, Waiting> waiting_;  // by uid
  absl::flat_hash_map<sdk::GroupKey, absl::btree_set<Turn>> group_turns_;

  Endings endings_;
  // Uids of placed pods that ran longer than they declared. After a restart of the host they are
  // found again, unless they declare another end by then.
  absl::flat_hash_set<std::string> overran_;

  // Places of dry runs, by uid: pods without a place that are on a node, or pods with a place that
  // are not. Empty between calls.
  absl::flat_hash_set<std::string> tried_, absent_;

  uint64_t changes_ = 0;
  mutable std::shared_ptr<const Reservation> cached_;
  mutable uint64_t cached_changes_ = UINT64_MAX;
  mutable absl::Time cached_at_ = absl::InfinitePast();
  // Of the units considered last; a unit that did not fit starts again from zero.
  mutable FittingSince fitting_since_;
};

}  // namespace outboard::backfill

#endif  // OUTBOARD_PLUGINS_BACKFILL_LINE_H_
