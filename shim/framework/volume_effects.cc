#include "shim/framework/volume_effects.h"

#include <string>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "shim/framework/answer_check.h"
#include "shim/framework/selectors.h"

namespace outboard::framework {
namespace {

using v1beta1::ClaimReference;
using v1beta1::PersistentVolume;
using v1beta1::PersistentVolumeClaim;
using v1beta1::StorageClass;

// What is wrong, for people; empty: nothing.
using Fault = std::string;

constexpr char kNoProvisioner[] = "kubernetes.io/no-provisioner";

absl::string_view ModeOf(const std::string& mode) {
  return mode.empty() ? absl::string_view("Filesystem") : mode;
}

// Whether the volume is reserved for the claim: by name, and by uid if the reference has one.
bool IsReservedFor(const ClaimReference& reference, const PersistentVolumeClaim& claim) {
  return reference.namespace_() == claim.namespace_() && reference.name() == claim.name() &&
         (reference.uid().empty() || reference.uid() == claim.uid());
}

// Whether the host decided about the same version of the object that the shim has.
template <typename Object>
bool IsCurrent(const Object& object, const std::string& uid, const std::string& resource_version) {
  return object.uid() == uid && object.resource_version() == resource_version;
}

Fault ClaimFault(const PersistentVolumeClaim& claim, const v1beta1::Pod& pod,
                 const StorageClass* storage_class) {
  if (claim.deleting()) return "the claim is being deleted";
  if (!claim.volume_name().empty()) return "the claim has a volume";
  if (storage_class == nullptr || storage_class->volume_binding_mode() != "WaitForFirstConsumer")
    return "the claim's class does not wait for a pod";
  const bool is_named = absl::c_any_of(pod.volumes(), [&](const v1beta1::Volume& volume) {
    return volume.source() == "persistentVolumeClaim" && volume.claim_name() == claim.name();
  });
  // The claim of an ephemeral volume: another object may have its name.
  if (!is_named && claim.controller().uid() != pod.uid())
    return "the claim was not created for the pod";
  return "";
}

// Further conditions for a volume without a reservation. For a reserved volume Kubernetes leaves
// them to the person who reserved it and to the volume controller.
Fault MatchFault(const PersistentVolume& volume, const PersistentVolumeClaim& claim) {
  if (volume.phase() != "Available")
    return absl::StrCat("its phase is \"", volume.phase(), "\", not Available");
  if (claim.has_selector() && !Matches(claim.selector(), volume.labels()))
    return "its labels are not those that the claim selects";
  for (const std::string& mode : claim.access_modes()) {
    if (!absl::c_linear_search(volume.access_modes(), mode))
      return absl::StrCat("it has no access mode ", mode);
  }
  return "";
}

Fault VolumeFault(const PersistentVolume& volume, const PersistentVolumeClaim& claim,
                  const v1beta1::Node& node) {
  if (volume.has_claim_ref() && !IsReservedFor(volume.claim_ref(), claim)) {
    return absl::StrCat("it is reserved for claim ", volume.claim_ref().namespace_(), "/",
                        volume.claim_ref().name(), " ", volume.claim_ref().uid());
  }
  if (volume.deleting()) return "it is being deleted";
  if (volume.storage_class_name() != claim.storage_class_name())
    return absl::StrCat("its class is \"", volume.storage_class_name(), "\", not the claim's");
  if (volume.capacity_bytes() < claim.request_bytes()) {
    return absl::StrCat("it has ", volume.capacity_bytes(), " bytes of ", claim.request_bytes());
  }
  if (ModeOf(volume.volume_mode()) != ModeOf(claim.volume_mode()))
    return "its volume mode is not the claim's";
  if (volume.volume_attributes_class_name() != claim.volume_attributes_class_name())
    return "its volume attributes class is not the claim's";
  if (volume.has_node_affinity() && !Matches(volume.node_affinity(), node))
    return absl::StrCat("its node affinity excludes node ", node.name());
  return volume.has_claim_ref() ? "" : MatchFault(volume, claim);
}

Fault ProvisionFault(const PersistentVolumeClaim& claim, const StorageClass& storage_class,
                     const v1beta1::Node& node) {
  if (claim.has_selected_node() && claim.selected_node() != node.name())
    return absl::StrCat("its volume is made for node ", claim.selected_node());
  if (storage_class.provisioner().empty() || storage_class.provisioner() == kNoProvisioner)
    return "its class has no provisioner";
  const auto& topologies = storage_class.allowed_topologies();
  const auto is_there = [&](const v1beta1::NodeSelectorTerm& term) { return Matches(term, node); };
  if (!topologies.empty() && !absl::c_any_of(topologies, is_there))
    return absl::StrCat("its class makes no volumes for node ", node.name());
  return "";
}

// Looks up objects; the results are valid until the cluster state changes. Null: unknown.
class Objects {
 public:
  explicit Objects(const cache::ClusterState& cluster) : cluster_(cluster) {}

