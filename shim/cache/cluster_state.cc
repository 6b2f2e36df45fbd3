#include "shim/cache/cluster_state.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "shim/cache/cluster_objects.h"
#include "shim/cache/contract_content.h"

namespace outboard::cache {
namespace {

bool Finished(const kube::PodObject& pod) {
  return pod.phase == "Succeeded" || pod.phase == "Failed";
}

bool SameVersion(const std::string& a, const std::string& b) { return !a.empty() && a == b; }

}  // namespace

ClusterState::ClusterState(size_t max_removed) : log_(this, max_removed) {}
ClusterState::~ClusterState() = default;

// --- Nodes ---

const kube::NodePtr& ClusterState::NodeAt(uint32_t slot) const {
  static const kube::NodePtr kNone;
  return slot < slots_.size() && slots_[slot] != nullptr ? slots_[slot]->record->object : kNone;
}

uint32_t ClusterState::SlotOf(absl::string_view node_name) const {
  const auto it = nodes_.find(node_name);
  return it == nodes_.end() ? kNoSlot : it->second->slot();
}

void ClusterState::Touch(Node& node) { node.generation = ++last_node_generation_; }

uint64_t ClusterState::NodeGeneration(uint32_t slot) const {
  return slot < slots_.size() && slots_[slot] != nullptr ? slots_[slot]->generation : 0;
}

void ClusterState::ForEachPodOn(uint32_t slot,
                                absl::FunctionRef<void(const kube::PodPtr&)> visit) const {
  if (slot >= slots_.size() || slots_[slot] == nullptr) return;
  for (const Pod* pod : slots_[slot]->pods) visit(pod->object);
}

const NodeUsage* ClusterState::UsageOf(absl::string_view node_name) const {
  const auto it = nodes_.find(node_name);
  return it == nodes_.end() ? nullptr : &it->second->usage;
}

ClusterState::Node& ClusterState::NodeNamed(const std::string& name) {
  std::unique_ptr<Node>& node = nodes_[name];
  if (node == nullptr) {
    node = std::make_unique<Node>();
    node->name = name;
  }
  return *node;
}

void ClusterState::DropIfEmpty(Node& node) {
  if (node.record == nullptr && node.pods.empty()) nodes_.erase(std::string(node.name));
}

NodeOutcome ClusterState::UpsertNode(kube::NodePtr object) {
  NodeOutcome outcome;
  Node& node = NodeNamed(object->node.name());
  if (node.record == nullptr) {
    outcome.kind = NodeOutcome::Kind::kAdded;
    EnterSlot(node, std::move(object));
    return outcome;
  }
  outcome.old = node.record->object;
  if (outcome.old->uid() != object->uid()) {
    outcome.kind = NodeOutcome::Kind::kReplaced;
    LeaveSlot(node);
    EnterSlot(node, std::move(object));
    return outcome;
  }
  if (SameVersion(outcome.old->resource_version, object->resource_version)) return outcome;
  outcome.kind = NodeOutcome::Kind::kUpdated;
  Touch(node);
  std::string zone = ZoneKey(object->node);
  if (zone != node.zone) {
    tree_.Remove(node.zone, node.slot());
    node.zone = std::move(zone);
    tree_.Add(node.zone, node.slot());
    log_.NodeOrderChanged();
  }
  const bool same = SameContent(*outcome.old, *object, log_.wanted());
  node.record->object = std::move(object);
  if (!same) log_.ContentChanged(*node.record);
  return outcome;
}

NodeOutcome ClusterState::RemoveNode(absl::string_view name) {
  NodeOutcome outcome;
  const auto it = nodes_.find(name);
  if (it == nodes_.end() || it->second->record == nullptr) return outcome;
  Node& node = *it->second;
  outcome.kind = NodeOutcome::Kind::kRemoved;
  outcome.old = node.record->object;
  LeaveSlot(node);
  DropIfEmpty(node);
  return outcome;
}

void ClusterState::EnterSlot(Node& node, kube::NodePtr object) {
  ++nodes_generation_;
  uint32_t slot = static_cast<uint32_t>(slots_.size());
  if (free_slots_.empty()) {
    slots_.push_back(&node);
  } else {
    std::pop_heap(free_slots_.begin(), free_slots_.end(), std::greater<>());
    slot = free_slots_.back();
    free_slots_.pop_back();
    slots_[slot] = &node;
  }
  Touch(node);
  node.zone = ZoneKey(object->node);
  node.record = std::make_unique<NodeRecord>(slot);
  node.record->object = std::move(object);
  tree_.Add(node.zone, slot);
  log_.Created(*node.record);
  log_.NodeOrderChanged();
  LogNodeAdded(node);
}

void ClusterState::LeaveSlot(Node& node) {
  ++nodes_generation_;
  const uint32_t slot = node.slot();
  tree_.Remove(node.zone, slot);
  slots_[slot] = nullptr;
  free_slots_.push_back(slot);
  std::push_heap(free_slots_.begin(), free_slots_.end(), std::greater<>());
  log_.NodeOrderChanged();
  node.record->object = nullptr;
  log_.Removed(std::move(node.record));
  LogNodeRemoved(node);
}

void ClusterState::LogNodeAdded(Node& node) {
  for (Pod* pod : node.pods) {
    if (pod->state == Pod::State::kBound) {
      pod->bound_as_foreseen = false;
      log_.ContentAndPlacementChanged(*pod);
    } else {
      log_.PlacementChanged(*pod);
    }
  }
  LogNominations(node);
}

void ClusterState::LogNodeRemoved(Node& node) {
  // Pods that hosts know to be bound there need no change: the node's removal implies theirs.
  for (Pod* pod : node.pods) {
    if (pod->state == Pod::State::kAssumed) {
      log_.PlacementChanged(*pod);
    } else if (pod->bound_as_foreseen) {
      pod->bound_as_foreseen = false;
      log_.ContentAndPlacementChanged(*pod);
    }
  }
  LogNominations(node);
}

void ClusterState::LogNominations(const Node& node) {
  for (Pod* pod : nominated_) {
    if (pod->nominated_node == node.name) log_.PlacementChanged(*pod);
  }
}

// --- Pods ---

ClusterState::Pod* ClusterState::Find(absl::string_view uid) const {
  const auto it = pods_.find(uid);
  return it == pods_.end() ? nullptr : it->second.get();
}

kube::PodPtr ClusterState::FindPod(absl::string_view uid) const {
  const Pod* pod = Find(uid);
  return pod == nullptr ? nullptr : pod->object;
}

kube::PodPtr ClusterState::FindPodNamed(absl::string_view key) const {
  const auto it = pods_by_name_.find(key);
  return it == pods_by_name_.end() ? nullptr : it->second->object;
}

std::string ClusterState::NodeOf(absl::string_view uid) const {
  const Pod* pod = Find(uid);
  return pod == nullptr || pod->node == nullptr ? "" : pod->node->name;
}

bool ClusterState::IsAssumed(absl::string_view uid) const {
  const Pod* pod = Find(uid);
  return pod != nullptr && pod->state == Pod::State::kAssumed;
}

void ClusterState::ForEachPod(absl::FunctionRef<void(const kube::PodPtr&, bool)> visit) const {
  for (const auto& [uid, pod] : pods_) visit(pod->object, pod->state == Pod::State::kAssumed);
}

void ClusterState::Place(Pod& pod, Node& node) {
  pod.node = &node;
  pod.index_in_node = node.pods.size();
  node.pods.push_back(&pod);
  node.usage.Add(pod.demand);
  Touch(node);
}

void ClusterState::Unplace(Pod& pod) {
  if (pod.node == nullptr) return;
  Node& node = *pod.node;
  node.usage.Remove(pod.demand);
  Touch(node);
  node.pods[pod.index_in_node] = node.pods.back();
  node.pods[pod.index_in_node]->index_in_node = pod.index_in_node;
  node.pods.pop_back();
  pod.node = nullptr;
  DropIfEmpty(node);
}

void ClusterState::EndAssumption(Pod& pod, bool bound) {
  if (pod.state == Pod::State::kAssumed) --assumed_;
  pod.state = bound ? Pod::State::kBound : Pod::State::kPending;
  pod.waiting_attempt = 0;
  pod.waits.clear();
  pod.effects.clear();
  pod.states.clear();
}

bool ClusterState::DropNomination(Pod& pod) {
  if (pod.nominated_node.empty()) return false;
  pod.nominated_node.clear();
  nominated_.erase(&pod);
  return true;
}

PodOutcome ClusterState::UpsertPod(kube::PodPtr object) {
  PodOutcome outcome;
  kube::PodPtr replaced;
  if (const auto it = pods_by_name_.find(object->key());
      it != pods_by_name_.end() && it->second->object->uid() != object->uid()) {
    replaced = it->second->object;
    ErasePod(*it->second);
  }
  Pod* pod = Find(object->uid());
  if (Finished(*object)) {
    if (pod != nullptr) outcome = RemovePod(object->uid());
  } else if (pod == nullptr) {
    outcome = NewPod(std::move(object));
  } else if (!SameVersion(pod->object->resource_version, object->resource_version)) {
    outcome = UpdatePod(*pod, std::move(object));
  }
  outcome.replaced = std::move(replaced);
  return outcome;
}

PodOutcome ClusterState::NewPod(kube::PodPtr object) {
  PodOutcome outcome;
  auto owned = std::make_unique<Pod>();
  Pod& pod = *owned;
  pod.object = std::move(object);
  pod.demand = DemandOf(pod.object->pod);
  const std::string& node = pod.object->pod.node_name();
  if (node.empty()) {
    outcome.kind = PodOutcome::Kind::kAddedPending;
  } else {
    outcome.kind = PodOutcome::Kind::kAddedAssigned;
    pod.state = Pod::State::kBound;
    Place(pod, NodeNamed(node));
  }
  pods_by_name_[pod.object->key()] = &pod;
  pods_.emplace(pod.object->uid(), std::move(owned));
  log_.Created(pod);
  return outcome;
}

PodOutcome ClusterState::UpdatePod(Pod& pod, kube::PodPtr object) {
  PodOutcome outcome;
  outcome.old = std::exchange(pod.object, std::move(object));
  const v1beta1::Pod& before = outcome.old->pod;
  const v1beta1::Pod& after = pod.object->pod;
  outcome.deletion_started =
      before.deletion_unix_seconds() == 0 && after.deletion_unix_seconds() != 0;
  if (pod.node != nullptr) {
    outcome.old_node = pod.node->name;
    Touch(*pod.node);
  }
  const bool was_assumed = pod.state == Pod::State::kAssumed;

  if (was_assumed && pod.waiting_attempt == 0 && after.node_name() == outcome.old_node &&
      pod.node->record != nullptr && SameButForNode(*outcome.old, *pod.object, log_.wanted())) {
    // Bound as assumed: hosts continue to count it as before.
    outcome.kind = PodOutcome::Kind::kConfirmed;
    EndAssumption(pod, /*bound=*/true);
    pod.bound_as_foreseen = true;
    if (notifies_binds_of_.contains(after.scheduler_name())) log_.PlacementChanged(pod);
    return outcome;
  }
  const bool same = SameContent(*outcome.old, *pod.object, log_.wanted());
  if (!same) Recount(pod);
  if (after.node_name().empty() && pod.state != Pod::State::kBound) {
    outcome.kind = PodOutcome::Kind::kUpdatedPending;
    if (!same) log_.ContentChanged(pod);
    return outcome;
  }
  if (after.node_name() == outcome.old_node) {
    outcome.kind = was_assumed ? PodOutcome::Kind::kConfirmed : PodOutcome::Kind::kUpdatedAssigned;
    EndAssumption(pod, /*bound=*/true);
    if (was_assumed || pod.bound_as_foreseen) {
      pod.bound_as_foreseen = false;
      log_.ContentAndPlacementChanged(pod);
    } else if (!same) {
      log_.ContentChanged(pod);
    }
    return outcome;
  }
  // The pod is not where the shim assumed it.
  outcome.was_assumed = was_assumed;
  outcome.kind = outcome.old_node.empty() ? PodOutcome::Kind::kBound : PodOutcome::Kind::kMoved;
  Unplace(pod);
  DropNomination(pod);
  pod.bound_as_foreseen = false;
  EndAssumption(pod, /*bound=*/!after.node_name().empty());
  if (!after.node_name().empty()) Place(pod, NodeNamed(after.node_name()));
  log_.ContentAndPlacementChanged(pod);
  return outcome;
}

void ClusterState::Recount(Pod& pod) {
  PodDemand demand = DemandOf(pod.object->pod);
  if (pod.node == nullptr) {
    pod.demand = std::move(demand);
    return;
  }
  pod.node->usage.Remove(pod.demand);
  pod.demand = std::move(demand);
  pod.node->usage.Add(pod.demand);
}

PodOutcome ClusterState::RemovePod(absl::string_view uid) {
  PodOutcome outcome;
  Pod* pod = Find(uid);
  if (pod == nullptr) return outcome;
  outcome.kind = PodOutcome::Kind::kRemoved;
  outcome.old = pod->object;
  outcome.was_assumed = pod->state == Pod::State::kAssumed;
  if (pod->node != nullptr) outcome.old_node = pod->node->name;
  ErasePod(*pod);
  return outcome;
}

void ClusterState::ErasePod(Pod& pod) {
  Unplace(pod);
  EndAssumption(pod, /*bound=*/false);
  DropNomination(pod);
  if (const auto it = pods_by_name_.find(pod.object->key());
      it != pods_by_name_.end() && it->second == &pod) {
    pods_by_name_.erase(it);
  }
  auto node = pods_.extract(pod.object->uid());
  std::unique_ptr<Pod> record = std::move(node.mapped());
  record->removed_uid = record->object->uid();
  record->object = nullptr;
  record->demand = PodDemand();
  log_.Removed(std::move(record));
}

// --- Placements ---

absl::Status ClusterState::Assume(absl::string_view uid, uint32_t slot) {
  Pod* pod = Find(uid);
  if (pod == nullptr) return absl::NotFoundError(absl::StrCat("unknown pod ", uid));
  if (slot >= slots_.size() || slots_[slot] == nullptr) {
    return absl::NotFoundError(absl::StrCat("no node in slot ", slot));
  }
  if (pod->node != nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("pod ", pod->object->key(), " is on node ", pod->node->name));
  }
  DropNomination(*pod);
  Place(*pod, *slots_[slot]);
  pod->state = Pod::State::kAssumed;
  ++assumed_;
  log_.PlacementChanged(*pod);
  return absl::OkStatus();
}

