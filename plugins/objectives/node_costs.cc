#include "plugins/objectives/node_costs.h"

#include <algorithm>
#include <utility>

namespace outboard::objectives {

void NodeCosts::Reset() {
  by_slot_.clear();
  ranked_ = false;
}

bool NodeCosts::Set(sdk::Slot slot, double cost) {
  if (slot >= by_slot_.size()) {
    by_slot_.resize(slot + 1, kUnknown);
    ranked_ = false;
  }
  if (std::exchange(by_slot_[slot], cost) == cost) return false;
  ranked_ = false;
  return true;
}

std::optional<double> NodeCosts::Median(absl::Span<const sdk::Slot> nodes) {
  if (!ranked_) Rank();
  count_.assign(costs_.size(), 0);
  for (const sdk::Slot slot : nodes) ++count_[rank_by_slot_[slot]];
  const size_t known = nodes.size() - count_[0];
  if (known == 0) return std::nullopt;
  size_t rank = 0;
  for (size_t below = 0; below <= (known - 1) / 2; below += count_[++rank]) {
  }
  return costs_[rank];
}

double NodeCosts::Term(double cost, double median) {
  const double term = median / (median + cost);
  return cost == kUnknown ? 0 : cost == 0 ? 1 : term;
}

void NodeCosts::WeighTerms(absl::Span<const sdk::Slot> nodes, double median, double weight,
                           absl::Span<double> weighed) {
  weighed_.resize(costs_.size());
  for (size_t rank = 0; rank < costs_.size(); ++rank) {
    if (count_[rank] > 0) weighed_[rank] = weight * Term(costs_[rank], median);
  }
  for (size_t i = 0; i < nodes.size(); ++i) weighed[i] = weighed_[rank_by_slot_[nodes[i]]];
}

void NodeCosts::Rank() {
  costs_ = by_slot_;
  costs_.push_back(kUnknown);
  std::sort(costs_.begin(), costs_.end());
  costs_.erase(std::unique(costs_.begin(), costs_.end()), costs_.end());
  rank_by_slot_.clear();
  for (const double cost : by_slot_) {
    const auto it = std::lower_bound(costs_.begin(), costs_.end(), cost);
    rank_by_slot_.push_back(static_cast<uint32_t>(it - costs_.begin()));
  }
  ranked_ = true;
}

}  // namespace outboard::objectives