  const PersistentVolume* Volume(const std::string& name) const {
    const kube::ClusterObjectPtr found = Find("PersistentVolume", "", name);
    return found == nullptr ? nullptr : &found->object.persistent_volume();
  }
  const PersistentVolumeClaim* Claim(const std::string& name_space, const std::string& name) const {
    const kube::ClusterObjectPtr found = Find("PersistentVolumeClaim", name_space, name);
    return found == nullptr ? nullptr : &found->object.persistent_volume_claim();
  }
  const StorageClass* Class(const std::string& name) const {
    const kube::ClusterObjectPtr found = Find("StorageClass", "", name);
    return found == nullptr ? nullptr : &found->object.storage_class();
  }

 private:
  kube::ClusterObjectPtr Find(const std::string& kind, const std::string& name_space,
                              const std::string& name) const {
    v1beta1::ObjectReference reference;
    reference.set_kind(kind);
    reference.set_namespace_(name_space);
    reference.set_name(name);
    return cluster_.FindObject(reference);
  }

  const cache::ClusterState& cluster_;
};

Fault BindFault(const v1beta1::BindVolume& bind, const v1beta1::Pod& pod, const v1beta1::Node& node,
                const Objects& objects) {
  const PersistentVolumeClaim* const claim =
      objects.Claim(bind.claim().namespace_(), bind.claim().name());
  if (claim == nullptr || !IsCurrent(*claim, bind.claim().uid(), bind.claim_resource_version()))
    return "the claim is unknown or has another version";
  if (Fault fault = ClaimFault(*claim, pod, objects.Class(claim->storage_class_name()));
      !fault.empty())
    return fault;
  const PersistentVolume* const volume = objects.Volume(bind.name());
  if (volume == nullptr || !IsCurrent(*volume, bind.uid(), bind.resource_version()))
    return "it is unknown or has another version";
  if (Fault fault = VolumeFault(*volume, *claim, node); !fault.empty()) return fault;
  // With the annotation, the volume controller drops a person's reservation together with the
  // claim; without it, it keeps the volume for the claim's name.
  if (bind.bound_by_controller() == volume->has_claim_ref())
    return "the answer is wrong about who reserved it";
  return "";
}

Fault SelectFault(const v1beta1::SelectNode& select, const v1beta1::Pod& pod,
                  const v1beta1::Node& node, const Objects& objects) {
  const PersistentVolumeClaim* const claim = objects.Claim(select.namespace_(), select.name());
  if (claim == nullptr || !IsCurrent(*claim, select.uid(), select.resource_version()))
    return "it is unknown or has another version";
  const StorageClass* const storage_class = objects.Class(claim->storage_class_name());
  if (Fault fault = ClaimFault(*claim, pod, storage_class); !fault.empty()) return fault;
  return ProvisionFault(*claim, *storage_class, node);
}

}  // namespace

absl::Status CheckVolumeEffects(const google::protobuf::RepeatedPtrField<v1beta1::Effect>& effects,
                                const v1beta1::Pod& pod, const v1beta1::Node& node,
                                const cache::ClusterState& cluster) {
  const Objects objects(cluster);
  absl::flat_hash_set<absl::string_view> volumes;
  for (const v1beta1::Effect& effect : effects) {
    std::string what;
    Fault fault;
    if (effect.has_bind_volume()) {
      const v1beta1::BindVolume& bind = effect.bind_volume();
      what = absl::StrCat("binds volume ", bind.name(), " to claim ", bind.claim().namespace_(),
                          "/", bind.claim().name());
      fault = volumes.insert(bind.name()).second ? BindFault(bind, pod, node, objects)
                                                 : "another effect binds it";
    } else if (effect.has_select_node()) {
      const v1beta1::SelectNode& select = effect.select_node();
      what = absl::StrCat("selects node ", select.node_name(), " for claim ", select.namespace_(),
                          "/", select.name());
      fault = SelectFault(select, pod, node, objects);
    }
    if (!fault.empty())
      return absl::InternalError(CutText(absl::StrCat("Reserve ", what, ": ", fault)));
  }
  return absl::OkStatus();
}

}  // namespace outboard::framework
