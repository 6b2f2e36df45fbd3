#include "plugins/backfill/endings.h"

#include <algorithm>
#include <tuple>

namespace outboard::backfill {

Endings::Entry Endings::EntryOf(const Placed& placed) {
  const sdk::PodRecord& pod = *placed.pod;
  const sdk::Resources& asked = pod.usage.requests;
  Entry entry;
  if (const auto end = placed.run_time.FixedEnd()) {
    entry.when = *end;
  } else if (placed.run_time.run) {
    entry.when = absl::UnixEpoch() + *placed.run_time.run;
  }
  entry.placed = &placed;
  entry.preemptible = placed.run_time.preemptible;
  entry.everywhere = pod.pod.controller().kind() == "DaemonSet";
  entry.several = pod.extended.size() > 1;
  if (!pod.extended.empty()) std::tie(entry.column, entry.extended) = pod.extended[0];
  entry.cpu = asked.cpu_millis;
  entry.memory = asked.memory_bytes;
  entry.ephemeral = asked.ephemeral_storage_bytes;
  return entry;
}

std::vector<Endings::Entry>& Endings::ListOf(const RunTime& run_time, OnNode* node) {
  return run_time.FixedEnd() ? node->started : run_time.run ? node->not_started : node->endless;
}

int64_t Endings::Entry::AskedBy(const Resource& resource) const {
  switch (resource.kind) {
    case Resource::Kind::kCpu:
      return std::max<int64_t>(0, cpu);
    case Resource::Kind::kMemory:
      return std::max<int64_t>(0, memory);
    case Resource::Kind::kEphemeral:
      return std::max<int64_t>(0, ephemeral);
    case Resource::Kind::kPods:
      return 1;
    case Resource::Kind::kExtended:
      break;
  }
  if (several) return resource.AskedBy(*placed->pod);
  return resource.column == column ? std::max<int64_t>(0, extended) : 0;
}

bool Endings::Entry::UsesTheSameAs(const sdk::PodRecord& pod) const {
  bool asks = false;
  for (const auto& [wanted, amount] : pod.extended) {
    if (amount <= 0) continue;
    asks = true;
    if (!several) {
      if (extended > 0 && column == wanted) return true;
      continue;
    }
    for (const auto& [its, used] : placed->pod->extended)
      if (its == wanted && used > 0) return true;
  }
  return !asks && !everywhere;
}

void Endings::Clear() {
  nodes_.clear();
  borrowers_.clear();
  placed_.clear();
  unknown_ = 0;
}

void Endings::Set(const sdk::PodRecord& pod, RunTime run_time) {
  const std::string& uid = pod.pod.uid();
  Drop(uid);
  auto placed = std::make_unique<Placed>(
      Placed{&pod, std::move(run_time), pod.on_node() ? pod.slot : sdk::kNoSlot});
  if (placed->slot != sdk::kNoSlot) {
    if (nodes_.size() <= placed->slot) nodes_.resize(placed->slot + size_t{1});
    std::vector<Entry>& list = ListOf(placed->run_time, &nodes_[placed->slot]);
    const Entry entry = EntryOf(*placed);
    list.insert(std::lower_bound(list.begin(), list.end(), entry), entry);
    unknown_ += &list == &nodes_[placed->slot].endless;
    if (placed->run_time.preemptible) borrowers_[uid] = placed.get();
  }
  placed_[uid] = std::move(placed);
}

void Endings::Drop(const std::string& uid) {
  const auto known = placed_.find(uid);
  if (known == placed_.end()) return;
  const Placed& placed = *known->second;
  if (placed.slot != sdk::kNoSlot) {
    std::vector<Entry>& list = ListOf(placed.run_time, &nodes_[placed.slot]);
    std::erase_if(list, [&](const Entry& entry) { return entry.placed == &placed; });
    unknown_ -= &list == &nodes_[placed.slot].endless;
  }
  borrowers_.erase(uid);
  placed_.erase(known);
}

const Endings::Placed* Endings::Find(const std::string& uid) const {
  const auto known = placed_.find(uid);
  return known == placed_.end() ? nullptr : known->second.get();
}

std::vector<const sdk::PodRecord*> Endings::Overrunning(absl::Time now,
                                                        absl::Duration overrun) const {
  std::vector<const sdk::PodRecord*> pods;
  for (const OnNode& node : nodes_) {
    for (const Entry& entry : node.started) {
      if (entry.when > now) break;
      if (entry.placed->run_time.Overran(now, overrun)) pods.push_back(entry.placed->pod);
    }
  }
  return pods;
}

bool Endings::TakesBackAny(const Ends& ends) const {
  return std::any_of(borrowers_.begin(), borrowers_.end(), [&](const auto& borrower) {
    const Placed& placed = *borrower.second;
    return ends.TakesBack(placed.run_time, placed.pod->pod.priority());
  });
}

void Endings::Visit(sdk::Slot slot, const Ends& ends, const std::vector<Resource>& resources,
                    VisitRelease visit) const {
  if (slot >= nodes_.size()) return;
  const OnNode& node = nodes_[slot];
  constexpr size_t kMost = 8;
  int64_t few[kMost];
  Amounts many;
  if (resources.size() > kMost) many.resize(resources.size());
  int64_t* const amounts = many.empty() ? few : many.data();
  const auto tell = [&](const Entry& entry, absl::Time when) {
    for (size_t r = 0; r < resources.size(); ++r) amounts[r] = entry.AskedBy(resources[r]);
    return visit(when, amounts);
  };
  // Most nodes have only pods that end as declared.
  const bool plain = !ends.take_back_below && node.not_started.empty() &&
                     (node.started.empty() || node.started.front().when > ends.now);
  if (plain) {
    for (const Entry& entry : node.started)
      if (!tell(entry, entry.when)) return;
    return;
  }
  std::vector<std::pair<absl::Time, const Entry*>> in_order;
  for (const std::vector<Entry>* list : {&node.started, &node.not_started, &node.endless}) {
    for (const Entry& entry : *list) {
      const Placed& placed = *entry.placed;
      const auto end = ends.take_back_below && entry.preemptible
                           ? ends.Of(placed.run_time, placed.pod->pod.priority())
                           : placed.run_time.EndAt(ends.now, ends.overrun);
      if (end) in_order.emplace_back(*end, &entry);
    }
  }
  std::stable_sort(in_order.begin(), in_order.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [when, entry] : in_order)
    if (!tell(*entry, when)) return;
}

absl::Time Endings::InUseUntil(sdk::Slot slot, const sdk::PodRecord& by, const Ends& ends) const {
  absl::Time until = ends.now;
  if (slot >= nodes_.size()) return until;
  const OnNode& node = nodes_[slot];
  const auto uses = [&](const Entry& entry) { return entry.UsesTheSameAs(by); };
  if (std::any_of(node.endless.begin(), node.endless.end(), uses)) return absl::InfiniteFuture();
  for (const std::vector<Entry>* list : {&node.started, &node.not_started}) {
    const auto latest = std::find_if(list->rbegin(), list->rend(), uses);
    if (latest == list->rend()) continue;
    // Of a pod whose time is over, the next loop finds the end.
    if (const auto end = latest->placed->run_time.EndAt(ends.now, ends.overrun))
      until = std::max(until, *end);
  }
  for (const Entry& entry : node.started) {
    if (entry.when > ends.now) break;
    if (!uses(entry)) continue;
    const auto end = entry.placed->run_time.EndAt(ends.now, ends.overrun);
    if (!end) return absl::InfiniteFuture();
    until = std::max(until, *end);
  }
  return until;
}

}  // namespace outboard::backfill
