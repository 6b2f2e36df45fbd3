#include "plugins/backfill/reservation.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "plugin_host/sdk/pod_groups.h"
#include "plugin_host/sdk/selectors.h"
#include "plugin_host/sdk/tolerations.h"

namespace outboard::backfill {
namespace {

// So many are looked at for one that something can be kept for; those before it can never start, or
// nobody knows when.
constexpr int kMaxLooked = 32;
// What a reservation says of the time may be as old.
constexpr absl::Duration kMaxAge = absl::Seconds(1);

// Whether the node's labels and taints let the pod in.
std::vector<char> MayUse(const v1alpha1::Pod& pod, const sdk::ClusterView& cluster) {
  const sdk::NodeTable& table = cluster.nodes();
  const sdk::RequiredNodeAffinity affinity(pod);
  std::vector<char> may_use(table.occupied.size(), 0);
  for (const sdk::Slot slot : cluster.node_order()) {
    if (table.unschedulable[slot] != 0) continue;
    const sdk::NodeView node = cluster.node(slot);
    if (table.taint_set[slot] != 0 &&
        sdk::FindUntoleratedTaint(node.taints(), pod.tolerations()) != nullptr)
      continue;
    if (!affinity.empty() && !affinity.Matches(node).value_or(false)) continue;
    may_use[slot] = 1;
  }
  return may_use;
}

// What decides which nodes let a pod in, apart from its size.
std::string PlacesOf(const v1alpha1::Pod& pod) {
  std::string places;
  const std::map<std::string, std::string> selector(pod.node_selector().begin(),
                                                    pod.node_selector().end());
  for (const auto& [key, value] : selector) absl::StrAppend(&places, key, "=", value, "\n");
  if (pod.has_affinity()) absl::StrAppend(&places, pod.affinity().SerializeAsString());
  for (const v1alpha1::Toleration& toleration : pod.tolerations())
    absl::StrAppend(&places, "\n", toleration.SerializeAsString());
  return places;
}

// Larger ones first: by GPUs and the like, then CPU, then memory.
Amounts SizeOf(const std::vector<Resource>& resources, const Amounts& each) {
  Amounts size;
  for (size_t r = resources.size(); r-- > 0;) size.push_back(each[r]);
  return size;
}

}  // namespace

int64_t Resource::Free(const sdk::NodeTable& nodes, sdk::Slot slot) const {
  switch (kind) {
    case Kind::kCpu:
      return nodes.allocatable_cpu[slot] - nodes.requested_cpu[slot];
    case Kind::kMemory:
      return nodes.allocatable_memory[slot] - nodes.requested_memory[slot];
    case Kind::kEphemeral:
      return nodes.allocatable_ephemeral[slot] - nodes.requested_ephemeral[slot];
    case Kind::kPods:
      return nodes.allocatable_pods[slot] - nodes.pod_count[slot];
    case Kind::kExtended:
      break;
  }
  const sdk::ExtendedColumn& extended = nodes.extended[column];
  return extended.allocatable[slot] - extended.requested[slot];
}

int64_t Resource::AskedBy(const sdk::Resources& requests) const {
  return kind == Kind::kPods ? 1 : std::max<int64_t>(0, requests.Get(name));
}

void Line::Clear() {
  groups_.Clear();
  turns_.clear();
  turn_of_.clear();
  running_.clear();
  endings_.clear();
  not_started_.clear();
  tried_.clear();
  cached_ = nullptr;
  ++changes_;
}

void Line::SetPod(const sdk::PodRecord& pod) {
  ++changes_;
  groups_.SetPod(pod);
  const std::string& uid = pod.pod.uid();
  if (const auto known = turn_of_.find(uid); known != turn_of_.end()) {
    turns_.erase(known->second);
    turn_of_.erase(known);
  }
  const bool waits = !pod.on_node() && pod.pod.node_name().empty() &&
                     pod.pod.deletion_unix_seconds() == 0 && pod.pod.scheduling_gates().empty() &&
                     pod.pod.scheduler_name() == profile_;
  if (!waits) {
    tried_.erase(uid);
    return;
  }
  const Turn turn = TurnOf(pod.pod);
  turns_.insert(turn);
  turn_of_.emplace(uid, turn);
}

void Line::RemovePod(const sdk::PodRecord& pod) {
  ++changes_;
  groups_.RemovePod(pod);
  tried_.erase(pod.pod.uid());
  malformed_.Forget(absl::StrCat("pod ", pod.pod.namespace_(), "/", pod.pod.name()));
  const auto known = turn_of_.find(pod.pod.uid());
  if (known == turn_of_.end()) return;
  turns_.erase(known->second);
  turn_of_.erase(known);
}

void Line::PodOnNode(const sdk::PodRecord& pod, sdk::Slot slot) {
  ++changes_;
  const std::string& uid = pod.pod.uid();
  Running& running = running_[uid];
  running = {&pod, slot, RunTimeOf(pod.pod), std::nullopt};
  if (running.run_time.has_started()) {
    running.end = running.run_time.EndAt(absl::InfinitePast(), absl::ZeroDuration());
    if (running.end) endings_.insert({*running.end, uid});
  } else if (running.run_time.run) {
    not_started_.insert(uid);
  }
}

void Line::PodOffNode(const sdk::PodRecord& pod) {
  ++changes_;
  ++releases_;
  const auto running = running_.find(pod.pod.uid());
  if (running == running_.end()) return;
  if (running->second.end) endings_.erase({*running->second.end, running->first});
  not_started_.erase(running->first);
  running_.erase(running);
}

void Line::SetObject(const v1alpha1::ClusterObject& object) {
  if (groups_.SetObject(object).group != nullptr) ++changes_;
}

void Line::RemoveObject(const v1alpha1::ClusterObject& object) {
  groups_.RemoveObject(object);
  ++changes_;
}

RunTime Line::RunTimeOf(const v1alpha1::Pod& pod) const {
  return ReadRunTime(pod, options_.default_run_time, &malformed_);
}

Turn Line::TurnOf(const v1alpha1::Pod& pod) const {
  const std::optional<sdk::GroupRef> ref = sdk::GroupOf(pod);
  return {-int64_t{pod.priority()}, pod.creation_unix_seconds(), pod.namespace_(),
          ref ? ref->key.name : pod.name(), pod.uid()};
}

std::string Line::UnitIdOf(const v1alpha1::Pod& pod) const {
  const std::optional<sdk::GroupRef> ref = sdk::GroupOf(pod);
  if (!ref || !groups_.SpecFor(*ref).min) return pod.uid();
  return absl::StrCat(ref->key.Text(), "\n", ref->key.controller_uid);
}

Unit Line::UnitOf(const sdk::PodRecord& pod) const {
  Unit unit;
  unit.id = UnitIdOf(pod.pod);
  const std::optional<sdk::GroupRef> ref = sdk::GroupOf(pod.pod);
  const sdk::GroupSpec* const spec = ref ? &groups_.SpecFor(*ref) : nullptr;
  if (spec != nullptr && (spec->not_found || !spec->fault.empty())) unit.complete = false;
  const sdk::Group* const group = ref ? groups_.Find(ref->key) : nullptr;
  if (spec == nullptr || !spec->min || group == nullptr) {
    unit.name = absl::StrCat(pod.pod.namespace_(), "/", pod.pod.name());
    unit.pending = {&pod};
    return unit;
  }
  unit.name = absl::StrCat(ref->key.ns, "/", ref->key.name);
  unit.is_group = true;
  unit.size = spec->min->value;
  for (const auto& [uid, member] : group->members) {
    if (member.state != sdk::MemberState::kPending) continue;
    const sdk::PodRecord* const record = cluster_.FindPod(uid);
    if (record != nullptr && record->pod.scheduler_name() == profile_)
      unit.pending.push_back(record);
  }
  std::sort(unit.pending.begin(), unit.pending.end(),
            [](const auto* a, const auto* b) { return a->pod.uid() < b->pod.uid(); });
  const int64_t missing = unit.size - group->placed();
  const auto pending = static_cast<int64_t>(unit.pending.size());
  if (missing > pending) unit.complete = false;
  unit.needed = std::clamp<int64_t>(missing, 1, std::max<int64_t>(1, pending));
  return unit;
}

void Line::NoteTrial(const std::string& uid) {
  const auto [tried, first] = tried_.try_emplace(uid, releases_);
  if (!first && tried->second == releases_) return;
  tried->second = releases_;
  ++changes_;
}

bool Line::AllTried(const Unit& unit) const {
  return std::all_of(unit.pending.begin(), unit.pending.end(), [&](const auto* pod) {
    const auto tried = tried_.find(pod->pod.uid());
    return tried != tried_.end() && tried->second == releases_;
  });
}

bool Line::ResourcesOf(const Unit& unit, std::vector<Resource>* resources) const {
  using Kind = Resource::Kind;
  const sdk::NodeTable& nodes = cluster_.nodes();
  std::map<std::string, Resource> wanted;
  bool cpu = false, memory = false, ephemeral = false;
  for (const sdk::PodRecord* pod : unit.pending) {
    const sdk::Resources& requests = pod->usage.requests;
    cpu |= requests.cpu_millis > 0;
    memory |= requests.memory_bytes > 0;
    ephemeral |= requests.ephemeral_storage_bytes > 0;
    for (const auto& [name, amount] : requests.extended) {
      if (amount <= 0 || !sdk::IsScalarResourceName(name)) continue;
      const auto column = nodes.extended_by_name.find(name);
      if (column == nodes.extended_by_name.end()) return false;
      wanted[name] = {name, Kind::kExtended, column->second};
    }
  }
  resources->push_back({"pods", Kind::kPods});
  if (ephemeral) resources->push_back({"ephemeral-storage", Kind::kEphemeral});
  if (memory) resources->push_back({"memory", Kind::kMemory});
  if (cpu) resources->push_back({"cpu", Kind::kCpu});
  for (auto& [name, resource] : wanted) resources->push_back(std::move(resource));
  return true;
}

std::vector<Demand> Line::DemandsOf(const Unit& unit,
                                    const std::vector<Resource>& resources) const {
  // By what they ask for, and where they may go.
  std::map<std::pair<Amounts, std::string>, std::pair<const sdk::PodRecord*, int64_t>> kinds;
  for (const sdk::PodRecord* pod : unit.pending) {
    Amounts each;
    for (const Resource& resource : resources)
      each.push_back(resource.AskedBy(pod->usage.requests));
    auto& [first, count] = kinds[{std::move(each), PlacesOf(pod->pod)}];
    if (first == nullptr) first = pod;
    ++count;
  }
  std::vector<Demand> demands;
  for (const auto& [kind, members] : kinds)
    demands.push_back({kind.first, members.second, MayUse(members.first->pod, cluster_)});
  std::stable_sort(demands.begin(), demands.end(), [&](const Demand& a, const Demand& b) {
    return SizeOf(resources, a.each) > SizeOf(resources, b.each);
  });
  int64_t left = unit.needed;
  for (Demand& demand : demands) left -= demand.count = std::min(demand.count, left);
  return demands;
}

Rooms Line::FreeRooms(const std::vector<Resource>& resources) const {
  const sdk::NodeTable& nodes = cluster_.nodes();
  Rooms free(nodes.occupied.size(), resources.size());
  for (const sdk::Slot slot : cluster_.node_order()) {
    int64_t* const amounts = free.At(slot);
    for (size_t r = 0; r < resources.size(); ++r) amounts[r] = resources[r].Free(nodes, slot);
  }
  return free;
}

int64_t Line::CountThatFitNow(const Unit& unit, const Reservation* others) const {
  std::vector<Resource> resources;
  if (!ResourcesOf(unit, &resources)) return 0;
  Rooms free = FreeRooms(resources);
  if (others != nullptr) {
    for (const Reservation::Node& node : others->nodes) {
      for (size_t r = 0; r < resources.size(); ++r) {
        for (size_t k = 0; k < others->resources.size(); ++k) {
          if (others->resources[k].name != resources[r].name) continue;
          int64_t& amount = free.At(node.slot)[r];
          amount = std::min(amount, others->Spare(cluster_.nodes(), node, k));
        }
      }
    }
  }
  return PlaceAll(DemandsOf(unit, resources), std::move(free));
}

std::shared_ptr<const Reservation> Line::ReserveFor(const Unit& unit, const Turn& turn,
                                                    absl::Time now) const {
  auto reservation = std::make_shared<Reservation>();
  if (!ResourcesOf(unit, &reservation->resources)) return nullptr;
  const std::vector<Resource>& resources = reservation->resources;

  std::vector<const Running*> ending;
  std::vector<Release> releases;
  const auto add = [&](absl::Time when, const Running& running) {
    releases.push_back({when, running.slot, nullptr});
    ending.push_back(&running);
  };
  // Those of which nothing is known but that they run still, or are about to; then the others, in
  // order.
  for (const std::string& uid : not_started_) {
    const Running& running = running_.at(uid);
    add(now + *running.run_time.run, running);
  }
  for (const auto& [when, uid] : endings_) {
    const Running& running = running_.at(uid);
    add(*running.run_time.EndAt(now, options_.overrun), running);
  }
  std::vector<int64_t> amounts(releases.size() * resources.size());
  for (size_t i = 0; i < releases.size(); ++i) {
    int64_t* const its = amounts.data() + i * resources.size();
    for (size_t r = 0; r < resources.size(); ++r)
      its[r] = resources[r].AskedBy(ending[i]->pod->usage.requests);
    releases[i].amounts = its;
  }
  std::stable_sort(releases.begin(), releases.end(),
                   [](const Release& a, const Release& b) { return a.when < b.when; });

  const std::optional<ShadowSchedule> schedule =
      FindShadow(FreeRooms(resources), releases, DemandsOf(unit, resources), now);
  if (!schedule || (schedule->when <= now && AllTried(unit))) return nullptr;
  reservation->unit_id = unit.id;
  reservation->unit_name = unit.name;
  reservation->turn = turn;
  reservation->when = schedule->when;
  reservation->node_at.assign(cluster_.nodes().occupied.size(), -1);
  for (const KeptRoom& room : schedule->nodes) {
    reservation->node_at[room.node] = static_cast<int32_t>(reservation->nodes.size());
    reservation->nodes.push_back({static_cast<sdk::Slot>(room.node), room.kept, room.released});
  }
  return reservation;
}

std::shared_ptr<const Reservation> Line::Reserve(absl::Time now) const {
  absl::flat_hash_set<std::string> seen;
  int looked = 0;
  for (const Turn& turn : turns_) {
    const sdk::PodRecord* const pod = cluster_.FindPod(turn.uid);
    if (pod == nullptr || !seen.insert(UnitIdOf(pod->pod)).second) continue;
    if (++looked > kMaxLooked) break;
    const Unit unit = UnitOf(*pod);
    if (!unit.complete) continue;
    if (auto reservation = ReserveFor(unit, turn, now)) return reservation;
  }
  return nullptr;
}

std::shared_ptr<const Reservation> Line::ReservationAt(absl::Time now) const {
  const uint64_t table = cluster_.nodes().version;
  if (table != cached_table_ || changes_ != cached_changes_ || now < cached_at_ ||
      now - cached_at_ >= kMaxAge) {
    cached_ = Reserve(now);
    cached_table_ = table;
    cached_changes_ = changes_;
    cached_at_ = now;
  }
  return cached_;
}

}  // namespace outboard::backfill
