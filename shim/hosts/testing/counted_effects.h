// What tests of hosts see of pods that were bound, or were not.
#ifndef OUTBOARD_SHIM_HOSTS_TESTING_COUNTED_EFFECTS_H_
#define OUTBOARD_SHIM_HOSTS_TESTING_COUNTED_EFFECTS_H_

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "shim/scheduler/testing/no_cluster_actions.h"

namespace outboard::hosts {

class CountedEffects final : public scheduler::NoClusterActions {
 public:
  void Bind(const scheduler::BindOrder& order, absl::Time) override {
    bound.push_back(absl::StrCat(order.pod->pod.name(), " ", order.node_name));
  }
  void RecordFailed(const kube::PodObject& pod, const std::string&, const std::string& message,
                    absl::Time) override {
    failed.push_back(absl::StrCat(pod.pod.name(), ": ", message));
  }
  std::vector<std::string> bound, failed;
};

}  // namespace outboard::hosts

#endif  // OUTBOARD_SHIM_HOSTS_TESTING_COUNTED_EFFECTS_H_
