// Effects on the cluster, recorded in place of carried out.
#ifndef OUTBOARD_SHIM_SCHEDULER_TESTING_RECORDED_ACTIONS_H_
#define OUTBOARD_SHIM_SCHEDULER_TESTING_RECORDED_ACTIONS_H_

#include <optional>
#include <string>
#include <vector>

#include "shim/scheduler/scheduler.h"

namespace outboard::framework::several_hosts {

class RecordedActions final : public scheduler::ClusterActions {
 public:
  void Bind(const scheduler::BindOrder& order, absl::Time) override {
    binds.push_back(order.node_name);
    binder = order.ordered_by;
  }
  void Write(const scheduler::EffectOrder& order, absl::Time) override { writes.push_back(order); }
  void Evict(const scheduler::EvictOrder& order, absl::Time) override {
    evicted.push_back(order.victim->pod.name());
  }
  void RecordPreempted(const kube::PodObject&, const std::string&, const std::string&,
                       const std::string&, bool, absl::Time) override {}
  void RecordScheduled(const kube::PodObject&, const std::string&, const std::string&,
                       absl::Time) override {}
  void RecordFailed(const kube::PodObject&, const std::string&, const std::string& message,
                    absl::Time) override {
    failures.push_back(message);
  }
  void PatchStatus(const kube::PodObject&, const std::optional<scheduler::PodScheduledFalse>&,
                   const std::optional<std::string>& nominated, absl::Time) override {
    nominations.push_back(nominated.value_or("-"));
  }
  std::vector<std::string> binds, evicted, failures, nominations;
  scheduler::BindOutcomeHandler* binder = nullptr;
  std::vector<scheduler::EffectOrder> writes;
};

}  // namespace outboard::framework::several_hosts

#endif  // OUTBOARD_SHIM_SCHEDULER_TESTING_RECORDED_ACTIONS_H_
