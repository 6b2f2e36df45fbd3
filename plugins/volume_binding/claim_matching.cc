#include "plugins/volume_binding/claim_matching.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "plugin_host/sdk/validation.h"
#include "plugin_host/sdk/volumes.h"

namespace outboard::volume_binding {
namespace {

using sdk::Verdict;
using v1beta1::PersistentVolume;
using v1beta1::PersistentVolumeClaim;
using Chosen = std::vector<const IndexedVolume*>;

absl::string_view ModeOf(const std::string& mode) {
  return mode.empty() ? absl::string_view("Filesystem") : mode;
}

// Conditions for every volume, also for a volume reserved for the claim.
bool CanHold(const PersistentVolume& volume, const PersistentVolumeClaim& claim) {
  return volume.capacity_bytes() >= claim.request_bytes() &&
         ModeOf(volume.volume_mode()) == ModeOf(claim.volume_mode()) &&
         volume.volume_attributes_class_name() == claim.volume_attributes_class_name() &&
         !volume.deleting();
}

// Whether a volume matches the claim and is reserved for no claim, independent of nodes.
bool WouldDo(const IndexedVolume& candidate, const DelayedClaim& delayed,
             const VolumeIndex& index) {
  const PersistentVolume& volume = candidate.volume;
  if (index.ClaimOf(candidate) != nullptr || !CanHold(volume, *delayed.claim)) return false;
  if (volume.phase() != "Available") return false;
  if (delayed.selector && !delayed.selector->Matches(volume.labels())) return false;
  const auto& modes = delayed.claim->access_modes();
  return std::all_of(modes.begin(), modes.end(), [&](const std::string& mode) {
    return std::find(volume.access_modes().begin(), volume.access_modes().end(), mode) !=
           volume.access_modes().end();
  });
}

// The smallest fit is best; names only make the choice deterministic.
bool Better(const IndexedVolume* a, const IndexedVolume* b) {
  if (a->volume.capacity_bytes() != b->volume.capacity_bytes()) {
    return a->volume.capacity_bytes() < b->volume.capacity_bytes();
  }
  return a->volume.name() < b->volume.name();
}

bool Contains(const Chosen& chosen, const IndexedVolume* volume) {
  return std::find(chosen.begin(), chosen.end(), volume) != chosen.end();
}

// The volume for a claim on a node; null if there is none.
const IndexedVolume* FindMatch(const DelayedClaim& delayed, const sdk::NodeView& node,
                               const VolumeIndex& index, const Chosen& chosen) {
  for (const IndexedVolume* volume : delayed.meant_for_it) {
    if (Contains(chosen, volume)) continue;
    // A volume is reserved for the claim: no other volume is allowed.
    return volume->Reaches(node) ? volume : nullptr;
  }
  const IndexedVolume* best = nullptr;
  if (delayed.of_class != nullptr) {
    delayed.of_class->ForEachKeyed(node, [&](const IndexedVolume& volume) {
      if (best != nullptr && !Better(&volume, best)) return;
      if (Contains(chosen, &volume) || !WouldDo(volume, delayed, index)) return;
      if (volume.Reaches(node)) best = &volume;
    });
  }
  for (const IndexedVolume* volume : delayed.unkeyed) {
    if (best != nullptr && !Better(volume, best)) break;
    if (Contains(chosen, volume) || !volume->Reaches(node)) continue;
    best = volume;
    break;
  }
  return best;
}

bool HasCapacity(const DelayedClaim& delayed, const sdk::NodeView& node, const VolumeIndex& index) {
  if (!delayed.check_capacity) return true;
  const auto* capacities = index.CapacitiesOf(delayed.storage_class->name());
  if (capacities == nullptr) return false;
  const int64_t wanted = delayed.claim->request_bytes();
  bool found = false;
  auto check = [&](const IndexedCapacity& capacity) {
    found = found || (capacity.limit >= wanted && capacity.nodes.Matches(node.proto().labels()));
  };
  capacities->ForEachKeyed(node, check);
  for (const IndexedCapacity* capacity : capacities->unkeyed()) check(*capacity);
  return found;
}

bool InAllowedTopology(const DelayedClaim& delayed, const sdk::NodeView& node) {
  if (delayed.storage_class->allowed_topologies().empty()) return true;
  return std::any_of(delayed.topologies.begin(), delayed.topologies.end(),
                     [&](const sdk::CompiledNodeTerm& term) { return term.Matches(node); });
}

// Whether volumes can be provisioned for the claims on the node: reasons, 0 if they can.
uint8_t CheckProvisions(const std::vector<const DelayedClaim*>& claims, const sdk::NodeView& node,
                        const VolumeIndex& index, Decision* decision) {
  for (const DelayedClaim* delayed : claims) {
    const std::string& provisioner = delayed->storage_class->provisioner();
    if (provisioner.empty() || provisioner == "kubernetes.io/no-provisioner" ||
        !InAllowedTopology(*delayed, node)) {
      return kBindConflict;
    }
    if (!HasCapacity(*delayed, node, index)) return kNotEnoughSpace;
    if (decision != nullptr) decision->provisions.push_back(delayed->claim);
  }
  return 0;
}

uint8_t CheckBound(const PodClaims& claims, const sdk::NodeView& node,
                   const sdk::ClusterObjects& objects) {
  const v1beta1::CsiNode* csi_node =
      claims.any_migratable ? objects.Find<v1beta1::CsiNode>(node.name()) : nullptr;
  for (const IndexedVolume* volume : claims.bound) {
    if (volume == nullptr) return kVolumeMissing;
    if (!volume->ReachesTranslated(node, csi_node)) return kNodeConflict;
  }
  return 0;
}

// The error of a claim that rejects the pod; nullopt: none.
std::optional<std::string> ClaimFault(const v1beta1::Pod& pod, const sdk::PodClaim& named,
                                      const PersistentVolumeClaim* claim) {
  if (claim == nullptr) {
    if (!named.ephemeral) return sdk::NotFoundText("persistentvolumeclaim", named.name);
    return absl::StrCat(
        "waiting for ephemeral volume controller to create the persistentvolumeclaim ",
        sdk::Quote(named.name));
  }
  if (claim->phase() == "Lost") {
    return absl::StrCat("persistentvolumeclaim ", sdk::Quote(claim->name()),
                        " bound to non-existent persistentvolume ",
                        sdk::Quote(claim->volume_name()));
  }
  if (claim->deleting()) {
    return absl::StrCat("persistentvolumeclaim ", sdk::Quote(claim->name()), " is being deleted");
  }
  if (named.ephemeral) return sdk::NotCreatedForPod(pod, *claim);
  return std::nullopt;
}

DelayedClaim MakeDelayed(const PersistentVolumeClaim& claim,
                         const v1beta1::StorageClass& storage_class,
                         const sdk::ClusterObjects& objects, const VolumeIndex& index) {
  DelayedClaim delayed;
  delayed.claim = &claim;
  delayed.storage_class = &storage_class;
  delayed.selected_node = index.SelectedNode(claim);
  if (claim.has_selector()) {
    auto selector = sdk::CompiledLabelSelector::Parse(claim.selector());
    if (selector.ok()) {
      delayed.selector = *std::move(selector);
    } else {
      delayed.selector_error =
          absl::StrCat("error creating internal label selector for claim: ", claim.namespace_(),
                       "/", claim.name(), ": ", selector.status().message());
    }
  }
  for (const IndexedVolume* volume : index.MeantFor(claim)) {
    if (CanHold(volume->volume, claim)) delayed.meant_for_it.push_back(volume);
  }
  delayed.of_class = index.OfClass(claim.storage_class_name());
  if (delayed.of_class != nullptr) {
    for (const IndexedVolume* volume : delayed.of_class->unkeyed()) {
      if (WouldDo(*volume, delayed, index)) delayed.unkeyed.push_back(volume);
    }
    std::sort(delayed.unkeyed.begin(), delayed.unkeyed.end(), Better);
  }
  for (const v1beta1::NodeSelectorTerm& term : storage_class.allowed_topologies()) {
    delayed.topologies.push_back(sdk::CompiledNodeTerm::Parse(term, ""));
  }
  const auto* driver = objects.Find<v1beta1::CsiDriver>(storage_class.provisioner());
  delayed.check_capacity =
      claim.has_request_bytes() && driver != nullptr && driver->storage_capacity();
  return delayed;
}

}  // namespace

bool IsFullyBound(const PersistentVolumeClaim& claim) {
  return !claim.volume_name().empty() && claim.bind_completed();
}

Verdict CollectClaims(const v1beta1::Pod& pod, const sdk::ClusterObjects& objects,
                      const VolumeIndex& index, PodClaims* claims, bool* any) {
  std::vector<const PersistentVolumeClaim*> found;
  *any = false;
  for (const v1beta1::Volume& volume : pod.volumes()) {
    const std::optional<sdk::PodClaim> named = sdk::ClaimOfVolume(pod, volume);
    if (!named) continue;
    *any = true;
    const auto* claim = sdk::FindClaim(objects, pod.namespace_(), named->name);
    if (auto fault = ClaimFault(pod, *named, claim)) {
      return Verdict::Unresolvable(*std::move(fault));
    }
    found.push_back(claim);
  }
  for (const PersistentVolumeClaim* claim : found) {
    if (IsFullyBound(*claim)) {
      const IndexedVolume* volume = index.Find(claim->volume_name());
      claims->any_migratable |= volume != nullptr && volume->migratable;
      claims->bound.push_back(volume);
      continue;
    }
    const v1beta1::StorageClass* storage_class =
        claim->storage_class_name().empty()
            ? nullptr
            : objects.Find<v1beta1::StorageClass>(claim->storage_class_name());
    if (storage_class != nullptr && storage_class->volume_binding_mode().empty()) {
      return Verdict::Error(absl::StrCat("VolumeBindingMode not set for StorageClass ",
                                         sdk::Quote(claim->storage_class_name())));
    }
    const bool delayed =
        storage_class != nullptr && storage_class->volume_binding_mode() == "WaitForFirstConsumer";
    if (delayed && claim->volume_name().empty()) {
      claims->delayed.push_back(MakeDelayed(*claim, *storage_class, objects, index));
    } else {
      claims->unbound_immediate = true;  // Pre-bound ones too: the volume controller binds them.
    }
  }
  return Verdict::Success();
}

Outcome EvaluateNode(const PodClaims& claims, const sdk::NodeView& node,
                     const sdk::ClusterObjects& objects, const VolumeIndex& index,
                     Decision* decision) {
  Outcome outcome;
  outcome.reasons = CheckBound(claims, node, objects);
  if (claims.delayed.empty()) return outcome;

  std::vector<const DelayedClaim*> to_provision;
  std::vector<const DelayedClaim*> to_match;
  for (const DelayedClaim& delayed : claims.delayed) {
    if (!delayed.selected_node) {
      to_match.push_back(&delayed);
    } else if (*delayed.selected_node == node.name()) {
      to_provision.push_back(&delayed);
    } else {
      outcome.reasons |= kBindConflict;
      return outcome;
    }
  }
  // Small claims first, so that they get small volumes.
  std::stable_sort(to_match.begin(), to_match.end(), [](const auto* a, const auto* b) {
    return a->claim->request_bytes() < b->claim->request_bytes();
  });
  Chosen chosen;
  for (const DelayedClaim* delayed : to_match) {
    if (!delayed->selector_error.empty()) {
      outcome.error = delayed->selector_error;
      return outcome;
    }
    const IndexedVolume* match = FindMatch(*delayed, node, index, chosen);
    if (match == nullptr) {
      to_provision.push_back(delayed);
      continue;
    }
    chosen.push_back(match);
    if (decision != nullptr) decision->bindings.push_back({match, delayed->claim});
  }
  outcome.reasons |= CheckProvisions(to_provision, node, index, decision);
  return outcome;
}

}  // namespace outboard::volume_binding
