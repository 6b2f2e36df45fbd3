// The simulator's output about a pod's first attempt.
#ifndef OUTBOARD_CLI_SIMULATE_REPORT_H_
#define OUTBOARD_CLI_SIMULATE_REPORT_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "shim/diagnostics/pod_report.h"
#include "shim/scheduler/cluster_actions.h"

namespace outboard::simulate {

using diagnostics::PodReport;

// One line without a newline.
std::string ToJsonLine(const PodReport& report);

// Collects the reports of a running scheduler.
//
// Threading: the scheduler's thread.
// Lifetime: `cluster` must outlive it.
class Reporter final : public scheduler::Observer {
 public:
  using Sink = std::function<void(const PodReport&)>;
  // `*cluster` is set when the scheduler exists.
  Reporter(const cache::ClusterState* const* cluster, Sink sink)
      : cluster_(cluster), sink_(std::move(sink)) {}

  void OnAlgorithm(const kube::PodObject& pod, const framework::AlgorithmProfile& profile,
                   const framework::AlgorithmResult& result,
                   const v1alpha1::CycleResponse& response, absl::Duration elapsed) override;
  void OnPreemption(const kube::PodObject& pod, const std::string& node_name,
                    const std::vector<kube::PodPtr>& victims, size_t to_evict) override;
  void OnAttemptEnd(const kube::PodObject& pod, const std::string& profile,
                    scheduler::AttemptResult result, const std::string& node_name,
                    const std::string& message, absl::Duration since_attempt_began) override;

  // A plugin orders a write of an object. Ignored if it is not for a pod.
  void OnWrite(const scheduler::EffectOrder& order);

  // Pods whose first attempt has ended.
  size_t reported() const { return reported_; }
  bool HasReported(const std::string& uid) const { return done_.contains(uid); }

 private:
  const cache::ClusterState* const* const cluster_;
  const Sink sink_;
  absl::flat_hash_map<std::string, PodReport>
      open_;  // by uid: the algorithm ran, the attempt has not ended
  absl::flat_hash_map<std::string, bool> done_;
  size_t reported_ = 0;
};

}  // namespace outboard::simulate

#endif  // OUTBOARD_CLI_SIMULATE_REPORT_H_
