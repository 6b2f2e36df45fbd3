// The cluster around a simulated scheduler: what it orders is done at once.
#ifndef OUTBOARD_SHIM_SIMULATE_WORLD_H_
#define OUTBOARD_SHIM_SIMULATE_WORLD_H_

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "shim/cycle/effects.h"
#include "shim/cycle/scheduler.h"
#include "shim/simulate/custom_objects.h"
#include "shim/simulate/volume_controller.h"

namespace outboard::simulate {

// Stands for the API server and its controllers: binds, evictions and writes succeed, and news of
// them come with CarryOut. Nobody reads events.
//
// Threading: as the scheduler. Lifetime: outlives the scheduler that it serves.
class World final : public cycle::Effects {
 public:
  explicit World(const std::vector<kube::ClusterObjectPtr>& objects)
      : volumes_(objects), custom_objects_(objects) {}

  // Told after the scheduler was; they must not call it.
  struct Callbacks {
    std::function<void(const kube::PodPtr& bound, absl::Time now)> on_bound;
    std::function<void(const kube::PodPtr& victim, absl::Time now)> on_evicted;
    std::function<void(const cycle::EffectOrder& order)> on_write = nullptr;
  };
  void SetCallbacks(Callbacks callbacks) { callbacks_ = std::move(callbacks); }

  // Pods that are bound say from now on when they started, as kubelets do, in whole seconds.
  void StartPods() { starts_pods_ = true; }

  const std::vector<kube::ClusterObjectPtr>& objects() const { return volumes_.objects(); }

  // Confirms what was ordered, as the API server and its watch would.
  void CarryOut(cycle::Scheduler* scheduler, absl::Time now);
  // What the volume controller and provisioners do of their own accord; whether that was anything.
  bool ReconcileVolumes(cycle::Scheduler* scheduler, absl::Time now);

  void Bind(const cycle::BindOrder& order, absl::Time now) override { orders_.push_back(order); }
  void Write(const cycle::EffectOrder& order, absl::Time now) override {
    if (callbacks_.on_write) callbacks_.on_write(order);
    writes_.push_back(order);
  }
  void RecordScheduled(const kube::PodObject&, const std::string&, const std::string&,
                       absl::Time) override {}
  void RecordFailed(const kube::PodObject&, const std::string&, const std::string&,
                    absl::Time) override {}
  void Evict(const cycle::EvictOrder& order, absl::Time now) override {
    evictions_.push_back(order);
  }
  void RecordPreempted(const kube::PodObject&, const std::string&, const std::string&,
                       const std::string&, bool, absl::Time) override {}
  void PatchStatus(const kube::PodObject& pod, const std::optional<cycle::PodScheduledFalse>&,
                   const std::optional<std::string>& nominated_node, absl::Time) override {
    if (nominated_node.has_value()) nominations_.emplace_back(pod.uid(), *nominated_node);
  }

 private:
  void WriteObject(const cycle::EffectOrder& order, cycle::Scheduler* scheduler, absl::Time now);

  Callbacks callbacks_;
  std::deque<cycle::BindOrder> orders_;
  std::deque<cycle::EvictOrder> evictions_;
  std::vector<std::pair<std::string, std::string>> nominations_;  // pod uid, node
  int changes_ = 0;
  bool starts_pods_ = false;
  std::deque<cycle::EffectOrder> writes_;
  VolumeController volumes_;
  CustomObjects custom_objects_;
};

}  // namespace outboard::simulate

#endif  // OUTBOARD_SHIM_SIMULATE_WORLD_H_
