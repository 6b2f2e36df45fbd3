#include "plugins/inter_pod_affinity/affinity_index.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace outboard::inter_pod_affinity {

using sdk::PodRecord;
using sdk::Slot;

namespace {

// The maximum number of counted terms of incoming pods. Each term costs one match per pod added or
// removed in its namespaces with its label, and some bytes per domain.
constexpr size_t kMaxCounted = 1024;
constexpr uint64_t kIdleTicks = 600;
constexpr uint64_t kTicksBetweenSweeps = 60;

// A term with a namespace selector cannot be indexed by namespace.
bool FoundEverywhere(const PodTerm& existing) { return existing.has_namespace_selector; }

}  // namespace

ExistingTerm* ExistingTerms::Use(const PodTerm& term, Topologies* topologies) {
  std::unique_ptr<ExistingTerm>& existing = terms_[term.signature];
  if (existing == nullptr) {
    existing = std::make_unique<ExistingTerm>();
    existing->term = term;
    existing->topology = topologies->Get(term.topology_key);
    finder_.Add(existing->term, FoundEverywhere(term), existing.get());
  }
  ++existing->uses;
  return existing.get();
}

void ExistingTerms::Release(ExistingTerm* term) {
  if (--term->uses > 0) return;
  finder_.Remove(term->term, FoundEverywhere(term->term), term);
  const std::string signature = term->term.signature;
  terms_.erase(signature);
}

void ExistingTerms::Clear() {
  finder_.Clear();
  terms_.clear();
}

AffinityIndex::AffinityIndex(sdk::ClusterView cluster, int64_t hard_weight)
    : cluster_(cluster), hard_weight_(hard_weight), topologies_(cluster) {}

void AffinityIndex::Reset() {
  counted_finder_.Clear();
  counted_.clear();
  repelling_.Clear();
  scoring_.Clear();
  pods_.clear();
  by_namespace_.clear();
  topologies_.Clear();
  rules_.Clear();
}

void AffinityIndex::UpdateNode(Slot slot) {
  if (!topologies_.Moves(slot)) return;
  const std::vector<PodRecord*>& pods = cluster_.nodes().pods[slot];
  auto shift = [&](int32_t sign) {
    for (const PodRecord* pod : pods) {
      auto it = pods_.find(pod);
      if (it != pods_.end()) Shift(*pod, it->second, slot, sign);
    }
  };
  shift(-1);
  topologies_.Update(slot);
  shift(1);
}

void AffinityIndex::AddPod(const PodRecord& pod, Slot slot) {
  auto [it, inserted] = pods_.try_emplace(&pod);
  if (!inserted) return;
  PodEntry& entry = it->second;
  PodList& list = by_namespace_[pod.pod.namespace_()];
  entry.position = list.size();
  list.push_back(&pod);
  if (std::shared_ptr<const PodRules> rules = rules_.Get(pod.pod)) TakeUses(*rules, &entry);
  Shift(pod, entry, slot, 1);
}

void AffinityIndex::RemovePod(const PodRecord& pod, Slot slot) {
  auto it = pods_.find(&pod);
  if (it == pods_.end()) return;
  Shift(pod, it->second, slot, -1);
  for (const Use& use : it->second.uses) use.terms->Release(use.term);
  auto list = by_namespace_.find(pod.pod.namespace_());
  const PodRecord* last = list->second.back();
  const size_t position = it->second.position;
  list->second[position] = last;
  pods_[last].position = position;
  list->second.pop_back();
  if (list->second.empty()) by_namespace_.erase(list);
  pods_.erase(it);
}

void AffinityIndex::TakeUses(const PodRules& rules, PodEntry* entry) {
  auto take = [&](ExistingTerms* terms, const PodTerm& term, int64_t weight) {
    entry->uses.push_back({terms, terms->Use(term, &topologies_), weight});
  };
  for (const PodTerm& term : rules.required_anti_affinity) take(&repelling_, term, 1);
  if (hard_weight_ > 0) {
    for (const PodTerm& term : rules.required_affinity) take(&scoring_, term, hard_weight_);
  }
  for (const WeightedPodTerm& soft : rules.preferred) take(&scoring_, soft.term, soft.weight);
}

