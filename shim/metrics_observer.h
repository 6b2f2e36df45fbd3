// Turns what the scheduler and its queue report into metrics.
#ifndef OUTBOARD_SHIM_METRICS_OBSERVER_H_
#define OUTBOARD_SHIM_METRICS_OBSERVER_H_

#include <array>
#include <iterator>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "proto/workloads/workload_type.h"
#include "shim/clock.h"
#include "shim/config/workload_labels.h"
#include "shim/gang_waits.h"
#include "shim/metrics/metrics.h"
#include "shim/queue/queue_seams.h"
#include "shim/scheduler/cluster_actions.h"

namespace outboard::shim {

// Threading: scheduling thread.
// Lifetime: the metrics outlive this object.
class MetricsObserver final : public scheduler::Observer, public queue::QueueObserver {
 public:
  // `clock`: as the scheduler's times.
  MetricsObserver(metrics::Metrics* metrics, const config::WorkloadLabels& labels,
                  absl::Time (*clock)() = &SteadyNow);
  // For later attempts and waits.
  void SetLabels(const config::WorkloadLabels& labels);

  void OnAlgorithm(const kube::PodObject& pod, const framework::AlgorithmProfile& profile,
                   const framework::AlgorithmResult& result, const v1beta1::PlanResponse& response,
                   absl::Duration elapsed) override;
  void OnAttemptEnd(const kube::PodObject& pod, const std::string& profile,
                    scheduler::AttemptResult result, const std::string& node_name,
                    const std::string& message, absl::Duration since_attempt_began) override;
  void OnPreemption(const kube::PodObject& pod, const std::string& node_name,
                    const std::vector<kube::PodPtr>& victims, size_t to_evict) override;
  void OnBudgetViolations(size_t evictions) override;
  void OnPreemptionLimited(const kube::PodObject& pod, absl::string_view limit) override;
  void OnBound(const kube::PodObject& pod, const std::string& profile, int attempts,
               absl::Duration since_first_attempt, bool was_flushed) override;
  void OnBoundElsewhere(const kube::PodObject& pod) override;
  void OnPermitWaitEnd(const kube::PodObject& pod, absl::Duration waited,
                       v1beta1::Code code) override;
  void OnFailurePolicy(const std::string& host, v1beta1::ExtensionPoint point,
                       absl::string_view policy) override;
  void OnProtocolError(const std::string& host, const std::string& host_instance,
                       const absl::Status& status) override;
  void OnGuardRefusal(absl::string_view shortage) override;
  void OnEventHandled(absl::string_view event, absl::Duration elapsed) override;
  void OnCall(v1beta1::ExtensionPoint point, const std::string& profile, v1beta1::Code code,
              absl::Duration elapsed) override;

  void OnPod(const kube::PodObject& pod) override;
  void OnPodLeft(const kube::PodObject& pod) override;
  void OnIncoming(absl::string_view queue, absl::string_view event) override;
  void OnUnschedulableReason(const std::string& plugin, const std::string& profile,
                             int delta) override;

 private:
  using Counters = std::array<metrics::Counter*, metrics::kAttemptResults.size()>;

  Counters CountersOf(absl::string_view workload_type);
  const Counters& AttemptsOf(const v1beta1::Pod& pod) const;

  metrics::Metrics* const metrics_;
  absl::Time (*const clock_)();
  config::WorkloadLabels labels_;
  absl::flat_hash_map<std::string, Counters> attempts_by_label_;  // by value in lower case
  Counters attempts_with_other_label_;
  std::array<Counters, std::size(workloads::kWorkloadTypes)> attempts_by_type_;  // by WorkloadType
  GangWaits gang_waits_;
};

}  // namespace outboard::shim

#endif  // OUTBOARD_SHIM_METRICS_OBSERVER_H_
