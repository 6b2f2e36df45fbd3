// Checks whether the volumes of a pod's claims reach a node, or can be bound or provisioned there.
#ifndef OUTBOARD_PLUGINS_VOLUME_BINDING_CLAIM_MATCHING_H_
#define OUTBOARD_PLUGINS_VOLUME_BINDING_CLAIM_MATCHING_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plugin_host/sdk/attempt.h"
#include "plugin_host/sdk/selectors.h"
#include "plugin_host/sdk/verdict.h"
#include "plugins/volume_binding/volume_index.h"

namespace outboard::volume_binding {

// A claim that waits for its first pod.
struct DelayedClaim {
  const v1beta1::PersistentVolumeClaim* claim = nullptr;
  const v1beta1::StorageClass* storage_class = nullptr;
  std::optional<std::string> selected_node;
  std::optional<sdk::CompiledLabelSelector> selector;  // Absent: every volume.
  std::string selector_error;                          // Parse error of the selector; empty: valid.
  std::vector<const IndexedVolume*> meant_for_it;
  const ByNodeLabel<IndexedVolume>* of_class = nullptr;
  // Matching volumes of the class without a node label key, smallest first.
  std::vector<const IndexedVolume*> unkeyed;
  std::vector<sdk::CompiledNodeTerm> topologies;
  // Set if its driver publishes the free capacity.
  bool check_capacity = false;
};

// The claims of a pod. Pointers are valid for one version of the cluster cache.
struct PodClaims {
  std::vector<const IndexedVolume*> bound;  // Null: the volume does not exist.
  bool any_migratable = false;
  std::vector<DelayedClaim> delayed;
  bool unbound_immediate = false;
};

// The actions for a pod on a node.
struct Decision {
  struct Binding {
    const IndexedVolume* volume;
    const v1beta1::PersistentVolumeClaim* claim;
  };
  std::vector<Binding> bindings;
  std::vector<const v1beta1::PersistentVolumeClaim*> provisions;
};

// Why a node is rejected: bits, in the order of the reported reasons.
enum Reason : uint8_t {
  kNodeConflict = 1,
  kBindConflict = 2,
  kNotEnoughSpace = 4,
  kVolumeMissing = 8,
};
inline constexpr int kReasonSets = 16;

struct Outcome {
  uint8_t reasons = 0;  // 0: the node is feasible.
  std::string error;    // Not empty: the check failed.
};

// Whether the binding between claim and volume is complete.
bool IsFullyBound(const v1beta1::PersistentVolumeClaim& claim);

// Classifies the claims of a pod. A result other than success is PreFilter's verdict. Sets `any` if
// the pod has claims.
sdk::Verdict CollectClaims(const v1beta1::Pod& pod, const sdk::ClusterObjects& objects,
                           const VolumeIndex& index, PodClaims* claims, bool* any);

// Checks a node. `decision` may be null; it is complete only if the node is feasible.
Outcome EvaluateNode(const PodClaims& claims, const sdk::NodeView& node,
                     const sdk::ClusterObjects& objects, const VolumeIndex& index,
                     Decision* decision);

}  // namespace outboard::volume_binding

#endif  // OUTBOARD_PLUGINS_VOLUME_BINDING_CLAIM_MATCHING_H_
