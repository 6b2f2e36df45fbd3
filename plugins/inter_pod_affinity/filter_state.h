// InterPodAffinity's state of one pod, from PreFilter to Filter.
#ifndef OUTBOARD_PLUGINS_INTER_POD_AFFINITY_FILTER_STATE_H_
#define OUTBOARD_PLUGINS_INTER_POD_AFFINITY_FILTER_STATE_H_

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "plugin_host/sdk/attempt.h"
#include "plugins/inter_pod_affinity/affinity_index.h"
#include "plugins/inter_pod_affinity/pod_term.h"
#include "plugins/inter_pod_affinity/topology.h"

namespace outboard::inter_pod_affinity {

// Numbers by domain of one topology key.
template <typename Number>
struct ByDomain {
  std::shared_ptr<const Topology> topology;
  std::vector<Number> numbers;

  Number At(sdk::Slot slot) const {
    const uint32_t domain = topology->DomainOf(slot);
    return domain < numbers.size() ? numbers[domain] : 0;
  }
};

// Returns the list entry of a topology key; adds it if it is missing.
template <typename Number>
ByDomain<Number>& NumbersOf(const std::shared_ptr<const Topology>& topology,
                            std::vector<ByDomain<Number>>* list) {
  for (ByDomain<Number>& entry : *list) {
    if (entry.topology == topology) return entry;
  }
  list->push_back({topology, std::vector<Number>(topology->size(), 0)});
  return list->back();
}

// The counts of PreFilter, plus the changes of AddPod and RemovePod. Copies share the counts, so a
// copy costs only the changes.
//
// Threading: thread-compatible.
// Lifetime:  one attempt.
// Errors:    none.
class FilterState : public sdk::AttemptState {
 public:
  // Why a node is rejected, in the order of the checks.
  enum class Obstacle { kNone, kAffinity, kAntiAffinity, kExistingAntiAffinity };

  // `rules` may be null. `labels` are those of the pod's namespace.
  FilterState(const v1beta1::Pod& pod, const std::shared_ptr<const PodRules>& rules,
              const NamespaceLabels& labels, AffinityIndex* index);
  std::unique_ptr<AttemptState> Clone() const override {
    return std::make_unique<FilterState>(*this);
  }

  // True if no node can be rejected, now or because of running pods.
  bool idle() const { return counts_ == nullptr; }
  Obstacle FindObstacle(const sdk::NodeView& node) const;
  // `other` was added to the node (`sign` 1) or removed from it (-1). `pod` is the incoming pod.
  void Change(const v1beta1::Pod& pod, const NamespaceLabels& labels, const v1beta1::Pod& other,
              const PodRules* other_rules, const sdk::NodeView& node, int32_t sign);

 private:
  enum Kind { kAffinity, kAntiAffinity, kExisting, kKinds };
  struct Counts {
    std::array<std::vector<ByDomain<int32_t>>, kKinds> of;
    std::shared_ptr<const std::vector<PodTerm>> affinity;  // Resolved; null without terms.
    std::vector<std::shared_ptr<const std::vector<PodTerm>>> anti_affinity;  // One term each.
    int64_t affinity_total = 0;  // Over all keys and domains.
    bool matches_itself = false;
  };
  struct Delta {
    Kind kind;
    uint32_t key_id;    // In NodeTable::label_keys,
    uint32_t value_id;  // and label_values.
    int32_t count;
  };

  void AddDelta(Kind kind, const std::string& topology_key, const sdk::NodeView& node,
                int32_t sign);
  int64_t DeltaOf(Kind kind, const Topology& topology, const sdk::NodeView& node) const;
  bool SatisfiesAffinity(const sdk::NodeView& node) const;
  bool Blocked(Kind kind, const sdk::NodeView& node) const;
  bool BlockedByOtherKeys(const sdk::NodeView& node) const;

  std::shared_ptr<const Counts> counts_;
  std::vector<Delta> deltas_;
};

}  // namespace outboard::inter_pod_affinity

#endif  // OUTBOARD_PLUGINS_INTER_POD_AFFINITY_FILTER_STATE_H_