void AffinityIndex::Shift(const PodRecord& pod, const PodEntry& entry, Slot slot, int32_t sign) {
  counted_finder_.ForEachCandidate(pod.pod, [&](CountedPods* counted) {
    if (!MatchesAll(*counted->terms, pod.pod)) return;
    counted->counts.Add(counted->topology->DomainOf(slot), sign, 0);
  });
  for (const Use& use : entry.uses) {
    use.term->counts.Add(use.term->topology->DomainOf(slot), sign, sign * use.weight);
  }
}

const CountedPods& AffinityIndex::Count(absl::Span<const PodTerm> terms,
                                        const std::string& topology_key) {
  std::string key = topology_key;
  for (const PodTerm& term : terms) {
    absl::StrAppend(&key, absl::string_view("\0", 1), term.signature.size(), "/", term.signature);
  }
  auto it = counted_.find(key);
  if (it == counted_.end()) {
    if (counted_.size() >= kMaxCounted) DropOldest();
    it = counted_.emplace(std::move(key), std::make_unique<CountedPods>()).first;
    it->second->topology = topologies_.Get(topology_key);
  }
  CountedPods& counted = *it->second;
  counted.last_use = ++uses_;
  counted.last_tick = ticks_;
  if (counted.namespaces_version != namespaces_version_) Refresh(terms, &counted);
  return counted;
}

void AffinityIndex::Refresh(absl::Span<const PodTerm> terms, CountedPods* counted) {
  counted->namespaces_version = namespaces_version_;
  auto resolved = std::make_shared<std::vector<PodTerm>>();
  for (const PodTerm& term : terms) {
    resolved->push_back(Resolve(term, cluster_.namespaces()));
  }
  if (counted->terms != nullptr) {
    const bool same =
        std::equal(resolved->begin(), resolved->end(), counted->terms->begin(),
                   [](const PodTerm& a, const PodTerm& b) { return a.namespaces == b.namespaces; });
    if (same) return;
    const PodTerm& first = counted->terms->front();
    counted_finder_.Remove(first, MatchesEveryNamespace(first), counted);
  }
  counted->terms = std::move(resolved);
  const PodTerm& first = counted->terms->front();
  counted_finder_.Add(first, MatchesEveryNamespace(first), counted);
  Recount(counted);
}

void AffinityIndex::Recount(CountedPods* counted) {
  counted->counts = DomainCounts();
  const PodTerm& first = counted->terms->front();
  auto count = [&](const PodList& pods) {
    for (const PodRecord* pod : pods) {
      if (!MatchesAll(*counted->terms, pod->pod)) continue;
      counted->counts.Add(counted->topology->DomainOf(pod->slot), 1, 0);
    }
  };
  if (MatchesEveryNamespace(first)) {
    for (const auto& [name, pods] : by_namespace_) count(pods);
    return;
  }
  for (size_t i = 0; i < first.namespaces.size(); ++i) {
    if (i > 0 && first.namespaces[i] == first.namespaces[i - 1]) continue;  // Sorted.
    auto it = by_namespace_.find(first.namespaces[i]);
    if (it != by_namespace_.end()) count(it->second);
  }
}

void AffinityIndex::Drop(
    absl::flat_hash_map<std::string, std::unique_ptr<CountedPods>>::iterator it) {
  const PodTerm& first = it->second->terms->front();
  counted_finder_.Remove(first, MatchesEveryNamespace(first), it->second.get());
  counted_.erase(it);
}

void AffinityIndex::DropOldest() {
  auto oldest = std::min_element(
      counted_.begin(), counted_.end(),
      [](const auto& a, const auto& b) { return a.second->last_use < b.second->last_use; });
  if (oldest != counted_.end()) Drop(oldest);
}

void AffinityIndex::Tick() {
  if (++ticks_ % kTicksBetweenSweeps != 0) return;
  for (auto it = counted_.begin(); it != counted_.end();) {
    auto current = it++;
    if (ticks_ - current->second->last_tick > kIdleTicks) Drop(current);
  }
  topologies_.Sweep();
}

}  // namespace outboard::inter_pod_affinity
