// What affinity has to know of the pods that run, counted by domain and kept by deltas.
#ifndef OUTBOARD_PLUGINS_INTER_POD_AFFINITY_AFFINITY_INDEX_H_
#define OUTBOARD_PLUGINS_INTER_POD_AFFINITY_AFFINITY_INDEX_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "plugin_host/sdk/views.h"
#include "plugins/inter_pod_affinity/pod_term.h"
#include "plugins/inter_pod_affinity/term_finder.h"
#include "plugins/inter_pod_affinity/topology.h"

namespace outboard::inter_pod_affinity {

// A term that pods on nodes have, and in which domains they are.
struct ExistingTerm {
  PodTerm term;
  std::shared_ptr<const Topology> topology;
  DomainCounts counts;
  int64_t uses = 0;  // By pods, also those on nodes outside every domain.
};

// The distinct terms of one kind that pods on nodes have.
//
// Threading: thread-compatible. Lifetime: addresses of terms hold while they are in use.
// Errors:    none.
class ExistingTerms {
 public:
  ExistingTerm* Use(const PodTerm& term, Topologies* topologies);
  void Release(ExistingTerm* term);
  // Calls fn(const ExistingTerm&) for each term that matches a pod of a namespace with `labels`.
  template <typename Fn>
  void ForEachMatch(const v1alpha1::Pod& pod, const NamespaceLabels& labels, Fn&& fn) const {
    finder_.ForEachCandidate(pod, [&](const ExistingTerm* existing) {
      if (existing->term.Matches(pod, labels)) fn(*existing);
    });
  }
  bool empty() const { return terms_.empty(); }
  void Clear();

 private:
  absl::flat_hash_map<std::string, std::unique_ptr<ExistingTerm>> terms_;  // By signature.
  TermFinder<ExistingTerm> finder_;
};

// The pods on nodes that match all of some terms of pods to be placed, by domain.
struct CountedPods {
  std::shared_ptr<const std::vector<PodTerm>> terms;  // Resolved.
  std::shared_ptr<const Topology> topology;
  DomainCounts counts;
  uint64_t namespaces_version = 0;  // At which the terms were resolved.
  uint64_t last_use = 0;            // By the index's count of uses.
  uint64_t last_tick = 0;           // Of the last use.
};

// The index. Costs follow the distinct terms, never the pods times the nodes:
// - terms that existing pods have are kept once each, with the number of their pods by domain;
// - pods that match a term of a pod to be placed are counted when the term is first asked for, and
//   from then on by deltas; terms that nobody asks for any more are dropped.
//
// Threading: thread-compatible; the mirror's thread.
// Lifetime:  of what it is told, as sdk::ClusterObserver; the cluster must outlive it.
// Errors:    none; terms that cannot be parsed count as kube-scheduler counts them.
class AffinityIndex {
 public:
  // `hard_weight` is what a required affinity term of an existing pod is worth to scores.
  AffinityIndex(sdk::ClusterView cluster, int64_t hard_weight);

  void Reset();
  void UpdateNode(sdk::Slot slot);
  void AddPod(const sdk::PodRecord& pod, sdk::Slot slot);
  void RemovePod(const sdk::PodRecord& pod, sdk::Slot slot);
  void UpdateNamespaces() { ++namespaces_version_; }
  void Tick();  // About once a second.

  // Null for a pod without terms.
  std::shared_ptr<const PodRules> Rules(const v1alpha1::Pod& pod) { return rules_.Get(pod); }
  // The pods that match all of `terms`, of which there must be some. Holds until the next call of
  // anything.
  const CountedPods& Count(absl::Span<const PodTerm> terms, const std::string& topology_key);
  // Required anti-affinity of existing pods.
  const ExistingTerms& repelling() const { return repelling_; }
  // Terms of existing pods that score nodes, with their weights.
  const ExistingTerms& scoring() const { return scoring_; }
  size_t counted_size() const { return counted_.size(); }

 private:
  struct Use {
    ExistingTerms* terms;
    ExistingTerm* term;
    int64_t weight;
  };
  struct PodEntry {
    size_t position;  // In the list of its namespace.
    std::vector<Use> uses;
  };
  using PodList = std::vector<const sdk::PodRecord*>;

  // Counts a pod on a node once more, or once less.
  void Shift(const sdk::PodRecord& pod, const PodEntry& entry, sdk::Slot slot, int32_t sign);
  void TakeUses(const PodRules& rules, PodEntry* entry);
  // Makes its terms fit the namespaces' labels; counts anew if that changes them.
  void Refresh(absl::Span<const PodTerm> terms, CountedPods* counted);
  void CountAnew(CountedPods* counted);
  void Drop(absl::flat_hash_map<std::string, std::unique_ptr<CountedPods>>::iterator it);
  void DropOldest();

  const sdk::ClusterView cluster_;
  const int64_t hard_weight_;
  RulesCache rules_;
  Topologies topologies_;
  ExistingTerms repelling_;
  ExistingTerms scoring_;
  absl::flat_hash_map<const sdk::PodRecord*, PodEntry> pods_;  // On nodes.
  absl::flat_hash_map<std::string, PodList> by_namespace_;
  absl::flat_hash_map<std::string, std::unique_ptr<CountedPods>> counted_;
  TermFinder<CountedPods> counted_finder_;
  uint64_t namespaces_version_ = 1;
  uint64_t uses_ = 0;
  uint64_t ticks_ = 0;
};

}  // namespace outboard::inter_pod_affinity

#endif  // OUTBOARD_PLUGINS_INTER_POD_AFFINITY_AFFINITY_INDEX_H_