absl::Status ClusterState::Forget(absl::string_view uid) {
  Pod* pod = Find(uid);
  if (pod == nullptr || pod->state != Pod::State::kAssumed) {
    return absl::NotFoundError(absl::StrCat("pod ", uid, " is not assumed"));
  }
  Unplace(*pod);
  EndAssumption(*pod, /*bound=*/false);
  log_.PlacementChanged(*pod);
  return absl::OkStatus();
}

absl::Status ClusterState::SetEffects(absl::string_view uid, std::vector<v1beta1::Effect> effects) {
  Pod* pod = Find(uid);
  if (pod == nullptr || pod->state != Pod::State::kAssumed) {
    return absl::NotFoundError(absl::StrCat("pod ", uid, " is not assumed"));
  }
  pod->effects = std::move(effects);
  log_.PlacementChanged(*pod);
  return absl::OkStatus();
}

absl::Status ClusterState::SetStates(absl::string_view uid, std::vector<HostState> states) {
  Pod* pod = Find(uid);
  if (pod == nullptr || pod->state != Pod::State::kAssumed) {
    return absl::NotFoundError(absl::StrCat("pod ", uid, " is not assumed"));
  }
  pod->states = std::move(states);
  log_.PlacementChanged(*pod);
  return absl::OkStatus();
}

