// PodTopologySpread's state of an attempt: the constraints and the columns that they read.
#ifndef OUTBOARD_PLUGINS_POD_TOPOLOGY_SPREAD_SPREAD_STATE_H_
#define OUTBOARD_PLUGINS_POD_TOPOLOGY_SPREAD_SPREAD_STATE_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "plugin_host/sdk/attempt.h"
#include "plugins/pod_topology_spread/constraints.h"
#include "plugins/pod_topology_spread/spread_index.h"

namespace outboard::pod_topology_spread {

// kube-scheduler's errors if a profile has Filter without PreFilter, or Score without PreScore.
inline constexpr char kNoFilterState[] =
    "reading \"PreFilterPodTopologySpread\" from cycleState: not found";
inline constexpr char kNoScoreState[] =
    "error reading \"PreScorePodTopologySpread\" from cycleState: not found";

// The columns of the index that a constraint reads.
struct SpreadColumns {
  std::shared_ptr<const Topology> topology;
  std::shared_ptr<const MatchingPods> matching;
  std::shared_ptr<const NodeGroup> group;  // Null if no sums are needed.
  std::shared_ptr<const DomainSums> sums;
};

// A constraint that rejects nodes.
struct HardConstraint {
  SpreadColumns columns;
  int32_t max_skew = 1;
  int32_t min_domains = 1;
  bool self_match = false;  // The incoming pod would count.
  PodSelector selector;
};

// The hard constraints of a pod, and how hypotheses change their counts.
//
// Threading: within the call.
// Lifetime:  one attempt; counts belong to the index and are valid until the cluster cache changes.
// Errors:    none.
class FilterState : public sdk::AttemptState {
 public:
  explicit FilterState(std::vector<HardConstraint> constraints);
  // Clones share the constraints; nothing that grows with the cluster is copied.
  std::unique_ptr<sdk::AttemptState> Clone() const override {
    return std::make_unique<FilterState>(*this);
  }
  size_t size() const { return counts_.size(); }

  // As if `count` pods like `pod` were added to the node. As in kube-scheduler, a pod that is being
  // deleted changes the counts here, although the counts do not include it.
  void UpdateWithPod(const v1beta1::Pod& pod, sdk::Slot slot, int64_t count);

  struct Masks {
    uint64_t missing = 0;  // Nodes without the constraint's label.
    uint64_t skewed = 0;   // Nodes on which the pod would make the skew too large.
  };
  // The candidates that constraint `i` rejects.
  Masks Evaluate(size_t i, absl::Span<const sdk::Slot> slots, uint64_t candidates) const;

 private:
  struct Lowest {
    Domain domain = kNoDomain;
    int64_t pods = std::numeric_limits<int32_t>::max();
  };
  // The part that a hypothesis may change.
  struct Counts {
    // The two domains with the fewest pods, updated as in kube-scheduler. A hypothesis changes only
    // one domain, so the first is always the minimum.
    Lowest lowest[2];
    std::vector<std::pair<Domain, int64_t>> changes;  // Difference to the sums, in pods.

    void Update(Domain domain, int64_t pods);
    int64_t ChangeOf(Domain domain) const;
  };

  std::shared_ptr<const std::vector<HardConstraint>> constraints_;
  std::vector<Counts> counts_;  // By constraint.
};

// A constraint that lowers scores.
struct SoftConstraint {
  SpreadColumns columns;
  int32_t max_skew = 1;
  bool by_node = false;
  double weight = 0;                  // Per pod.
  std::vector<double> domain_scores;  // By domain, unless by_node.
};

// The soft constraints of a pod.
//
// Threading: within the call.
// Lifetime:  as FilterState.
// Errors:    none.
struct ScoreState : sdk::AttemptState {
  // Computes weights and domain scores from the feasible nodes.
  void Weigh(absl::Span<const sdk::Slot> nodes);
  // The node lacks a required label.
  bool Ignores(sdk::Slot slot) const;
  // Raw score: increases with the number of matching pods.
  double Score(sdk::Slot slot) const;

  bool require_all_labels = true;
  std::vector<SoftConstraint> constraints;
};

}  // namespace outboard::pod_topology_spread

#endif  // OUTBOARD_PLUGINS_POD_TOPOLOGY_SPREAD_SPREAD_STATE_H_
