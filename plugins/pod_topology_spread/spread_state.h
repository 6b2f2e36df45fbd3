// What PodTopologySpread remembers of an attempt: its constraints, and the columns they count by.
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

// kube-scheduler's errors where a profile has Filter without PreFilter, or Score without PreScore.
inline constexpr char kNoFilterState[] =
    "reading \"PreFilterPodTopologySpread\" from cycleState: not found";
inline constexpr char kNoScoreState[] =
    "error reading \"PreScorePodTopologySpread\" from cycleState: not found";

// The columns of the index that a constraint reads.
struct SpreadColumns {
  std::shared_ptr<const Topology> topology;
  std::shared_ptr<const MatchingPods> matching;
  std::shared_ptr<const NodeGroup> group;  // Null where no sums are needed.
  std::shared_ptr<const DomainSums> sums;
};

// A constraint that rejects nodes.
struct HardConstraint {
  SpreadColumns columns;
  int32_t max_skew = 1;
  int32_t min_domains = 1;
  bool self_match = false;  // The pod that is to be placed would count.
  PodSelector selector;
};

// The hard constraints of a pod, and how hypotheses change their counts.
//
// Threading: within the call. Lifetime: the attempt's; counts are the index's, so they hold until
//            the mirror changes. Errors: none.
class FilterState : public sdk::AttemptState {
 public:
  explicit FilterState(std::vector<HardConstraint> constraints);
  // Clones share the constraints; nothing that grows with the cluster is copied.
  std::unique_ptr<sdk::AttemptState> Clone() const override {
    return std::make_unique<FilterState>(*this);
  }
  size_t size() const { return counts_.size(); }

  // As if `count` pods like this one came to the node. As in kube-scheduler, pods that are being
  // deleted change the counts here, though they are not in them.
  void UpdateWithPod(const v1alpha1::Pod& pod, sdk::Slot slot, int64_t count);

  struct Masks {
    uint64_t missing = 0;  // Nodes without the constraint's label.
    uint64_t skewed = 0;   // Nodes on which the pod would make the skew too large.
  };
  // Which candidates constraint `i` rejects.
  Masks Judge(size_t i, absl::Span<const sdk::Slot> slots, uint64_t candidates) const;

 private:
  struct Lowest {
    Domain domain = kNoDomain;
    int64_t pods = std::numeric_limits<int32_t>::max();
  };
  // What a hypothesis may change.
  struct Counts {
    // The two domains with the fewest pods, kept as kube-scheduler keeps them: with changes in one
    // domain only, which is all that hypotheses do, the first is always the minimum.
    Lowest lowest[2];
    std::vector<std::pair<Domain, int64_t>> changes;  // Pods more or less than in the sums.

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
  double weight = 0;                  // Of a pod.
  std::vector<double> domain_scores;  // By domain, unless by_node.
};

// The soft constraints of a pod.
//
// Threading: within the call. Lifetime: as FilterState. Errors: none.
struct ScoreState : sdk::AttemptState {
  // Computes weights and domains' scores, given the feasible nodes.
  void Weigh(absl::Span<const sdk::Slot> nodes);
  // The node lacks a label that all need.
  bool Ignores(sdk::Slot slot) const;
  // The higher, the more pods are there already.
  double Score(sdk::Slot slot) const;

  bool require_all_labels = true;
  std::vector<SoftConstraint> constraints;
};

}  // namespace outboard::pod_topology_spread

#endif  // OUTBOARD_PLUGINS_POD_TOPOLOGY_SPREAD_SPREAD_STATE_H_
