// For tests that look at something else than what a scheduler has done in the API.
#ifndef OUTBOARD_SHIM_SCHEDULER_TESTING_NO_CLUSTER_ACTIONS_H_
#define OUTBOARD_SHIM_SCHEDULER_TESTING_NO_CLUSTER_ACTIONS_H_

#include <optional>
#include <string>

#include "shim/scheduler/cluster_actions.h"

namespace outboard::scheduler {

// Does nothing; a test overrides what it is about.
class NoClusterActions : public ClusterActions {
 public:
  void Bind(const BindOrder&, absl::Time) override {}
  void Evict(const EvictOrder&, absl::Time) override {}
  void RecordPreempted(const kube::PodObject&, const std::string&, const std::string&,
                       const std::string&, bool, absl::Time) override {}
  void Write(const EffectOrder&, absl::Time) override {}
  void RecordScheduled(const kube::PodObject&, const std::string&, const std::string&,
                       absl::Time) override {}
  void RecordFailed(const kube::PodObject&, const std::string&, const std::string&,
                    absl::Time) override {}
  void PatchStatus(const kube::PodObject&, const std::optional<PodScheduledFalse>&,
                   const std::optional<std::string>&, absl::Time) override {}
};

}  // namespace outboard::scheduler

#endif  // OUTBOARD_SHIM_SCHEDULER_TESTING_NO_CLUSTER_ACTIONS_H_
