// Indexes of volumes, storage capacities and assumptions.
#ifndef OUTBOARD_PLUGINS_VOLUME_BINDING_VOLUME_INDEX_H_
#define OUTBOARD_PLUGINS_VOLUME_BINDING_VOLUME_INDEX_H_

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "plugin_host/sdk/selectors.h"
#include "plugin_host/sdk/views.h"
#include "plugins/volume_binding/by_node_label.h"

namespace outboard::volume_binding {

// A volume with compiled node affinities.
struct IndexedVolume {
  v1beta1::PersistentVolume volume;
  sdk::CompiledNodeSelector affinity;
  // The affinity of the translated CSI volume, for nodes where the in-tree plugin is migrated.
  sdk::CompiledNodeSelector migrated_affinity;
  bool migratable = false;
  NodeLabelKey key;

  // As the volume controller checks it.
  bool Reaches(const sdk::NodeView& node) const;
  // As the node checks it; `csi_node` may be null.
  bool ReachesTranslated(const sdk::NodeView& node, const v1beta1::CsiNode* csi_node) const;
};

// Free storage of a class on some nodes.
struct IndexedCapacity {
  int64_t limit = 0;
  sdk::CompiledLabelSelector nodes;
  NodeLabelKey key;
};

// Updated by changes of the cluster cache. Assumptions are the effects of pods that have a node but
// are not bound. An assumption counts as applied until the cluster cache has a newer version of the
// object.
//
// Threading: thread-compatible.
// Lifetime:  results are valid until the next change.
// Errors:    none.
class VolumeIndex {
 public:
  void Clear();
  void Set(const v1beta1::ClusterObject& object);
  void Remove(const v1beta1::ClusterObject& object);
  // Sets the pod's current effects; empty for a bound or deleted pod.
  void SetEffects(const std::string& pod_uid, const std::vector<v1beta1::Effect>& effects);

  const IndexedVolume* Find(absl::string_view name) const;
  // Volumes of a class; null if there are none.
  const ByNodeLabel<IndexedVolume>* OfClass(absl::string_view name) const;
  // Volumes reserved for the claim, of its class, by name.
  std::vector<const IndexedVolume*> MeantFor(const v1beta1::PersistentVolumeClaim& claim) const;
  // The claim for which the volume is reserved or assumed; null: none.
  const v1beta1::ClaimReference* ClaimOf(const IndexedVolume& volume) const;
  // The node for which the claim's volume is, or is assumed to be, provisioned.
  std::optional<std::string> SelectedNode(const v1beta1::PersistentVolumeClaim& claim) const;
  const ByNodeLabel<IndexedCapacity>* CapacitiesOf(absl::string_view class_name) const;

 private:
  struct Assumption {
    std::string pod_uid;
    v1beta1::Effect effect;
  };
  using Assumptions = absl::flat_hash_map<std::string, std::vector<Assumption>>;

  void SetVolume(const v1beta1::PersistentVolume& volume);
  void RemoveVolume(const std::string& name);
  void SetCapacity(const v1beta1::CsiStorageCapacity& capacity);
  void RemoveCapacity(const v1beta1::CsiStorageCapacity& capacity);

  absl::flat_hash_map<std::string, std::unique_ptr<IndexedVolume>> volumes_;  // By name.
  absl::flat_hash_map<std::string, ByNodeLabel<IndexedVolume>> by_class_;
  // Names of volumes by the `namespace/name` of the claim in their claimRef.
  absl::flat_hash_map<std::string, std::set<std::string>> by_claim_;
  absl::flat_hash_map<std::string, std::unique_ptr<IndexedCapacity>> capacities_;
  absl::flat_hash_map<std::string, std::string> class_of_capacity_;
  absl::flat_hash_map<std::string, ByNodeLabel<IndexedCapacity>> capacities_by_class_;
  Assumptions assumed_volumes_;                                             // By name.
  Assumptions assumed_claims_;                                              // By `namespace/name`.
  absl::flat_hash_map<std::string, std::vector<v1beta1::Effect>> effects_;  // By the pod's uid.
};

// Whether the volume is reserved for the claim: by name, and by uid if the reference has one.
bool IsMeantFor(const v1beta1::ClaimReference& reference,
                const v1beta1::PersistentVolumeClaim& claim);

}  // namespace outboard::volume_binding

#endif  // OUTBOARD_PLUGINS_VOLUME_BINDING_VOLUME_INDEX_H_
