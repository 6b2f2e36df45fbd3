// Whether a pod wants nodes that a cloud may take back at any time.
#ifndef OUTBOARD_PLUGINS_COST_OPTIMIZED_SPOT_WISH_H_
#define OUTBOARD_PLUGINS_COST_OPTIMIZED_SPOT_WISH_H_

#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "outboard/v1beta1/objects.pb.h"
#include "outboard/v1beta1/plugin_host.pb.h"
#include "outboard/v1beta1/types.pb.h"
#include "plugin_host/sdk/args_reader.h"
#include "plugin_host/sdk/label_values.h"
#include "plugin_host/sdk/workload_type.h"

namespace outboard::cost_optimized {

// kWelcome: spot nodes first. kAverse: spot nodes last. kNeutral: only the price counts.
enum class SpotWish { kNeutral, kWelcome, kAverse };
const char* SpotWishName(SpotWish wish);
// `welcome`, `averse` or `neutral`, in any case. None if the text is anything else.
std::optional<SpotWish> ParseSpotWish(absl::string_view text);

// An annotation or a label of pods, and an annotation of PriorityClasses.
inline constexpr char kSpotKey[] = "outboard/spot";
// The annotation with which pods say that they write checkpoints; CostAwarePreemptor reads it too.
inline constexpr char kCheckpointingAnnotation[] = "outboard/checkpointing";
inline constexpr char kPriorityClassField[] = "Pod.spec.priorityClassName";
// Kubernetes' kind, which hosts get only where the shim's customResources name it.
inline constexpr char kPriorityClasses[] = "priorityclasses.v1.scheduling.k8s.io";

// Part of a JSON schema: the argument `spot`.
extern const char kSpotSchema[];

// Threading: thread-compatible.
// Lifetime:  a value.
// Errors:    Read reports them to the reader of the arguments; malformed values of pods and
//            PriorityClasses count as absent.
class SpotRules {
 public:
  // The arguments `spot`, `training` and `inference`.
  static SpotRules Read(const sdk::ArgsObject& root);

  // The first of: the pod's annotation, its label, its PriorityClass's annotation, the entry of its
  // PriorityClass in the arguments, its kind of workload. `malformed` may be null.
  SpotWish WishOf(const v1beta1::Pod& pod, sdk::MalformedValues* malformed) const;

  // For ClusterObserver. Other objects are ignored.
  void SetObject(const v1beta1::ClusterObject& object, sdk::MalformedValues* malformed);
  void RemoveObject(const v1beta1::ClusterObject& object, sdk::MalformedValues* malformed);
  void Clear() { by_annotated_class_.clear(); }

 private:
  SpotWish WishOfWorkload(const v1beta1::Pod& pod, sdk::MalformedValues* malformed) const;

  sdk::WorkloadTypes types_;
  SpotWish training_ = SpotWish::kAverse;
  SpotWish checkpointed_training_ = SpotWish::kNeutral;
  SpotWish inference_ = SpotWish::kNeutral;
  SpotWish other_ = SpotWish::kNeutral;
  absl::flat_hash_map<std::string, SpotWish> by_class_;            // Of the arguments.
  absl::flat_hash_map<std::string, SpotWish> by_annotated_class_;  // Of PriorityClass objects.
};

// For PluginDescriptor::declared_resources: the plugin works without it.
v1beta1::DeclaredResource PriorityClassResource();

}  // namespace outboard::cost_optimized

#endif  // OUTBOARD_PLUGINS_COST_OPTIMIZED_SPOT_WISH_H_
