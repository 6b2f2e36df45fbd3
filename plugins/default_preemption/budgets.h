// PodDisruptionBudgets, ready to be charged.
#ifndef OUTBOARD_PLUGINS_DEFAULT_PREEMPTION_BUDGETS_H_
#define OUTBOARD_PLUGINS_DEFAULT_PREEMPTION_BUDGETS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "plugin_host/sdk/node_table.h"
#include "plugin_host/sdk/selectors.h"
#include "proto/outboard/v1alpha1/objects.pb.h"

namespace outboard::default_preemption {

// All budgets of the cluster, with their selectors compiled.
//
// Threading: thread-compatible; the mirror's thread. Lifetime: a value. Errors: a budget whose
// selector cannot be parsed counts no pod, as in kube-scheduler.
class Budgets {
 public:
  void Clear() { by_namespace_.clear(); }
  void Set(const v1alpha1::PodDisruptionBudget& budget);
  void Remove(absl::string_view ns, const std::string& name);

  // Which of the pods cannot all leave without a budget being broken: true at their positions.
  // Earlier pods use up what is allowed first.
  std::vector<bool> Violated(const std::vector<sdk::PodRecord*>& pods) const;

 private:
  struct Budget {
    sdk::CompiledLabelSelector selector;
    int32_t allowed = 0;
    absl::flat_hash_set<std::string> disrupted;  // Names of pods that are counted already.
  };
  absl::flat_hash_map<std::string, std::map<std::string, Budget>> by_namespace_;
};

}  // namespace outboard::default_preemption

#endif  // OUTBOARD_PLUGINS_DEFAULT_PREEMPTION_BUDGETS_H_