absl::Status ClusterState::SetWaiting(absl::string_view uid, uint64_t attempt_id,
                                      std::vector<PluginWait> waits, absl::Time now) {
  Pod* pod = Find(uid);
  if (pod == nullptr || pod->state != Pod::State::kAssumed) {
    return absl::NotFoundError(absl::StrCat("pod ", uid, " is not assumed"));
  }
  now_ = now;
  pod->waiting_attempt = attempt_id;
  pod->waits = std::move(waits);
  log_.PlacementChanged(*pod);
  return absl::OkStatus();
}

absl::Status ClusterState::EndWaiting(absl::string_view uid) {
  Pod* pod = Find(uid);
  if (pod == nullptr || pod->waiting_attempt == 0) {
    return absl::NotFoundError(absl::StrCat("pod ", uid, " is not waiting"));
  }
  pod->waiting_attempt = 0;
  pod->waits.clear();
  log_.PlacementChanged(*pod);
  return absl::OkStatus();
}

absl::Status ClusterState::Nominate(absl::string_view uid, uint32_t slot) {
  Pod* pod = Find(uid);
  if (pod == nullptr) return absl::NotFoundError(absl::StrCat("unknown pod ", uid));
  if (slot >= slots_.size() || slots_[slot] == nullptr) {
    return absl::NotFoundError(absl::StrCat("no node in slot ", slot));
  }
  if (pod->node != nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("pod ", pod->object->key(), " is on node ", pod->node->name));
  }
  if (pod->nominated_node == slots_[slot]->name) return absl::OkStatus();
  pod->nominated_node = slots_[slot]->name;
  nominated_.insert(pod);
  log_.PlacementChanged(*pod);
  return absl::OkStatus();
}

