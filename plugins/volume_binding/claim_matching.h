// Judges whether the volumes of a pod's claims reach a node, can be bound there or made for it.
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
  const v1alpha1::PersistentVolumeClaim* claim = nullptr;
  const v1alpha1::StorageClass* storage_class = nullptr;
  std::optional<std::string> selected_node;
  std::optional<sdk::CompiledLabelSelector> selector;  // Absent: every volume.
  std::string selector_error;                          // Unless empty: it cannot be parsed.
  std::vector<const IndexedVolume*> meant_for_it;
  const ByNodeLabel<IndexedVolume>* of_class = nullptr;
  // Volumes of the class that are not tied to a node's label and would do; the smallest first.
  std::vector<const IndexedVolume*> unkeyed;
  std::vector<sdk::CompiledNodeTerm> topologies;
  // Set if its driver publishes how much is left.
  bool check_capacity = false;
};

// The claims of a pod. Pointers hold for one version of the mirror.
struct PodClaims {
  std::vector<const IndexedVolume*> bound;  // Null: the volume does not exist.
  bool any_migratable = false;
  std::vector<DelayedClaim> delayed;
  bool unbound_immediate = false;
};

// What is to be done for a pod on a node.
struct Decision {
  struct Binding {
    const IndexedVolume* volume;
    const v1alpha1::PersistentVolumeClaim* claim;
  };
  std::vector<Binding> bindings;
  std::vector<const v1alpha1::PersistentVolumeClaim*> provisions;
};

// Why a node will not do; bits, in the order in which they are told.
enum Reason : uint8_t {
  kNodeConflict = 1,
  kBindConflict = 2,
  kNotEnoughSpace = 4,
  kVolumeMissing = 8,
};
inline constexpr int kReasonSets = 16;

struct Outcome {
  uint8_t reasons = 0;  // 0: the node will do.
  std::string error;    // Unless empty: it cannot be told.
};

// Whether a claim and its volume have found each other for good.
bool IsFullyBound(const v1alpha1::PersistentVolumeClaim& claim);

// Sorts the claims of a pod. Not success: PreFilter's verdict. `any` tells whether there are claims
// at all.
sdk::Verdict CollectClaims(const v1alpha1::Pod& pod, const sdk::ClusterObjects& objects,
                           const VolumeIndex& index, PodClaims* claims, bool* any);

// Judges a node. `decision` may be null; it is only complete if the node will do.
Outcome JudgeNode(const PodClaims& claims, const sdk::NodeView& node,
                  const sdk::ClusterObjects& objects, const VolumeIndex& index, Decision* decision);

}  // namespace outboard::volume_binding

#endif  // OUTBOARD_PLUGINS_VOLUME_BINDING_CLAIM_MATCHING_H_
