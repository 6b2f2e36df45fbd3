#include "plugins/pod_topology_spread/spread_state.h"

#include <bit>

#include "plugins/pod_topology_spread/logarithm.h"

namespace outboard::pod_topology_spread {

using sdk::Slot;

FilterState::FilterState(std::vector<HardConstraint> constraints)
    : constraints_(std::make_shared<const std::vector<HardConstraint>>(std::move(constraints))),
      counts_(constraints_->size()) {
  for (size_t i = 0; i < counts_.size(); ++i) {
    const DomainSums& sums = *(*constraints_)[i].columns.sums;
    const Domain size = static_cast<Domain>(sums.size());
    for (Domain domain = 0; domain < size; ++domain) {
      if (sums.nodes(domain) > 0 && sums.pods(domain) < counts_[i].lowest[1].pods) {
        counts_[i].Update(domain, sums.pods(domain));
      }
    }
  }
}

void FilterState::Counts::Update(Domain domain, int64_t pods) {
  Lowest* known = domain == lowest[0].domain   ? &lowest[0]
                  : domain == lowest[1].domain ? &lowest[1]
                                               : nullptr;
  if (known != nullptr) {
    known->pods = pods;
    if (lowest[0].pods > lowest[1].pods) std::swap(lowest[0], lowest[1]);
  } else if (pods < lowest[0].pods) {
    lowest[1] = lowest[0];
    lowest[0] = {domain, pods};
  } else if (pods < lowest[1].pods) {
    lowest[1] = {domain, pods};
  }
}

int64_t FilterState::Counts::ChangeOf(Domain domain) const {
  for (const auto& [changed, count] : changes) {
    if (changed == domain) return count;
  }
  return 0;
}

void FilterState::UpdateWithPod(const v1beta1::Pod& pod, Slot slot, int64_t count) {
  for (size_t i = 0; i < counts_.size(); ++i) {
    const HardConstraint& constraint = (*constraints_)[i];
    const SpreadColumns& columns = constraint.columns;
    // Every node of the group has all labels.
    if (!columns.group->Contains(slot) || !constraint.selector.Matches(pod.labels())) continue;
    const Domain domain = columns.topology->Of(slot);
    Counts& counts = counts_[i];
    auto it = counts.changes.begin();
    while (it != counts.changes.end() && it->first != domain) ++it;
    if (it == counts.changes.end()) it = counts.changes.insert(it, {domain, 0});
    it->second += count;
    counts.Update(domain, columns.sums->pods(domain) + it->second);
  }
}

FilterState::Masks FilterState::Evaluate(size_t i, absl::Span<const Slot> slots,
                                         uint64_t candidates) const {
  const HardConstraint& constraint = (*constraints_)[i];
  const Counts& counts = counts_[i];
  const Topology& topology = *constraint.columns.topology;
  const DomainSums& sums = *constraint.columns.sums;
  // With fewer domains than minDomains, a domain that does not exist yet has the minimum, 0.
  const int64_t minimum = sums.present() < constraint.min_domains ? 0 : counts.lowest[0].pods;
  const int64_t most = constraint.max_skew + minimum - (constraint.self_match ? 1 : 0);
  Masks masks;
  for (uint64_t rest = candidates; rest != 0; rest &= rest - 1) {
    const int bit = std::countr_zero(rest);
    const Domain domain = topology.Of(slots[bit]);
    if (domain == kNoDomain) {
      masks.missing |= uint64_t{1} << bit;
      continue;
    }
    int64_t pods = sums.pods(domain);
    if (!counts.changes.empty()) pods += counts.ChangeOf(domain);
    masks.skewed |= static_cast<uint64_t>(pods > most) << bit;
  }
  return masks;
}

void ScoreState::Weigh(absl::Span<const Slot> nodes) {
  size_t ignored = 0;
  std::vector<std::vector<uint8_t>> seen(constraints.size());
  std::vector<size_t> domains(constraints.size(), 0);
  for (size_t i = 0; i < constraints.size(); ++i) {
    if (!constraints[i].by_node) seen[i].resize(constraints[i].columns.topology->size(), 0);
  }
  for (Slot slot : nodes) {
    if (Ignores(slot)) {
      ++ignored;
      continue;
    }
    for (size_t i = 0; i < constraints.size(); ++i) {
      if (constraints[i].by_node) continue;
      Domain domain = constraints[i].columns.topology->Of(slot);
      if (domain == kNoDomain) domain = kEmptyValueDomain;
      domains[i] += seen[i][domain] == 0;
      seen[i][domain] = 1;
    }
  }
  for (size_t i = 0; i < constraints.size(); ++i) {
    SoftConstraint& constraint = constraints[i];
    if (constraint.by_node) domains[i] = nodes.size() - ignored;
    constraint.weight = GoLog(static_cast<double>(domains[i] + 2));
    constraint.domain_scores.resize(seen[i].size(), 0);
    for (Domain domain = 0; domain < seen[i].size(); ++domain) {
      if (!seen[i][domain]) continue;
      constraint.domain_scores[domain] =
          static_cast<double>(constraint.columns.sums->pods(domain)) * constraint.weight +
          static_cast<double>(constraint.max_skew - 1);
    }
  }
}

bool ScoreState::Ignores(Slot slot) const {
  if (!require_all_labels) return false;
  for (const SoftConstraint& constraint : constraints) {
    if (constraint.columns.topology->Of(slot) == kNoDomain) return true;
  }
  return false;
}

double ScoreState::Score(Slot slot) const {
  double score = 0;
  for (const SoftConstraint& constraint : constraints) {
    const Domain domain = constraint.columns.topology->Of(slot);
    if (domain == kNoDomain) continue;
    if (constraint.by_node) {
      score += static_cast<double>(constraint.columns.matching->On(slot)) * constraint.weight +
               static_cast<double>(constraint.max_skew - 1);
    } else if (domain < constraint.domain_scores.size()) {
      score += constraint.domain_scores[domain];
    }
  }
  return score;
}

}  // namespace outboard::pod_topology_spread
