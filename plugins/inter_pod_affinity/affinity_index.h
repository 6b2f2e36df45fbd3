// Affinity terms and matching pods of the running pods, counted by domain and updated by deltas.
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

// A term of pods on nodes, with the number of these pods by domain.
struct ExistingTerm {
  PodTerm term;
  std::shared_ptr<const Topology> topology;
  DomainCounts counts;
  int64_t uses = 0;  // Pods with the term, also on nodes outside every domain.
};

// The distinct terms of one kind of the pods on nodes.
//
// Threading: thread-compatible.
// Lifetime:  the address of a term is valid while the term is in use.
// Errors:    none.
class ExistingTerms {
 public:
  ExistingTerm* Use(const PodTerm& term, Topologies* topologies);
  void Release(ExistingTerm* term);
  // Calls fn(const ExistingTerm&) for each term that matches a pod of a namespace with `labels`.
  template <typename Fn>
  void ForEachMatch(const v1beta1::Pod& pod, const NamespaceLabels& labels, Fn&& fn) const {
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

// Pods on nodes that match all of some terms of incoming pods, counted by domain.
struct CountedPods {
  std::shared_ptr<const std::vector<PodTerm>> terms;  // Resolved.
  std::shared_ptr<const Topology> topology;
  DomainCounts counts;
  uint64_t namespaces_version = 0;  // The version at which the terms were resolved.
  uint64_t last_use = 0;            // Value of AffinityIndex::uses_ at the last use.
  uint64_t last_tick = 0;           // Value of AffinityIndex::ticks_ at the last use.
};

// The index. The cost of an attempt grows with the distinct terms, not with pods times nodes:
// - Each distinct term of existing pods is stored once, with the number of its pods by domain.
// - Pods that match a term of an incoming pod are counted on the first request for the term, then
//   updated by deltas. Terms without requests for some time are dropped.
//
// Threading: thread-compatible; called on the cluster cache's thread.
// Lifetime:  pods and nodes as in sdk::ClusterObserver; the cluster must outlive the index.
// Errors:    none; a term that cannot be parsed counts as in kube-scheduler.
class AffinityIndex {
 public:
  // `hard_weight`: the score weight of a required affinity term of an existing pod.
  AffinityIndex(sdk::ClusterView cluster, int64_t hard_weight);

  void Reset();
  void UpdateNode(sdk::Slot slot);
  void AddPod(const sdk::PodRecord& pod, sdk::Slot slot);
  void RemovePod(const sdk::PodRecord& pod, sdk::Slot slot);
  void UpdateNamespaces() { ++namespaces_version_; }
  void Tick();  // About once a second.

  // Returns null for a pod without terms.
  std::shared_ptr<const PodRules> Rules(const v1beta1::Pod& pod) { return rules_.Get(pod); }
  // Counts the pods that match all of `terms`, which must not be empty. The result is valid until
  // the next call of any method.
  const CountedPods& Count(absl::Span<const PodTerm> terms, const std::string& topology_key);
  // Required anti-affinity of existing pods.
  const ExistingTerms& repelling() const { return repelling_; }
  // Terms of existing pods that affect scores, with their weights.
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

  // Adds a pod on a node to the counts (`sign` 1), or removes it (-1).
  void Shift(const sdk::PodRecord& pod, const PodEntry& entry, sdk::Slot slot, int32_t sign);
  void TakeUses(const PodRules& rules, PodEntry* entry);
  // Resolves the terms against the current namespace labels; recounts if the terms changed.
  void Refresh(absl::Span<const PodTerm> terms, CountedPods* counted);
  void Recount(CountedPods* counted);
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
