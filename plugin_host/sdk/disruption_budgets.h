// PodDisruptionBudgets for preemption.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_DISRUPTION_BUDGETS_H_
#define OUTBOARD_PLUGIN_HOST_SDK_DISRUPTION_BUDGETS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "outboard/v1beta1/objects.pb.h"
#include "plugin_host/sdk/node_table.h"
#include "plugin_host/sdk/selectors.h"

namespace outboard::sdk {

// All budgets of the cluster, with their selectors compiled.
//
// Threading: thread-compatible; the cache's thread.
// Lifetime: a value.
// Errors: a budget with an invalid selector counts no pod, as in kube-scheduler.
class DisruptionBudgets {
 public:
  void Clear() { by_namespace_.clear(); }
  // Call from a ClusterObserver; ignores objects of other kinds.
  void OnObjectChanged(const v1beta1::ClusterObject& object);
  void OnObjectRemoved(const v1beta1::ClusterObject& object);

  // Marks pods whose eviction violates a budget, if the pods leave in this order: true at their
  // positions.
  std::vector<bool> Violated(const std::vector<PodRecord*>& pods) const;
  // Whether any budget counts the pod.
  bool Count(const v1beta1::Pod& pod) const;

 private:
  void Set(const v1beta1::PodDisruptionBudget& budget);
  void Remove(absl::string_view ns, const std::string& name);

  struct Budget {
    CompiledLabelSelector selector;
    int32_t allowed = 0;
    absl::flat_hash_set<std::string> disrupted;  // Names of pods that are already counted.
  };
  absl::flat_hash_map<std::string, std::map<std::string, Budget>> by_namespace_;
};

}  // namespace outboard::sdk

#endif  // OUTBOARD_PLUGIN_HOST_SDK_DISRUPTION_BUDGETS_H_
