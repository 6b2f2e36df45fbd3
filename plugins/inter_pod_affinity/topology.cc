#include "plugins/inter_pod_affinity/topology.h"

#include <utility>

namespace outboard::inter_pod_affinity {

using sdk::Slot;
using sdk::StringTable;

uint32_t Topology::ValueOf(const sdk::NodeView& node) {
  if (key_id_ == StringTable::kNone) key_id_ = node.table().label_keys.Find(key_);
  return key_id_ == StringTable::kNone ? StringTable::kNone : node.LabelValueId(key_id_);
}

bool Topology::Moves(const sdk::NodeView& node) {
  const uint32_t value = ValueOf(node);
  const uint32_t domain = DomainOf(node.slot());
  return domain == kNoDomain ? value != StringTable::kNone : value != values_[domain];
}

void Topology::Update(const sdk::NodeView& node) {
  const Slot slot = node.slot();
  if (slot >= domains_.size()) domains_.resize(slot + 1, kNoDomain);
  const uint32_t value = ValueOf(node);
  if (value == StringTable::kNone) {
    domains_[slot] = kNoDomain;
    return;
  }
  auto [it, inserted] = domain_of_value_.try_emplace(value, size());
  if (inserted) values_.push_back(value);
  domains_[slot] = it->second;
}

std::shared_ptr<const Topology> Topologies::Get(const std::string& key) {
  std::weak_ptr<Topology>& held = held_[key];
  if (std::shared_ptr<Topology> topology = held.lock()) return topology;
  std::shared_ptr<Topology> topology(new Topology(key));
  for (Slot slot : cluster_.nodes().order) topology->Update(cluster_.node(slot));
  held = topology;
  return topology;
}

bool Topologies::Moves(Slot slot) {
  const sdk::NodeView node = cluster_.node(slot);
  for (auto& [key, held] : held_) {
    std::shared_ptr<Topology> topology = held.lock();
    if (topology != nullptr && topology->Moves(node)) return true;
  }
  return false;
}

void Topologies::Update(Slot slot) {
  const sdk::NodeView node = cluster_.node(slot);
  for (auto& [key, held] : held_) {
    if (std::shared_ptr<Topology> topology = held.lock()) topology->Update(node);
  }
}

void Topologies::Sweep() {
  absl::erase_if(held_, [](const auto& entry) { return entry.second.expired(); });
}

void DomainCounts::Add(uint32_t domain, int32_t count, int64_t weight) {
  if (domain == kNoDomain) return;
  auto [it, inserted] = position_.try_emplace(domain, static_cast<uint32_t>(cells_.size()));
  if (inserted) cells_.push_back({domain, 0, 0});
  Cell& cell = cells_[it->second];
  cell.count += count;
  cell.weight += weight;
  if (cell.count != 0) return;
  // Moves the last cell to the position of the removed cell.
  const uint32_t place = it->second;
  position_.erase(it);
  if (place + 1 != cells_.size()) {
    cells_[place] = cells_.back();
    position_[cells_[place].domain] = place;
  }
  cells_.pop_back();
}

}  // namespace outboard::inter_pod_affinity
