// Turns events of the scheduler and its queue into metrics.
#ifndef OUTBOARD_SHIM_METRICS_OBSERVER_H_
#define OUTBOARD_SHIM_METRICS_OBSERVER_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "shim/hosts/host_registry.h"
#include "shim/metrics/metrics.h"
#include "shim/queue/queue_seams.h"
#include "shim/scheduler/cluster_actions.h"
#include "shim/scheduler/scheduler.h"

namespace outboard::shim {

// Threading: scheduling thread.
// Lifetime: the metrics outlive this object.
class MetricsObserver final : public scheduler::Observer, public queue::QueueObserver {
 public:
  explicit MetricsObserver(metrics::Metrics* metrics) : metrics_(metrics) {}

  void OnAlgorithm(const kube::PodObject& pod, const framework::AlgorithmProfile& profile,
                   const framework::AlgorithmResult& result,
                   const v1alpha1::CycleResponse& response, absl::Duration elapsed) override;
  void OnAttemptEnd(const kube::PodObject& pod, const std::string& profile,
                    scheduler::AttemptResult result, const std::string& node_name,
                    const std::string& message, absl::Duration since_attempt_began) override;
  void OnPreemption(const kube::PodObject& pod, const std::string& node_name,
                    const std::vector<kube::PodPtr>& victims, size_t to_evict) override;
  void OnBound(const kube::PodObject& pod, const std::string& profile, int attempts,
               absl::Duration since_first_attempt, bool was_flushed) override;
  void OnPermitWaitEnd(const kube::PodObject& pod, absl::Duration waited,
                       v1alpha1::Code code) override;
  void OnFailurePolicy(const std::string& host, v1alpha1::ExtensionPoint point,
                       absl::string_view policy) override;
  void OnProtocolError(const std::string& host_instance, const absl::Status& status) override;
  void OnEventHandled(absl::string_view event, absl::Duration elapsed) override;
  void OnCall(v1alpha1::ExtensionPoint point, const std::string& profile, v1alpha1::Code code,
              absl::Duration elapsed) override;

  void OnIncoming(absl::string_view queue, absl::string_view event) override;
  void OnUnschedulableReason(const std::string& plugin, const std::string& profile,
                             int delta) override;

  // Sets the gauges of the scheduler's state. Cheap; called about once a second.
  void UpdateHosts(const hosts::HostRegistry& hosts);
  void UpdateGauges(const scheduler::Scheduler& scheduler, const cache::ClusterState& cluster);

 private:
  metrics::Metrics* const metrics_;
  std::map<std::pair<std::string, std::string>, int64_t> counted_switches_;
  std::set<std::string> gang_jobs_;  // jobs with their own label value
};

}  // namespace outboard::shim

#endif  // OUTBOARD_SHIM_METRICS_OBSERVER_H_
