// Attempts that cannot place their pods, whatever hosts say.
#ifndef OUTBOARD_SHIM_CYCLE_VAIN_ATTEMPTS_H_
#define OUTBOARD_SHIM_CYCLE_VAIN_ATTEMPTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "shim/cycle/cluster_state.h"
#include "shim/cycle/node_guard.h"
#include "shim/kube/objects.h"

namespace outboard::cycle {

// Knows which pods the shim's own books have no room for. What it found out holds until the cluster
// changes, so that many pods that are alike cost one look at the nodes.
//
// Threading: as ClusterState. Lifetime: the cluster outlives it. Errors: none.
class VainAttempts {
 public:
  explicit VainAttempts(const ClusterState* cluster) : cluster_(cluster) {}

  // Whether no node can take the pod. `may_preempt`: nor can one if all of lower priority left.
  bool IsVain(const kube::PodObject& pod, const GuardScope& scope, bool may_preempt);
  // The same of a pod that is about to be tried, and whether it was so when it was asked about
  // last: then those who rejected it would do so again.
  bool IsVainAgain(const kube::PodObject& pod, const GuardScope& scope, bool may_preempt);

 private:
  bool FitsNowhere(const kube::PodObject& pod, const GuardScope& scope);
  int32_t LowestPriority();

  const ClusterState* const cluster_;
  int64_t version_ = -1;
  std::optional<int32_t> lowest_priority_;  // of pods with a node
  struct Known {
    PodDemand demand;
    const GuardScope* scope;
    bool fits_nowhere;
  };
  std::vector<Known> known_;
  absl::flat_hash_set<std::string> were_vain_;  // uids; some may be gone
};

}  // namespace outboard::cycle

#endif  // OUTBOARD_SHIM_CYCLE_VAIN_ATTEMPTS_H_
