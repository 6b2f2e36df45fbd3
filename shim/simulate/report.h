// What the simulator prints about a pod's first attempt.
#ifndef OUTBOARD_SHIM_SIMULATE_REPORT_H_
#define OUTBOARD_SHIM_SIMULATE_REPORT_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "shim/cycle/effects.h"
#include "shim/explain/pod_report.h"

namespace outboard::simulate {

using explain::PodReport;

// One line, without a line end.
std::string ToJsonLine(const PodReport& report);

// Collects the reports while a scheduler works.
//
// Threading: as the scheduler. Lifetime: `cluster` outlives it.
class Reporter final : public cycle::Observer {
 public:
  using Sink = std::function<void(const PodReport&)>;
  // `cluster` points to where the scheduler's state will be known once the scheduler is made.
  Reporter(const cycle::ClusterState* const* cluster, Sink sink)
      : cluster_(cluster), sink_(std::move(sink)) {}

  void OnAlgorithm(const kube::PodObject& pod, const cycle::AlgorithmProfile& profile,
                   const cycle::AlgorithmResult& result, const v1alpha1::CycleResponse& response,
                   absl::Duration elapsed) override;
  void OnPreemption(const kube::PodObject& pod, const std::string& node_name,
                    const std::vector<kube::PodPtr>& victims, size_t to_evict) override;
  void OnAttemptEnd(const kube::PodObject& pod, const std::string& profile,
                    cycle::AttemptResult result, const std::string& node_name,
                    const std::string& message, absl::Duration since_attempt_began) override;

  // A plugin wants an object written; passed over if it is for no pod.
  void OnWrite(const cycle::EffectOrder& order);

  // Pods whose first attempt has ended.
  size_t reported() const { return reported_; }
  bool HasReported(const std::string& uid) const { return done_.contains(uid); }

 private:
  const cycle::ClusterState* const* const cluster_;
  const Sink sink_;
  absl::flat_hash_map<std::string, PodReport>
      open_;  // by uid: the algorithm ran, the attempt has not ended
  absl::flat_hash_map<std::string, bool> done_;
  size_t reported_ = 0;
};

}  // namespace outboard::simulate

#endif  // OUTBOARD_SHIM_SIMULATE_REPORT_H_
