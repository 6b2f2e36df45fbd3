#include "plugin_host/cache/cluster_cache.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "plugin_host/sdk/resources.h"

namespace outboard::host_cache {
namespace {

using sdk::kNoSlot;
using sdk::PodRecord;
using sdk::Slot;

// A slot beyond this is a fault of the shim; columns of that size would need gigabytes.
constexpr Slot kMaxSlot = 1 << 20;

absl::Status Bad(std::string message) { return absl::FailedPreconditionError(std::move(message)); }

// Host ports of containers and sidecars.
std::vector<sdk::HostPort> HostPortsOf(const v1beta1::Pod& pod) {
  std::vector<sdk::HostPort> ports;
  auto container_ports = [&](const v1beta1::Container& container) {
    for (const auto& port : container.ports()) {
      if (port.host_port() <= 0) continue;
      sdk::HostPort host_port;
      host_port.ip = port.host_ip().empty() ? "0.0.0.0" : port.host_ip();
      host_port.protocol = port.protocol() == v1beta1::PROTOCOL_UNSPECIFIED ? v1beta1::PROTOCOL_TCP
                                                                            : port.protocol();
      host_port.port = port.host_port();
      ports.push_back(std::move(host_port));
    }
  };
  for (const auto& container : pod.containers()) container_ports(container);
  for (const auto& container : pod.init_containers()) {
    if (container.restart_policy_always()) container_ports(container);
  }
  return ports;
}

template <typename T>
void EraseValue(std::vector<T>* values, const T& value) {
  auto it = std::find(values->begin(), values->end(), value);
  if (it != values->end()) values->erase(it);
}

// The last pod moves to the removed pod's position, as in kube-scheduler.
bool TakeOff(std::vector<PodRecord*>* pods, PodRecord* pod) {
  auto it = std::find(pods->begin(), pods->end(), pod);
  if (it == pods->end()) return false;
  *it = pods->back();
  pods->pop_back();
  return true;
}

}  // namespace

ClusterCache::ClusterCache() { Reset(); }

void ClusterCache::Reset() {
  const uint64_t version = nodes_.version;
  for (sdk::ClusterObserver* observer : observers_) observer->OnReset();
  sdk::NodeChanges changes = std::move(nodes_.changes);
  changes.AddAll();
  nodes_ = sdk::NodeTable();
  nodes_.changes = std::move(changes);
  nodes_.version = version + 1;
  ++room_version_;
  ++surroundings_version_;
  nominations_ = 0;
  nodes_.taint_sets.emplace_back();
  taint_set_ids_ = {{"", 0}};
  pods_.clear();
  namespaces_.clear();
  objects_.Clear();
  ghosts_.clear();
  version_ = 0;
  complete_ = false;
  in_snapshot_ = false;
}

absl::Status ClusterCache::Apply(const v1beta1::SyncRequest& request, absl::Time now) {
  if (request.version() < 1) return Bad("version must be at least 1");
  switch (request.phase()) {
    case v1beta1::SyncRequest::PHASE_SNAPSHOT_BEGIN:
      Reset();
      in_snapshot_ = true;
      version_ = request.version();
      break;
    case v1beta1::SyncRequest::PHASE_SNAPSHOT_MORE:
    case v1beta1::SyncRequest::PHASE_SNAPSHOT_END:
      if (!in_snapshot_) return Bad("a chunk of a snapshot without SNAPSHOT_BEGIN");
      if (request.version() != version_) return Bad("chunks of a snapshot differ in version");
      break;
    case v1beta1::SyncRequest::PHASE_DELTA:
      if (!complete_) return Bad("a change before a complete snapshot");
      if (request.version() < version_) {
        return Bad(absl::StrCat("version decreases from ", version_, " to ", request.version()));
      }
      break;
    default:
      return Bad("unknown phase");
  }
  for (const v1beta1::Change& change : request.changes()) {
    if (absl::Status status = ApplyChange(change, now); !status.ok()) {
      complete_ = in_snapshot_ = false;
      return status;
    }
  }
  if (request.has_node_order()) {
    if (absl::Status status = ApplyNodeOrder(request.node_order()); !status.ok()) {
      complete_ = in_snapshot_ = false;
      return status;
    }
  }
  version_ = request.version();
  ++nodes_.version;
  if (request.phase() == v1beta1::SyncRequest::PHASE_SNAPSHOT_END) {
    in_snapshot_ = false;
    complete_ = true;
  }
  return absl::OkStatus();
}

absl::Status ClusterCache::ApplyChange(const v1beta1::Change& change, absl::Time now) {
  if (!change.has_pod_upsert() && !change.has_pod_remove() && !change.has_pod_placement())
    ++surroundings_version_;
  switch (change.change_case()) {
    case v1beta1::Change::kNodeUpsert:
      return ApplyNodeUpsert(change.node_upsert());
    case v1beta1::Change::kNodeRemove:
      return ApplyNodeRemove(change.node_remove());
    case v1beta1::Change::kPodUpsert:
      return ApplyPodUpsert(change.pod_upsert());
    case v1beta1::Change::kPodRemove:
      return ApplyPodRemove(change.pod_remove());
    case v1beta1::Change::kPodPlacement:
      return ApplyPlacement(change.pod_placement(), now);
    case v1beta1::Change::kNamespaceUpsert: {
      const v1beta1::Namespace& ns = change.namespace_upsert().namespace_();
      namespaces_[ns.name()] = {ns.labels().begin(), ns.labels().end()};
      ++room_version_;
      for (auto* observer : observers_) observer->OnNamespaceChanged(ns.name());
      return absl::OkStatus();
    }
    case v1beta1::Change::kNamespaceRemove:
      namespaces_.erase(change.namespace_remove().name());
      ++room_version_;
      for (auto* observer : observers_) {
        observer->OnNamespaceChanged(change.namespace_remove().name());
      }
      return absl::OkStatus();
    case v1beta1::Change::kObjectUpsert:
      ApplyObjectUpsert(change.object_upsert());
      return absl::OkStatus();
    case v1beta1::Change::kObjectRemove:
      ApplyObjectRemove(change.object_remove());
      return absl::OkStatus();
    case v1beta1::Change::CHANGE_NOT_SET:
      return absl::OkStatus();  // A kind of a later contract.
  }
  return absl::OkStatus();
}

absl::Status ClusterCache::ApplyNodeUpsert(const v1beta1::NodeUpsert& upsert) {
  const Slot slot = upsert.slot();
  const v1beta1::Node& node = upsert.node();
  if (slot > kMaxSlot) return Bad(absl::StrCat("slot ", slot, " is out of range"));
  if (node.name().empty()) return Bad("a node without a name");
  GrowTo(slot);
  auto named = nodes_.slot_by_name.find(node.name());
  if (named != nodes_.slot_by_name.end() && named->second != slot) {
    return Bad(absl::StrCat("node ", node.name(), " is already in slot ", named->second));
  }
  const bool is_new = nodes_.occupied[slot] == 0;
  const v1beta1::Node& old = nodes_.nodes[slot];
  if (!is_new && (old.uid() != node.uid() || old.name() != node.name())) {
    return Bad(absl::StrCat("slot ", slot, " is occupied by ", nodes_.nodes[slot].name()));
  }
  SetImages(slot, &node);
  SetNodeColumns(slot, node);
  if (is_new) {
    nodes_.occupied[slot] = 1;
    nodes_.slot_by_name[node.name()] = slot;
    nodes_.order.push_back(slot);
    nodes_.order_generation = ++clock_;
  }
  Touch(slot);
  for (auto* observer : observers_) observer->OnNodeChanged(slot);
  if (is_new) AdoptGhosts(slot, node.name());
  return absl::OkStatus();
}

absl::Status ClusterCache::ApplyNodeRemove(const v1beta1::NodeRemove& remove) {
  const Slot slot = remove.slot();
  if (slot >= nodes_.occupied.size() || !nodes_.occupied[slot]) {
    return Bad(absl::StrCat("no node in slot ", slot));
  }
  const std::string name = nodes_.nodes[slot].name();
  while (!nodes_.pods[slot].empty()) {
    PodRecord* pod = nodes_.pods[slot].back();
    UnlinkPod(pod, slot);
    pod->slot = kNoSlot;
    ghosts_[name].push_back(pod);
  }
  while (!nodes_.nominated[slot].empty()) {
    Place(nodes_.nominated[slot].back(), sdk::Place::kNone, kNoSlot);
  }
  SetImages(slot, nullptr);
  SetNodeColumns(slot, v1beta1::Node());
  nodes_.occupied[slot] = 0;
  nodes_.slot_by_name.erase(name);
  EraseValue(&nodes_.order, slot);
  nodes_.order_generation = ++clock_;
  Touch(slot);
  for (auto* observer : observers_) observer->OnNodeRemoved(slot, name);
  return absl::OkStatus();
}

void ClusterCache::AdoptGhosts(Slot slot, const std::string& name) {
  auto it = ghosts_.find(name);
  if (it == ghosts_.end()) return;
  const std::vector<PodRecord*> pods = std::move(it->second);
  ghosts_.erase(it);
  for (PodRecord* pod : pods) {
    pod->slot = slot;
    LinkPod(pod, slot);
  }
}

absl::Status ClusterCache::ApplyPodUpsert(const v1beta1::PodUpsert& upsert) {
  const v1beta1::Pod& proto = upsert.pod();
  if (proto.uid().empty()) return Bad("a pod without a uid");
  std::unique_ptr<PodRecord>& record = pods_[proto.uid()];
  if (record == nullptr) record = std::make_unique<PodRecord>();
  PodRecord* pod = record.get();
  const sdk::Place place = pod->place;
  const Slot slot = pod->slot;
  Place(pod, sdk::Place::kNone, kNoSlot);

  pod->pod = proto;
  pod->usage = sdk::ComputePodUsage(proto);
  pod->extended.clear();
  for (const auto& [name, amount] : pod->usage.requests.extended) {
    pod->extended.emplace_back(ExtendedColumn(name), amount);
  }
  pod->host_ports = HostPortsOf(proto);
  pod->generation = ++clock_;

  if (!proto.node_name().empty()) {
    pod->waits.clear();
    pod->effects.clear();
    pod->states.clear();
    auto node = nodes_.slot_by_name.find(proto.node_name());
    if (node != nodes_.slot_by_name.end()) {
      Place(pod, sdk::Place::kBound, node->second);
    } else {
      pod->place = sdk::Place::kBound;
      ghosts_[proto.node_name()].push_back(pod);
    }
  } else if (place != sdk::Place::kBound && slot != kNoSlot) {
    // An update without a node does not remove a place that the shim assumed.
    Place(pod, place, slot);
  }
  for (auto* observer : observers_) observer->OnPodChanged(*pod);
  return absl::OkStatus();
}

absl::Status ClusterCache::ApplyPodRemove(const v1beta1::PodRemove& remove) {
  auto it = pods_.find(remove.uid());
  if (it == pods_.end()) return absl::OkStatus();  // Added and removed between two messages.
  Place(it->second.get(), sdk::Place::kNone, kNoSlot);
  for (auto* observer : observers_) observer->OnPodRemoved(*it->second);
  pods_.erase(it);
  return absl::OkStatus();
}

absl::Status ClusterCache::ApplyPlacement(const v1beta1::PodPlacement& placement, absl::Time now) {
  auto it = pods_.find(placement.uid());
  if (it == pods_.end()) return Bad(absl::StrCat("unknown pod ", placement.uid()));
  PodRecord* pod = it->second.get();
  Slot slot = kNoSlot;
  if (placement.state() != v1beta1::PLACEMENT_STATE_UNPLACED) {
    slot = placement.slot();
    if (slot >= nodes_.occupied.size() || !nodes_.occupied[slot]) {
      return Bad(absl::StrCat("no node in slot ", slot));
    }
  }
  sdk::Place place = sdk::Place::kNone;
  switch (placement.state()) {
    case v1beta1::PLACEMENT_STATE_UNPLACED:
      break;
    case v1beta1::PLACEMENT_STATE_ASSUMED:
      place = sdk::Place::kAssumed;
      break;
    case v1beta1::PLACEMENT_STATE_WAITING:
      place = sdk::Place::kWaiting;
      break;
    case v1beta1::PLACEMENT_STATE_NOMINATED:
      place = sdk::Place::kNominated;
      break;
    case v1beta1::PLACEMENT_STATE_BOUND:
      place = sdk::Place::kBound;
      pod->pod.set_node_name(nodes_.nodes[slot].name());
      break;
    default:
      return Bad("unknown placement state");
  }
  const bool same_node = pod->on_node() && pod->slot == slot && place != sdk::Place::kNone &&
                         place != sdk::Place::kNominated;
  if (same_node) {
    if (pod->place != sdk::Place::kBound) pod->place = place;  // The sums do not change.
  } else {
    Place(pod, place, slot);
  }
  pod->waits.clear();
  pod->waiting_attempt = 0;
  pod->effects.assign(placement.effects().begin(), placement.effects().end());
  pod->states.assign(placement.states().begin(), placement.states().end());
  if (place == sdk::Place::kWaiting) {
    pod->waiting_attempt = placement.attempt_id();
    for (const v1beta1::PluginWait& wait : placement.waits()) {
      pod->waits.push_back({wait.plugin(), now + absl::Microseconds(wait.remaining_micros())});
    }
  }
  for (auto* observer : observers_) observer->OnPodChanged(*pod);
  return absl::OkStatus();
}

void ClusterCache::ApplyObjectUpsert(const v1beta1::ClusterObject& object) {
  const v1beta1::ClusterObject* known = objects_.FindSame(object);
  v1beta1::ClusterObject old;
  if (known != nullptr) old = *known;
  if (!objects_.Upsert(object)) return;  // A kind of a later contract.
  ++room_version_;
  for (auto* observer : observers_) {
    observer->OnObjectChanged(known == nullptr ? nullptr : &old, object);
  }
}

void ClusterCache::ApplyObjectRemove(const v1beta1::ObjectReference& reference) {
  const v1beta1::ClusterObject* known = objects_.FindNamed(reference);
  if (known == nullptr) return;  // Added and removed between two messages.
  const v1beta1::ClusterObject old = *known;
  objects_.Remove(reference);
  ++room_version_;
  for (auto* observer : observers_) observer->OnObjectRemoved(old);
}

absl::Status ClusterCache::ApplyNodeOrder(const v1beta1::NodeOrder& order) {
  std::vector<uint8_t> seen(nodes_.occupied.size(), 0);
  for (Slot slot : order.slots()) {
    if (slot >= seen.size() || !nodes_.occupied[slot] || seen[slot]) {
      return Bad(absl::StrCat("node order has invalid or duplicate slot ", slot));
    }
    seen[slot] = 1;
  }
  if (static_cast<size_t>(order.slots_size()) != nodes_.order.size()) {
    return Bad("node order does not name every node");
  }
  nodes_.order.assign(order.slots().begin(), order.slots().end());
  nodes_.order_generation = ++clock_;
  ++room_version_;
  ++surroundings_version_;
  return absl::OkStatus();
}

void ClusterCache::Place(PodRecord* pod, sdk::Place place, Slot slot) {
  if (pod->place == sdk::Place::kNominated && pod->slot != kNoSlot) {
    EraseValue(&nodes_.nominated[pod->slot], pod);
    --nodes_.nominated_count[pod->slot];
    --nominations_;
    Touch(pod->slot);
  } else if (pod->on_node()) {
    UnlinkPod(pod, pod->slot);
  } else if (pod->place != sdk::Place::kNone) {
    for (auto it = ghosts_.begin(); it != ghosts_.end(); ++it) {
      EraseValue(&it->second, pod);
      if (it->second.empty()) {
        ghosts_.erase(it);
        break;
      }
    }
  }
  pod->place = place;
  pod->slot = slot;
  if (place == sdk::Place::kNominated) {
    nodes_.nominated[slot].push_back(pod);
    ++nodes_.nominated_count[slot];
    ++nominations_;
    Touch(slot);
  } else if (pod->on_node()) {
    LinkPod(pod, slot);
  }
}

void ClusterCache::LinkPod(PodRecord* pod, Slot slot) {
  nodes_.pods[slot].push_back(pod);
  AddSums(*pod, slot, 1);
  for (auto* observer : observers_) observer->OnPodAddedToNode(*pod, slot);
}

void ClusterCache::UnlinkPod(PodRecord* pod, Slot slot) {
  for (auto* observer : observers_) observer->OnPodRemovedFromNode(*pod, slot);
  if (TakeOff(&nodes_.pods[slot], pod)) AddSums(*pod, slot, -1);
}

void ClusterCache::AddSums(const PodRecord& pod, Slot slot, int64_t sign) {
  const sdk::Resources& requests = pod.usage.requests;
  nodes_.requested_cpu[slot] += sign * requests.cpu_millis;
  nodes_.requested_memory[slot] += sign * requests.memory_bytes;
  nodes_.requested_ephemeral[slot] += sign * requests.ephemeral_storage_bytes;
  nodes_.nonzero_cpu[slot] += sign * pod.usage.nonzero_cpu_millis;
  nodes_.nonzero_memory[slot] += sign * pod.usage.nonzero_memory_bytes;
  nodes_.pod_count[slot] += sign;
  for (const auto& [column, amount] : pod.extended) {
    nodes_.extended[column].requested[slot] += sign * amount;
  }
  std::vector<sdk::HostPort>& ports = nodes_.host_ports[slot];
  for (const sdk::HostPort& port : pod.host_ports) {
    if (sign > 0) {
      ports.push_back(port);
    } else {
      EraseValue(&ports, port);
    }
  }
  Touch(slot);
}

void ClusterCache::Touch(Slot slot) {
  nodes_.generation[slot] = ++clock_;
  nodes_.changes.Add(slot);
  ++room_version_;
}

void ClusterCache::AddObserver(sdk::ClusterObserver* observer) {
  observers_.push_back(observer);
  observer->OnReset();
  for (const auto& [name, labels] : namespaces_) observer->OnNamespaceChanged(name);
  objects_.ForEachObject(
      [&](const v1beta1::ClusterObject& object) { observer->OnObjectChanged(nullptr, object); });
  for (Slot slot : nodes_.order) observer->OnNodeChanged(slot);
  for (const auto& [uid, pod] : pods_) {
    if (pod->on_node()) observer->OnPodAddedToNode(*pod, pod->slot);
    observer->OnPodChanged(*pod);
  }
}

void ClusterCache::RemoveObserver(sdk::ClusterObserver* observer) {
  EraseValue(&observers_, observer);
}

void ClusterCache::Tick(absl::Time now) {
  for (auto* observer : observers_) observer->OnTick(now);
}

void ClusterCache::Trial::Place(const PodRecord& pod, Slot slot) {
  PodRecord* const record = cache_->pods_.find(pod.pod.uid())->second.get();
  placed_.push_back({record, record->place, record->slot});
  cache_->Place(record, sdk::Place::kAssumed, slot);
  ++cache_->nodes_.version;
}

void ClusterCache::Trial::UndoTo(size_t size) {
  for (; placed_.size() > size; placed_.pop_back()) {
    const Placed& last = placed_.back();
    cache_->Place(last.pod, last.place_before, last.slot_before);
    ++cache_->nodes_.version;
  }
  if (placed_.empty()) cache_->room_version_ = room_version_;
}

void ClusterCache::Absence::Remove(const PodRecord& pod) {
  PodRecord* const record = cache_->pods_.find(pod.pod.uid())->second.get();
  order_before_.try_emplace(record->slot, cache_->nodes_.pods[record->slot]);
  removed_[record] = {record->place, record->slot};
  cache_->Place(record, sdk::Place::kNone, kNoSlot);
  ++cache_->nodes_.version;
}

void ClusterCache::Absence::Return(const PodRecord& pod) {
  PodRecord* const record = cache_->pods_.find(pod.pod.uid())->second.get();
  const auto removed = removed_.find(record);
  cache_->Place(record, removed->second.place, removed->second.slot);
  removed_.erase(removed);
  ++cache_->nodes_.version;
}

ClusterCache::Absence::~Absence() {
  while (!removed_.empty()) Return(*removed_.begin()->first);
  for (auto& [slot, pods] : order_before_) cache_->nodes_.pods[slot] = std::move(pods);
  cache_->room_version_ = room_version_;
}

void ClusterCache::Hypothesis::AddPod(PodRecord* pod) {
  cache_->nodes_.pods[slot_].push_back(pod);
  cache_->AddSums(*pod, slot_, 1);
  changes_.emplace_back(pod, 1);
}

void ClusterCache::Hypothesis::RemovePod(PodRecord* pod) {
  std::vector<PodRecord*>& pods = cache_->nodes_.pods[slot_];
  if (order_before_.empty()) order_before_.assign(pods.begin(), pods.begin() + pods_before_);
  if (!TakeOff(&pods, pod)) return;
  cache_->AddSums(*pod, slot_, -1);
  changes_.emplace_back(pod, -1);
}

ClusterCache::Hypothesis::~Hypothesis() {
  for (; !changes_.empty(); changes_.pop_back()) {
    cache_->AddSums(*changes_.back().first, slot_, -changes_.back().second);
  }
  std::vector<PodRecord*>& pods = cache_->nodes_.pods[slot_];
  if (order_before_.empty()) {
    pods.resize(pods_before_);
  } else {
    pods = std::move(order_before_);
  }
}

}  // namespace outboard::host_cache
