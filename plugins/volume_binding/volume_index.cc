#include "plugins/volume_binding/volume_index.h"

#include <algorithm>
#include <utility>

#include "plugin_host/sdk/volumes.h"

namespace outboard::volume_binding {
namespace {

using v1beta1::SelectorRequirement;

// The first label for which a node must have one of some values.
NodeLabelKey KeyOf(const google::protobuf::RepeatedPtrField<SelectorRequirement>& requirements) {
  for (const SelectorRequirement& requirement : requirements) {
    if (requirement.operator_() != SelectorRequirement::OPERATOR_IN ||
        requirement.values().empty()) {
      continue;
    }
    return {requirement.key(), {requirement.values().begin(), requirement.values().end()}};
  }
  return {};
}

NodeLabelKey KeyOf(const v1beta1::PersistentVolume& volume) {
  const auto& terms = volume.node_affinity().node_selector_terms();
  if (terms.size() != 1) return {};
  return KeyOf(terms[0].match_expressions());
}

NodeLabelKey KeyOf(const v1beta1::LabelSelector& selector) {
  for (const auto& [key, value] : selector.match_labels()) return {key, {value}};
  return KeyOf(selector.match_expressions());
}

template <typename Map>
auto FindOrNull(const Map& map, absl::string_view key) -> decltype(&map.begin()->second) {
  auto it = map.find(key);
  return it == map.end() ? nullptr : &it->second;
}

}  // namespace

bool IsMeantFor(const v1beta1::ClaimReference& reference,
                const v1beta1::PersistentVolumeClaim& claim) {
  return reference.name() == claim.name() && reference.namespace_() == claim.namespace_() &&
         (reference.uid().empty() || reference.uid() == claim.uid());
}

bool IndexedVolume::Reaches(const sdk::NodeView& node) const {
  if (!volume.has_node_affinity()) return true;
  return affinity.Matches(node).value_or(false);
}

bool IndexedVolume::ReachesTranslated(const sdk::NodeView& node,
                                      const v1beta1::CsiNode* csi_node) const {
  if (!migratable || csi_node == nullptr) return Reaches(node);
  const auto& migrated = csi_node->migrated_plugins();
  if (std::find(migrated.begin(), migrated.end(), volume.csi().in_tree_plugin()) ==
      migrated.end()) {
    return Reaches(node);
  }
  if (!volume.has_migrated_node_affinity()) return true;
  return migrated_affinity.Matches(node).value_or(false);
}

void VolumeIndex::Clear() { *this = VolumeIndex(); }

void VolumeIndex::Set(const v1beta1::ClusterObject& object) {
  if (object.has_persistent_volume()) SetVolume(object.persistent_volume());
  if (object.has_csi_storage_capacity()) SetCapacity(object.csi_storage_capacity());
}

void VolumeIndex::Remove(const v1beta1::ClusterObject& object) {
  if (object.has_persistent_volume()) RemoveVolume(object.persistent_volume().name());
  if (object.has_csi_storage_capacity()) RemoveCapacity(object.csi_storage_capacity());
}

void VolumeIndex::SetVolume(const v1beta1::PersistentVolume& volume) {
  RemoveVolume(volume.name());
  auto indexed = std::make_unique<IndexedVolume>();
  indexed->volume = volume;
  indexed->affinity = sdk::CompiledNodeSelector(volume.node_affinity());
  indexed->migrated_affinity = sdk::CompiledNodeSelector(volume.migrated_node_affinity());
  indexed->migratable = sdk::IsMigratedPlugin(volume.csi().in_tree_plugin());
  indexed->key = KeyOf(volume);
  by_class_[volume.storage_class_name()].Add(indexed.get(), indexed->key);
  if (volume.has_claim_ref()) {
    by_claim_[sdk::NamespacedKey(volume.claim_ref().namespace_(), volume.claim_ref().name())]
        .insert(volume.name());
  }
  volumes_[volume.name()] = std::move(indexed);
}

void VolumeIndex::RemoveVolume(const std::string& name) {
  auto it = volumes_.find(name);
  if (it == volumes_.end()) return;
  const IndexedVolume& old = *it->second;
  auto of_class = by_class_.find(old.volume.storage_class_name());
  of_class->second.Remove(&old, old.key);
  if (of_class->second.empty()) by_class_.erase(of_class);
  if (old.volume.has_claim_ref()) {
    const v1beta1::ClaimReference& claim = old.volume.claim_ref();
    auto names = by_claim_.find(sdk::NamespacedKey(claim.namespace_(), claim.name()));
    names->second.erase(name);
    if (names->second.empty()) by_claim_.erase(names);
  }
  volumes_.erase(it);
}

void VolumeIndex::SetCapacity(const v1beta1::CsiStorageCapacity& capacity) {
  RemoveCapacity(capacity);
  // The limit of a single volume is the more precise one.
  if (!capacity.has_maximum_volume_bytes() && !capacity.has_capacity_bytes()) return;
  if (!capacity.has_node_topology()) return;  // Unavailable.
  auto nodes = sdk::CompiledLabelSelector::Parse(capacity.node_topology());
  if (!nodes.ok()) return;
  auto indexed = std::make_unique<IndexedCapacity>();
  indexed->limit = capacity.has_maximum_volume_bytes() ? capacity.maximum_volume_bytes()
                                                       : capacity.capacity_bytes();
  indexed->nodes = *std::move(nodes);
  indexed->key = KeyOf(capacity.node_topology());
  capacities_by_class_[capacity.storage_class_name()].Add(indexed.get(), indexed->key);
  const std::string key = sdk::NamespacedKey(capacity.namespace_(), capacity.name());
  class_of_capacity_[key] = capacity.storage_class_name();
  capacities_[key] = std::move(indexed);
}

void VolumeIndex::RemoveCapacity(const v1beta1::CsiStorageCapacity& capacity) {
  const std::string key = sdk::NamespacedKey(capacity.namespace_(), capacity.name());
  auto it = capacities_.find(key);
  if (it == capacities_.end()) return;
  auto of_class = capacities_by_class_.find(class_of_capacity_[key]);
  of_class->second.Remove(it->second.get(), it->second->key);
  if (of_class->second.empty()) capacities_by_class_.erase(of_class);
  class_of_capacity_.erase(key);
  capacities_.erase(it);
}

void VolumeIndex::SetEffects(const std::string& pod_uid,
                             const std::vector<v1beta1::Effect>& effects) {
  if (effects.empty() && effects_.empty()) return;
  auto slot_of = [&](const v1beta1::Effect& effect) -> std::pair<Assumptions*, std::string> {
    if (effect.has_bind_volume()) return {&assumed_volumes_, effect.bind_volume().name()};
    if (effect.has_select_node()) {
      return {&assumed_claims_,
              sdk::NamespacedKey(effect.select_node().namespace_(), effect.select_node().name())};
    }
    return {nullptr, ""};
  };
  if (auto old = effects_.find(pod_uid); old != effects_.end()) {
    for (const v1beta1::Effect& effect : old->second) {
      const auto [assumptions, key] = slot_of(effect);
      if (assumptions == nullptr) continue;
      auto it = assumptions->find(key);
      std::erase_if(it->second, [&](const Assumption& a) { return a.pod_uid == pod_uid; });
      if (it->second.empty()) assumptions->erase(it);
    }
    effects_.erase(old);
  }
  if (effects.empty()) return;
  for (const v1beta1::Effect& effect : effects) {
    const auto [assumptions, key] = slot_of(effect);
    if (assumptions != nullptr) (*assumptions)[key].push_back({pod_uid, effect});
  }
  effects_[pod_uid] = effects;
}

const IndexedVolume* VolumeIndex::Find(absl::string_view name) const {
  auto it = volumes_.find(name);
  return it == volumes_.end() ? nullptr : it->second.get();
}

const ByNodeLabel<IndexedVolume>* VolumeIndex::OfClass(absl::string_view name) const {
  return FindOrNull(by_class_, name);
}

const ByNodeLabel<IndexedCapacity>* VolumeIndex::CapacitiesOf(absl::string_view class_name) const {
  return FindOrNull(capacities_by_class_, class_name);
}

std::vector<const IndexedVolume*> VolumeIndex::MeantFor(
    const v1beta1::PersistentVolumeClaim& claim) const {
  std::set<std::string> names;
  if (const auto* known =
          FindOrNull(by_claim_, sdk::NamespacedKey(claim.namespace_(), claim.name()))) {
    names = *known;
  }
  for (const auto& [name, assumptions] : assumed_volumes_) {
    if (IsMeantFor(assumptions[0].effect.bind_volume().claim(), claim)) names.insert(name);
  }
  std::vector<const IndexedVolume*> result;
  for (const std::string& name : names) {
    const IndexedVolume* volume = Find(name);
    if (volume == nullptr || volume->volume.storage_class_name() != claim.storage_class_name()) {
      continue;
    }
    const v1beta1::ClaimReference* reference = ClaimOf(*volume);
    if (reference != nullptr && IsMeantFor(*reference, claim)) result.push_back(volume);
  }
  return result;
}

const v1beta1::ClaimReference* VolumeIndex::ClaimOf(const IndexedVolume& volume) const {
  const v1beta1::PersistentVolume& pv = volume.volume;
  if (!assumed_volumes_.empty()) {
    if (const auto* assumptions = FindOrNull(assumed_volumes_, pv.name())) {
      for (const Assumption& assumption : *assumptions) {
        const v1beta1::BindVolume& bind = assumption.effect.bind_volume();
        if (bind.resource_version() == pv.resource_version() && bind.uid() == pv.uid()) {
          return &bind.claim();
        }
      }
    }
  }
  return pv.has_claim_ref() ? &pv.claim_ref() : nullptr;
}

std::optional<std::string> VolumeIndex::SelectedNode(
    const v1beta1::PersistentVolumeClaim& claim) const {
  if (!assumed_claims_.empty()) {
    if (const auto* assumptions =
            FindOrNull(assumed_claims_, sdk::NamespacedKey(claim.namespace_(), claim.name()))) {
      for (const Assumption& assumption : *assumptions) {
        const v1beta1::SelectNode& select = assumption.effect.select_node();
        if (select.resource_version() == claim.resource_version() && select.uid() == claim.uid()) {
          return select.node_name();
        }
      }
    }
  }
  if (claim.has_selected_node()) return claim.selected_node();
  return std::nullopt;
}

}  // namespace outboard::volume_binding
