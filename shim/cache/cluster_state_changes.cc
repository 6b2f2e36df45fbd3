// How changes of the state are sent to hosts.
#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "shim/cache/cluster_objects.h"
#include "shim/cache/cluster_state.h"
#include "shim/cache/contract_content.h"

namespace outboard::cache {
namespace {

using v1beta1::Change;

// How long the informer may take to report what the shim wrote.
constexpr absl::Duration kPatience = absl::Minutes(1);
// More than are removed while the answer to a write is on its way.
constexpr size_t kRemovedUids = 1024;

// Resource versions of one resource grow. 0 for a version that is not a number, which has no
// order.
uint64_t ResourceVersionOf(const kube::ClusterObject& object) {
  uint64_t version = 0;
  return absl::SimpleAtoi(object.resource_version, &version) ? version : 0;
}
bool IsOlder(const kube::ClusterObject& a, const kube::ClusterObject& b) {
  const uint64_t of_a = ResourceVersionOf(a);
  return of_a > 0 && of_a < ResourceVersionOf(b);
}

std::string KeyOf(const v1beta1::ClusterObject& object) {
  return kube::KeyOf(kube::ReferenceTo(object));
}

}  // namespace

bool ClusterState::UpsertNamespace(kube::NamespacePtr object) {
  std::unique_ptr<Namespace>& ns = namespaces_[object->ns.name()];
  if (ns == nullptr) {
    ns = std::make_unique<Namespace>();
    ns->name = object->ns.name();
    ns->object = std::move(object);
    log_.Created(*ns);
    return true;
  }
  const bool same = SameMessage(ns->object->ns, object->ns);
  ns->object = std::move(object);
  if (!same) log_.ContentChanged(*ns);
  return !same;
}

bool ClusterState::RemoveNamespace(absl::string_view name) {
  const auto it = namespaces_.find(name);
  if (it == namespaces_.end()) return false;
  std::unique_ptr<Namespace> ns = std::move(it->second);
  namespaces_.erase(it);
  ns->object = nullptr;
  log_.Removed(std::move(ns));
  return true;
}

void ClusterState::NoteReportedVersion(const kube::ClusterObject& object) {
  uint64_t& latest = reported_versions_[kube::KindOf(object.object)];
  latest = std::max(latest, ResourceVersionOf(object));
}

ObjectOutcome ClusterState::UpsertObject(kube::ClusterObjectPtr object) {
  NoteReportedVersion(*object);
  return Upsert(std::move(object));
}

ObjectOutcome ClusterState::Upsert(kube::ClusterObjectPtr object) {
  ObjectOutcome outcome;
  std::unique_ptr<Object>& record = objects_[KeyOf(object->object)];
  if (record == nullptr) {
    outcome.kind = ObjectOutcome::Kind::kAdded;
    record = std::make_unique<Object>();
    record->object = std::move(object);
    NoteKind(KeyOf(record->object->object), record->object->object, /*is_added=*/true);
    log_.Created(*record);
    return outcome;
  }
  outcome.old = record->object;
  if (record->unseen_since.has_value() && IsOlder(*object, *outcome.old)) return outcome;
  record->unseen_since.reset();
  const std::string& version = object->resource_version;
  if (outcome.old->uid() == object->uid() && !version.empty() &&
      outcome.old->resource_version == version) {
    return outcome;
  }
  outcome.kind = outcome.old->uid() == object->uid() ? ObjectOutcome::Kind::kUpdated
                                                     : ObjectOutcome::Kind::kReplaced;
  record->object = std::move(object);
  CountDeviceClass(outcome.old->object, -1);
  CountDeviceClass(record->object->object, 1);
  if (!SameMessage(outcome.old->object, record->object->object)) log_.ContentChanged(*record);
  return outcome;
}

ObjectOutcome ClusterState::AssumeObject(kube::ClusterObjectPtr object, absl::Time now) {
  const std::string key = KeyOf(object->object);
  if (const auto known = objects_.find(key); known == objects_.end()) {
    if (absl::c_linear_search(removed_uids_, object->uid())) return ObjectOutcome();
  } else if (!IsOlder(*known->second->object, *object)) {
    return ObjectOutcome();
  }
  ObjectOutcome outcome = Upsert(std::move(object));
  objects_[key]->unseen_since = now;
  written_.emplace_back(now, key);
  return outcome;
}

std::vector<kube::ClusterObjectPtr> ClusterState::TakeUnconfirmedObjects(absl::Time now) {
  std::vector<kube::ClusterObjectPtr> unseen;
  const auto is_settled = [&](const auto& written) {
    const auto it = objects_.find(written.second);
    if (it == objects_.end() || it->second->unseen_since != written.first) return true;
    const kube::ClusterObjectPtr& object = it->second->object;
    // Otherwise the informer may only be late. Entries taken from the list stay taken.
    const bool is_passed =
        ResourceVersionOf(*object) < reported_versions_[kube::KindOf(object->object)];
    if (is_passed) unseen.push_back(object);
    return is_passed;
  };
  const auto young = absl::c_find_if(
      written_, [&](const auto& written) { return written.first + kPatience > now; });
  written_.erase(std::remove_if(written_.begin(), young, is_settled), young);
  return unseen;
}

ObjectOutcome ClusterState::RemoveObject(const kube::ClusterObject& object) {
  ObjectOutcome outcome;
  NoteReportedVersion(object);
  removed_uids_.push_back(object.uid());
  if (removed_uids_.size() > kRemovedUids) removed_uids_.pop_front();
  const auto it = objects_.find(KeyOf(object.object));
  if (it == objects_.end()) return outcome;
  // The shim has since written another object of this name.
  if (it->second->unseen_since.has_value() && it->second->object->uid() != object.uid())
    return outcome;
  outcome.kind = ObjectOutcome::Kind::kRemoved;
  std::unique_ptr<Object> record = std::move(it->second);
  NoteKind(it->first, record->object->object, /*is_added=*/false);
  objects_.erase(it);
  outcome.old = std::move(record->object);
  record->removed_name = kube::ReferenceTo(outcome.old->object);
  log_.Removed(std::move(record));
  return outcome;
}

void ClusterState::NoteKind(const std::string& key, const v1beta1::ClusterObject& object,
                            bool is_added) {
  CountDeviceClass(object, is_added ? 1 : -1);
  if (!object.has_pod_disruption_budget()) return;
  if (is_added) {
    disruption_budgets_.insert(key);
  } else {
    disruption_budgets_.erase(key);
  }
}

void ClusterState::ForEachDisruptionBudget(
    absl::FunctionRef<void(const kube::ClusterObjectPtr& budget)> visit) const {
  for (const std::string& key : disruption_budgets_) visit(objects_.at(key)->object);
}

void ClusterState::CountDeviceClass(const v1beta1::ClusterObject& object, int by) {
  if (!object.has_device_class()) return;
  const v1beta1::DeviceClass& device_class = object.device_class();
  for (const std::string& resource :
       {absl::StrCat("deviceclass.resource.kubernetes.io/", device_class.name()),
        device_class.extended_resource_name()}) {
    if (resource.empty()) continue;
    const auto counted = device_class_resources_.try_emplace(resource, 0).first;
    counted->second += by;
    if (counted->second == 0) device_class_resources_.erase(counted);
  }
}

kube::ClusterObjectPtr ClusterState::FindObject(const v1beta1::ObjectReference& reference) const {
  const auto it = objects_.find(kube::KeyOf(reference));
  return it == objects_.end() ? nullptr : it->second->object;
}

std::vector<kube::ClusterObjectPtr> ClusterState::ObjectsOfKind(absl::string_view kind) const {
  std::vector<kube::ClusterObjectPtr> found;
  for (const auto& [key, record] : objects_) {
    if (kube::KindOf(record->object->object) == kind) found.push_back(record->object);
  }
  return found;
}

std::vector<v1beta1::SyncRequest> ClusterState::TakeChanges(Cursor host, absl::Time now) {
  now_ = now;
  return log_.TakeChanges(host);
}

std::unique_ptr<Snapshot> ClusterState::TakeSnapshot(Cursor host, absl::Time now) {
  now_ = now;
  return log_.TakeSnapshot(host);
}

Snapshot::Content ClusterState::Capture(const Fields& fields) const {
  Snapshot::Content all;
  all.nodes.reserve(tree_.size());
  for (const Node* node : slots_) {
    if (node != nullptr) all.nodes.push_back({node->slot(), node->record->object});
  }
  all.namespaces.reserve(namespaces_.size());
  for (const auto& [name, ns] : namespaces_) all.namespaces.push_back(ns->object);
  all.objects.reserve(objects_.size());
  for (const auto& [key, object] : objects_) all.objects.push_back(object->object);
  std::vector<std::tuple<int64_t, int64_t, const Pod*>> pods;
  pods.reserve(pods_.size());
  for (const auto& [uid, pod] : pods_) pods.emplace_back(pod->placement, pod->created, pod.get());
  std::sort(pods.begin(), pods.end());
  all.pods.reserve(pods.size());
  for (const auto& [placement, created, pod] : pods) {
    Snapshot::Pod& captured = all.pods.emplace_back();
    captured.object = pod->object;
    if (pod->state == Pod::State::kBound) continue;
    auto placed = std::make_unique<v1beta1::PodPlacement>();
    EncodePlacement(*pod, fields, placed.get());
    if (placed->state() != v1beta1::PLACEMENT_STATE_UNPLACED)
      captured.placement = std::move(placed);
  }
  FillNodeOrder(&all.node_order);
  return all;
}

void ClusterState::FillNodeOrder(v1beta1::NodeOrder* order) const {
  const std::vector<uint32_t>& slots = tree_.Order();
  order->mutable_slots()->Add(slots.begin(), slots.end());
}

void ClusterState::Encode(const ChangeRecord& record, int64_t known, const Fields& fields,
                          std::vector<Change>* out) const {
  if (record.removed && record.created > known) return;
  switch (record.kind) {
    case ChangeKind::kNode: {
      const auto& node = static_cast<const NodeRecord&>(record);
      if (node.removed) {
        out->emplace_back().mutable_node_remove()->set_slot(node.slot);
        return;
      }
      FillNode(*node.object, node.slot, fields, out->emplace_back().mutable_node_upsert());
      return;
    }
    case ChangeKind::kNamespace: {
      const auto& ns = static_cast<const Namespace&>(record);
      if (ns.removed) {
        out->emplace_back().mutable_namespace_remove()->set_name(ns.name);
      } else {
        *out->emplace_back().mutable_namespace_upsert()->mutable_namespace_() = ns.object->ns;
      }
      return;
    }
    case ChangeKind::kObject: {
      const auto& object = static_cast<const Object&>(record);
      if (object.removed) {
        if (!fields.Wants(object.removed_name)) return;
        *out->emplace_back().mutable_object_remove() = object.removed_name;
      } else {
        if (!fields.Wants(object.object->object)) return;
        *out->emplace_back().mutable_object_upsert() = object.object->object;
      }
      return;
    }
    case ChangeKind::kPod: {
      const auto& pod = static_cast<const Pod&>(record);
      if (pod.removed) {
        out->emplace_back().mutable_pod_remove()->set_uid(pod.removed_uid);
      } else {
        EncodePod(pod, known, fields, out);
      }
      return;
    }
  }
}

void ClusterState::EncodePod(const Pod& pod, int64_t known, const Fields& fields,
                             std::vector<Change>* out) const {
  const bool is_new = pod.created > known;
  const bool tell_content = is_new || pod.content > known;
  const bool tell_placement = pod.placement > known;
  v1beta1::PodPlacement placement;
  EncodePlacement(pod, fields, &placement);
  if (!tell_content) {
    *out->emplace_back().mutable_pod_placement() = std::move(placement);
    return;
  }
  // The object itself names a bound pod's node.
  const bool placed =
      placement.state() != v1beta1::PLACEMENT_STATE_UNPLACED && pod.state != Pod::State::kBound;
  // An assumed placement that is over is ended first, so that the pod then moves to the node that
  // it names.
  if (tell_placement && !placed && !is_new) {
    v1beta1::PodPlacement* over = out->emplace_back().mutable_pod_placement();
    over->set_uid(pod.object->uid());
    over->set_state(v1beta1::PLACEMENT_STATE_UNPLACED);
  }
  FillPod(*pod.object, fields, out->emplace_back().mutable_pod_upsert());
  if (placed && tell_placement) *out->emplace_back().mutable_pod_placement() = std::move(placement);
}

void ClusterState::EncodePlacement(const Pod& pod, const Fields& fields,
                                   v1beta1::PodPlacement* out) const {
  out->set_uid(pod.object->uid());
  // A bound pod is on the node that it names, once hosts know that it is bound. On a deleted node
  // it has no placement.
  uint32_t slot = kNoSlot;
  if (pod.bound_as_foreseen) {
    slot = pod.node->slot();
    out->set_state(v1beta1::PLACEMENT_STATE_BOUND);
  } else if (pod.state == Pod::State::kAssumed) {
    slot = pod.node->slot();
    out->set_state(pod.waiting_attempt == 0 ? v1beta1::PLACEMENT_STATE_ASSUMED
                                            : v1beta1::PLACEMENT_STATE_WAITING);
  } else if (!pod.nominated_node.empty()) {
    slot = SlotOf(pod.nominated_node);
    out->set_state(v1beta1::PLACEMENT_STATE_NOMINATED);
  }
  if (slot == kNoSlot) {
    out->set_state(v1beta1::PLACEMENT_STATE_UNPLACED);
    return;
  }
  out->set_slot(slot);
  for (const v1beta1::Effect& effect : pod.effects) *out->add_effects() = effect;
  for (const HostState& its : pod.states) {
    if (its.host_name == fields.host_name) *out->add_states() = its.state;
  }
  if (pod.waiting_attempt == 0 || pod.state != Pod::State::kAssumed) return;
  out->set_attempt_id(pod.waiting_attempt);
  for (const PluginWait& wait : pod.waits) {
    v1beta1::PluginWait* sent = out->add_waits();
    sent->set_plugin(wait.plugin);
    sent->set_remaining_micros(
        std::max<int64_t>(0, absl::ToInt64Milliseconds(wait.deadline - now_)));
  }
}

}  // namespace outboard::cache