absl::Status ClusterState::Unnominate(absl::string_view uid) {
  Pod* pod = Find(uid);
  if (pod == nullptr) return absl::NotFoundError(absl::StrCat("unknown pod ", uid));
  if (DropNomination(*pod)) log_.PlacementChanged(*pod);
  return absl::OkStatus();
}

std::vector<kube::PodPtr> ClusterState::NominatedTo(absl::string_view node_name) const {
  std::vector<kube::PodPtr> pods;
  for (const Pod* pod : nominated_) {
    if (pod->nominated_node == node_name) pods.push_back(pod->object);
  }
  std::sort(pods.begin(), pods.end(),
            [](const kube::PodPtr& a, const kube::PodPtr& b) { return a->key() < b->key(); });
  return pods;
}

absl::flat_hash_map<uint32_t, std::vector<kube::PodPtr>> ClusterState::NominatedBeside(
    const kube::PodObject& pod) const {
  absl::flat_hash_map<uint32_t, std::vector<kube::PodPtr>> nominated;
  ForEachNominated([&](const kube::PodPtr& other, uint32_t slot) {
    if (other->uid() != pod.uid() && other->pod.priority() >= pod.pod.priority())
      nominated[slot].push_back(other);
  });
  for (auto& [slot, pods] : nominated) {
    std::sort(pods.begin(), pods.end(),
              [](const kube::PodPtr& a, const kube::PodPtr& b) { return a->key() < b->key(); });
  }
  return nominated;
}

void ClusterState::ForEachNominated(
    absl::FunctionRef<void(const kube::PodPtr&, uint32_t)> visit) const {
  for (const Pod* pod : nominated_) {
    if (const uint32_t slot = SlotOf(pod->nominated_node); slot != kNoSlot)
      visit(pod->object, slot);
  }
}

absl::Status ClusterState::CheckFits(absl::string_view uid, uint32_t slot,
                                     const GuardScope& scope) const {
  const Pod* pod = Find(uid);
  if (pod == nullptr) return absl::NotFoundError(absl::StrCat("unknown pod ", uid));
  if (slot >= slots_.size() || slots_[slot] == nullptr) {
    return absl::NotFoundError(absl::StrCat("no node in slot ", slot));
  }
  const Node& node = *slots_[slot];
  return node.usage.CheckFits(pod->demand, node.record->object->node.allocatable(),
                              /*counted=*/pod->node == &node, scope, device_class_resources_);
}

}  // namespace outboard::cache
