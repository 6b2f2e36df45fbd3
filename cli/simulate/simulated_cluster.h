// The cluster around a simulated scheduler. It executes orders at once.
#ifndef OUTBOARD_CLI_SIMULATE_SIMULATED_CLUSTER_H_
#define OUTBOARD_CLI_SIMULATE_SIMULATED_CLUSTER_H_

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "cli/simulate/custom_objects.h"
#include "cli/simulate/volume_controller.h"
#include "shim/scheduler/cluster_actions.h"
#include "shim/scheduler/scheduler.h"

namespace outboard::simulate {

// Simulates the API server and its controllers: binds, evictions and writes succeed, and CarryOut
// delivers their watch events. Drops Events.
//
// Threading: the scheduler's thread.
// Lifetime: must outlive its scheduler.
class SimulatedCluster final : public scheduler::ClusterActions {
 public:
  explicit SimulatedCluster(const std::vector<kube::ClusterObjectPtr>& objects)
      : volumes_(objects), custom_objects_(objects) {}

  // Called after the scheduler; they must not call it.
  struct Callbacks {
    std::function<void(const kube::PodPtr& bound, absl::Time now)> on_bound;
    std::function<void(const kube::PodPtr& victim, absl::Time now)> on_evicted;
    std::function<void(const scheduler::EffectOrder& order)> on_write = nullptr;
  };
  void SetCallbacks(Callbacks callbacks) { callbacks_ = std::move(callbacks); }

  // From now on, bound pods get a start time in whole seconds, as from a kubelet.
  void StartPods() { starts_pods_ = true; }

  const std::vector<kube::ClusterObjectPtr>& objects() const { return volumes_.objects(); }

  // Delivers the results of orders, as the API server's watch does.
  void CarryOut(scheduler::Scheduler* scheduler, absl::Time now);
  // Runs the volume controller and the provisioners. Returns whether they changed anything.
  bool ReconcileVolumes(scheduler::Scheduler* scheduler, absl::Time now);

  void Bind(const scheduler::BindOrder& order, absl::Time now) override {
    orders_.push_back(order);
  }
  void Write(const scheduler::EffectOrder& order, absl::Time now) override {
    if (callbacks_.on_write) callbacks_.on_write(order);
    writes_.push_back(order);
  }
  void RecordScheduled(const kube::PodObject&, const std::string&, const std::string&,
                       absl::Time) override {}
  void RecordFailed(const kube::PodObject&, const std::string&, const std::string&,
                    absl::Time) override {}
  void Evict(const scheduler::EvictOrder& order, absl::Time now) override {
    evictions_.push_back(order);
  }
  void RecordPreempted(const kube::PodObject&, const std::string&, const std::string&,
                       const std::string&, bool, absl::Time) override {}
  void PatchStatus(const kube::PodObject& pod, const std::optional<scheduler::PodScheduledFalse>&,
                   const std::optional<std::string>& nominated_node, absl::Time) override {
    if (nominated_node.has_value()) nominations_.emplace_back(pod.uid(), *nominated_node);
  }

 private:
  void WriteObject(const scheduler::EffectOrder& order, scheduler::Scheduler* scheduler,
                   absl::Time now);

  Callbacks callbacks_;
  std::deque<scheduler::BindOrder> orders_;
  std::deque<scheduler::EvictOrder> evictions_;
  std::vector<std::pair<std::string, std::string>> nominations_;  // pod uid, node
  int changes_ = 0;
  bool starts_pods_ = false;
  std::deque<scheduler::EffectOrder> writes_;
  VolumeController volumes_;
  CustomObjects custom_objects_;
};

}  // namespace outboard::simulate

#endif  // OUTBOARD_CLI_SIMULATE_SIMULATED_CLUSTER_H_
