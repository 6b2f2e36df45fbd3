#include "plugins/backfill/line.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "plugin_host/sdk/pod_groups.h"

namespace outboard::backfill {
namespace {

// How many units are considered before a reservation is possible; those before it never fit, or at
// an unknown time.
constexpr int kMaxLooked = 32;
// The maximum age of a reservation's time.
constexpr absl::Duration kMaxAge = absl::Seconds(1);

}  // namespace

void Line::NoteChange() {
  ++changes_;
  // During a dry run nothing changes.
  tried_.clear();
  absent_.clear();
}

void Line::Clear() {
  NoteChange();
  groups_.Clear();
  turns_.clear();
  waiting_.clear();
  group_turns_.clear();
  endings_.Clear();
  runs_.Clear();
  overran_.clear();
  fitting_since_.clear();
  cached_ = nullptr;
}

void Line::Leave(const std::string& uid) {
  const auto known = waiting_.find(uid);
  if (known == waiting_.end()) return;
  const Waiting& waiting = known->second;
  turns_.erase(waiting.turn);
  if (waiting.group) {
    const auto group = group_turns_.find(*waiting.group);
    group->second.erase(waiting.turn);
    if (group->second.empty()) group_turns_.erase(group);
  }
  waiting_.erase(known);
}

void Line::SetPod(const sdk::PodRecord& pod) {
  NoteChange();
  groups_.SetPod(pod);
  runs_.SetPod(pod.pod);
  const std::string& uid = pod.pod.uid();
  Leave(uid);
  if (pod.place == sdk::Place::kNone || pod.place == sdk::Place::kNominated) {
    endings_.Drop(uid);
    overran_.erase(uid);
  } else {
    SetPlaced(pod);
  }
  if (sdk::StateOf(pod) != sdk::MemberState::kPending || pod.pod.scheduler_name() != profile_)
    return;
  const std::optional<sdk::GroupRef> ref = sdk::GroupOf(pod.pod);
  Waiting waiting = {OwnTurnOf(pod.pod, ref ? &*ref : nullptr), std::nullopt};
  turns_.insert(waiting.turn);
  if (ref) {
    group_turns_[ref->key].insert(waiting.turn);
    waiting.group = ref->key;
  }
  waiting_.emplace(uid, std::move(waiting));
}

void Line::RemovePod(const sdk::PodRecord& pod) {
  NoteChange();
  groups_.RemovePod(pod);
  runs_.RemovePod(pod.pod);
  overran_.erase(pod.pod.uid());
  malformed_.Forget(absl::StrCat("pod ", pod.pod.namespace_(), "/", pod.pod.name()));
  Leave(pod.pod.uid());
  endings_.Drop(pod.pod.uid());
}

void Line::SetPlaced(const sdk::PodRecord& pod) {
  const RunTime its = RunTimeOf(pod.pod);
  endings_.Set(pod, overran_.contains(pod.pod.uid()) ? its.WithoutEstimate() : its);
}

void Line::SetPlaced(const std::vector<std::string>& uids) {
  if (uids.empty()) return;
  NoteChange();
  for (const std::string& uid : uids) {
    const Endings::Placed* const placed = endings_.Find(uid);
    if (placed != nullptr) SetPlaced(*placed->pod);
  }
}

void Line::Tick(absl::Time now) {
  for (const sdk::PodRecord* pod : endings_.Overrunning(now, options_.overrun)) {
    overran_.insert(pod->pod.uid());
    overruns_->Add();
    SetPlaced(*pod);
    NoteChange();
  }
}

void Line::PodOnNode(const sdk::PodRecord& pod) {
  const std::string& uid = pod.pod.uid();
  if (absent_.erase(uid) > 0) return;
  if (endings_.Find(uid) != nullptr) {
    SetPlaced(pod);  // Its node was added again.
  } else {
    tried_.insert(uid);
  }
}

void Line::NodeRemoved() {
  // The node's pods keep their places, but have no node.
  for (const std::string& uid : absent_) {
    const Endings::Placed* const placed = endings_.Find(uid);
    if (placed != nullptr) SetPlaced(*placed->pod);
  }
  NoteChange();
}

void Line::PodOffNode(const sdk::PodRecord& pod) {
  if (tried_.erase(pod.pod.uid()) == 0) absent_.insert(pod.pod.uid());
}

void Line::SetObject(const v1beta1::ClusterObject& object) {
  if (groups_.SetObject(object).group != nullptr) NoteChange();
  SetPlaced(runs_.SetObject(object));
}

void Line::RemoveObject(const v1beta1::ClusterObject& object) {
  groups_.RemoveObject(object);
  SetPlaced(runs_.RemoveObject(object));
  NoteChange();
}

RunTime Line::RunTimeOf(const v1beta1::Pod& pod) const {
  return ReadRunTime(pod, runs_, options_.default_run_time, &malformed_);
}

bool Line::IsOfUnit(const sdk::GroupRef& ref) const {
  const sdk::GroupSpec& spec = groups_.SpecFor(ref);
  return spec.min && !groups_.HasStarted(ref, spec);
}

Turn Line::OwnTurnOf(const v1beta1::Pod& pod, const sdk::GroupRef* ref) const {
  return {-int64_t{pod.priority()}, pod.creation_unix_seconds(), pod.namespace_(),
          ref != nullptr ? ref->key.name : pod.name(), pod.uid()};
}

Turn Line::TurnOf(const v1beta1::Pod& pod) const {
  const std::optional<sdk::GroupRef> ref = sdk::GroupOf(pod);
  if (!ref) return OwnTurnOf(pod, nullptr);
  const auto members = group_turns_.find(ref->key);
  if (members == group_turns_.end() || !IsOfUnit(*ref)) return OwnTurnOf(pod, &*ref);
  return *members->second.begin();
}

std::string Line::UnitIdOf(const v1beta1::Pod& pod) const {
  const std::optional<sdk::GroupRef> ref = sdk::GroupOf(pod);
  if (!ref || !IsOfUnit(*ref)) return pod.uid();
  return absl::StrCat(ref->key.Text(), "\n", ref->key.controller_uid);
}

Unit Line::UnitOf(const sdk::PodRecord& pod) const {
  Unit unit;
  unit.id = UnitIdOf(pod.pod);
  const std::optional<sdk::GroupRef> ref = sdk::GroupOf(pod.pod);
  const sdk::GroupSpec* const spec = ref ? &groups_.SpecFor(*ref) : nullptr;
  if (spec != nullptr && (spec->not_found || !spec->fault.empty())) unit.complete = false;
  const sdk::Group* const group = ref ? groups_.Find(ref->key) : nullptr;
  if (spec == nullptr || !IsOfUnit(*ref) || group == nullptr) {
    unit.name = absl::StrCat(pod.pod.namespace_(), "/", pod.pod.name());
    unit.pending = {&pod};
    return unit;
  }
  unit.name = absl::StrCat(ref->key.ns, "/", ref->key.name);
  for (const Turn& turn : group_turns_.at(ref->key)) {
    const sdk::PodRecord* const record = cluster_.FindPod(turn.uid);
    if (record != nullptr) unit.pending.push_back(record);
  }
  const int64_t missing = spec->min->value - group->placed();
  const auto pending = static_cast<int64_t>(unit.pending.size());
  if (missing > pending) unit.complete = false;
  unit.needed = std::clamp<int64_t>(missing, 1, std::max<int64_t>(1, pending));
  return unit;
}

Amounts Line::ReleasedUntil(const Reservation& reservation, sdk::Slot slot) const {
  const std::vector<Resource>& resources = reservation.resources;
  Amounts released(resources.size(), 0);
  for (const sdk::PodRecord* pod : cluster_.nodes().pods[slot]) {
    const Endings::Placed* const placed = endings_.Find(pod->pod.uid());
    if (placed == nullptr) {
      // A dry run adds it; members of the reserved unit are part of what is kept.
      if (UnitIdOf(pod->pod) != reservation.unit_id) continue;
    } else {
      const std::optional<absl::Time> end =
          reservation.ends.Of(placed->run_time, pod->pod.priority());
      if (!end || *end > reservation.when) continue;
    }
    for (size_t r = 0; r < resources.size(); ++r) released[r] += resources[r].AskedBy(*pod);
  }
  return released;
}

bool Line::HasRoomBeside(const Reservation& reservation, const Reservation::Node& node,
                         const Amounts& asked) const {
  const sdk::NodeTable& table = cluster_.nodes();
  Amounts changed;
  const bool same = table.generation[node.slot] == node.generation;
  if (!same) changed = ReleasedUntil(reservation, node.slot);
  const Amounts& released = same ? node.released : changed;
  for (size_t r = 0; r < asked.size(); ++r) {
    const int64_t spare =
        reservation.resources[r].Free(table, node.slot) + released[r] - node.kept[r];
    if (asked[r] > 0 && asked[r] > spare) return false;
  }
  return true;
}

std::shared_ptr<const Reservation> Line::ReserveFor(const Unit& unit, const Turn& turn,
                                                    absl::Time now, FittingSince* fitting) const {
  auto reservation = std::make_shared<Reservation>();
  const std::vector<Resource>& resources = reservation->resources;
  if (!ResourcesOf(unit, cluster_.nodes(), &reservation->resources)) return nullptr;
  const std::vector<Demand> demands = DemandsOf(unit, resources, cluster_);
  if (!EachFits(demands, EmptyRooms(resources, cluster_))) return nullptr;

  const Rooms free = FreeRooms(resources, cluster_);
  const auto find = [&](const Ends& ends) {
    return FindShadow(
        free,
        [&](size_t node, VisitRelease visit) {
          endings_.Visit(static_cast<sdk::Slot>(node), ends, resources, visit);
        },
        demands, now);
  };
  reservation->outranks_below = unit.OutranksBelow();
  const Ends unhurried = {now, options_.overrun, std::nullopt};
  const Ends hurried = {now, options_.overrun, reservation->outranks_below};
  std::optional<ShadowSchedule> schedule = find(unhurried);
  reservation->ends = unhurried;
  std::optional<ShadowSchedule> sooner;
  if ((!schedule || schedule->when > now) && endings_.TakesBackAny(hurried)) sooner = find(hurried);
  if (schedule && sooner && schedule->when <= sooner->when) sooner.reset();
  // Another plugin rejects a unit that fits and gets no place; pods that are not evicted keep
  // running.
  const absl::Time when = sooner     ? sooner->when
                          : schedule ? schedule->when
                                     : absl::InfiniteFuture();
  bool settled = false;
  if (when <= now) {
    const auto known = fitting_since_.find(unit.id);
    const absl::Time since = known == fitting_since_.end() ? now : std::min(now, known->second);
    fitting->emplace(unit.id, since);
    settled = now - since >= kSettles;
  }
  if (sooner && !settled) {
    schedule = std::move(sooner);
    reservation->ends = hurried;
  } else if (!schedule || (settled && schedule->when <= now)) {
    return nullptr;
  }

  reservation->unit_id = unit.id;
  reservation->unit_name = unit.name;
  reservation->turn = turn;
  reservation->when = schedule->when;
  reservation->node_at.assign(cluster_.nodes().occupied.size(), -1);
  for (KeptRoom& room : schedule->nodes) {
    const auto slot = static_cast<sdk::Slot>(room.node);
    reservation->node_at[slot] = static_cast<int32_t>(reservation->nodes.size());
    reservation->nodes.push_back({slot, std::move(room.kept), ReleasedUntil(*reservation, slot),
                                  cluster_.nodes().generation[slot]});
  }
  return reservation;
}

std::shared_ptr<const Reservation> Line::Reserve(absl::Time now, FittingSince* fitting) const {
  absl::flat_hash_set<std::string> seen;
  int looked = 0;
  for (const Turn& turn : turns_) {
    const sdk::PodRecord* const pod = cluster_.FindPod(turn.uid);
    if (pod == nullptr || !seen.insert(UnitIdOf(pod->pod)).second) continue;
    if (++looked > kMaxLooked) break;
    const Unit unit = UnitOf(*pod);
    if (!unit.complete) continue;
    if (auto reservation = ReserveFor(unit, turn, now, fitting)) return reservation;
  }
  return nullptr;
}

std::shared_ptr<const Reservation> Line::ReservationAt(absl::Time now) const {
  const bool same = changes_ == cached_changes_;
  if (trial()) {
    // A dry run must not change the promise.
    FittingSince unused;
    return same ? cached_ : Reserve(now, &unused);
  }
  if (same && now >= cached_at_ && now - cached_at_ < kMaxAge) return cached_;
  FittingSince fitting;
  cached_ = Reserve(now, &fitting);
  fitting_since_ = std::move(fitting);
  cached_changes_ = changes_;
  cached_at_ = now;
  return cached_;
}

}  // namespace outboard::backfill
