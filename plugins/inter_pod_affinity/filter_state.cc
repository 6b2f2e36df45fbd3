#include "plugins/inter_pod_affinity/filter_state.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

namespace outboard::inter_pod_affinity {

using sdk::NodeView;

FilterState::FilterState(const v1beta1::Pod& pod, const std::shared_ptr<const PodRules>& rules,
                         const NamespaceLabels& labels, AffinityIndex* index) {
  auto counts = std::make_shared<Counts>();
  index->repelling().ForEachMatch(pod, labels, [&](const ExistingTerm& existing) {
    if (existing.counts.empty()) return;
    ByDomain<int32_t>& sums = NumbersOf(existing.topology, &counts->of[kExisting]);
    for (const DomainCounts::Cell& cell : existing.counts.cells()) {
      sums.numbers[cell.domain] += cell.count;
    }
  });
  auto take = [&](Kind kind, const CountedPods& counted) {
    ByDomain<int32_t>& sums = NumbersOf(counted.topology, &counts->of[kind]);
    for (const DomainCounts::Cell& cell : counted.counts.cells()) {
      sums.numbers[cell.domain] += cell.count;
      if (kind == kAffinity) counts->affinity_total += cell.count;
    }
  };
  const bool constrained = rules != nullptr && !(rules->required_affinity.empty() &&
                                                 rules->required_anti_affinity.empty());
  if (counts->of[kExisting].empty() && !constrained) return;
  if (constrained) {
    std::set<std::string> keys;
    for (const PodTerm& term : rules->required_affinity) keys.insert(term.topology_key);
    for (const std::string& key : keys) {
      const CountedPods& counted = index->Count(rules->required_affinity, key);
      counts->affinity = counted.terms;
      take(kAffinity, counted);
    }
    for (const PodTerm& term : rules->required_anti_affinity) {
      const CountedPods& counted = index->Count({&term, 1}, term.topology_key);
      counts->anti_affinity.push_back(counted.terms);
      take(kAntiAffinity, counted);
    }
    counts->matches_itself = counts->affinity != nullptr && MatchesAll(*counts->affinity, pod);
  }
  counts_ = std::move(counts);
}

FilterState::Obstacle FilterState::FindObstacle(const NodeView& node) const {
  if (!SatisfiesAffinity(node)) return Obstacle::kAffinity;
  if (Blocked(kAntiAffinity, node)) return Obstacle::kAntiAffinity;
  if (Blocked(kExisting, node) || BlockedByOtherKeys(node)) return Obstacle::kExistingAntiAffinity;
  return Obstacle::kNone;
}

bool FilterState::SatisfiesAffinity(const NodeView& node) const {
  bool found = true;
  for (const ByDomain<int32_t>& sums : counts_->of[kAffinity]) {
    if (sums.topology->DomainOf(node.slot()) == kNoDomain) return false;
    if (sums.At(node.slot()) + DeltaOf(kAffinity, *sums.topology, node) <= 0) found = false;
  }
  if (found || !counts_->matches_itself) return found;
  // The first pod of a group that matches its own terms may go to any node with all keys.
  int64_t total = counts_->affinity_total;
  for (const Delta& delta : deltas_) {
    if (delta.kind == kAffinity) total += delta.count;
  }
  return total == 0;
}

bool FilterState::Blocked(Kind kind, const NodeView& node) const {
  for (const ByDomain<int32_t>& sums : counts_->of[kind]) {
    if (sums.At(node.slot()) + DeltaOf(kind, *sums.topology, node) > 0) return true;
  }
  return false;
}

// Pods added by AddPod may have terms with keys that no counted term has.
bool FilterState::BlockedByOtherKeys(const NodeView& node) const {
  return std::any_of(deltas_.begin(), deltas_.end(), [&](const Delta& delta) {
    if (delta.kind != kExisting || delta.count <= 0) return false;
    const auto& counted = counts_->of[kExisting];
    const bool known = std::any_of(counted.begin(), counted.end(), [&](const auto& sums) {
      return sums.topology->key_id() == delta.key_id;
    });
    return !known && node.LabelValueId(delta.key_id) == delta.value_id;
  });
}

int64_t FilterState::DeltaOf(Kind kind, const Topology& topology, const NodeView& node) const {
  int64_t sum = 0;
  for (const Delta& delta : deltas_) {
    if (delta.kind == kind && delta.key_id == topology.key_id() &&
        delta.value_id == node.LabelValueId(delta.key_id)) {
      sum += delta.count;
    }
  }
  return sum;
}

void FilterState::AddDelta(Kind kind, const std::string& topology_key, const NodeView& node,
                           int32_t sign) {
  const uint32_t key_id = node.table().label_keys.Find(topology_key);
  if (key_id == sdk::StringTable::kNone) return;
  const uint32_t value_id = node.LabelValueId(key_id);
  if (value_id == sdk::StringTable::kNone) return;
  for (Delta& delta : deltas_) {
    if (delta.kind == kind && delta.key_id == key_id && delta.value_id == value_id) {
      delta.count += sign;
      return;
    }
  }
  deltas_.push_back({kind, key_id, value_id, sign});
}

void FilterState::Change(const v1beta1::Pod& pod, const NamespaceLabels& labels,
                         const v1beta1::Pod& other, const PodRules* other_rules,
                         const NodeView& node, int32_t sign) {
  if (other_rules != nullptr) {
    for (const PodTerm& term : other_rules->required_anti_affinity) {
      if (term.Matches(pod, labels)) AddDelta(kExisting, term.topology_key, node, sign);
    }
  }
  if (counts_->affinity != nullptr && MatchesAll(*counts_->affinity, other)) {
    std::set<std::string> keys;
    for (const PodTerm& term : *counts_->affinity) keys.insert(term.topology_key);
    for (const std::string& key : keys) AddDelta(kAffinity, key, node, sign);
  }
  for (const auto& terms : counts_->anti_affinity) {
    if (MatchesAll(*terms, other)) {
      AddDelta(kAntiAffinity, terms->front().topology_key, node, sign);
    }
  }
}

}  // namespace outboard::inter_pod_affinity
