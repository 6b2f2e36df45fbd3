// The order in which a group's search tries the domains of a level.
#include <algorithm>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "plugin_host/runtime/group_search.h"

namespace outboard::runtime {

using sdk::Slot;

void GroupSearch::SortDomains(std::vector<Domain>* domains) {
  const int64_t all = static_cast<int64_t>(members_.size());
  std::stable_sort(domains->begin(), domains->end(), [&](const Domain& a, const Domain& b) {
    if (a.has_placed != b.has_placed) return a.has_placed;
    if ((a.bound >= all) != (b.bound >= all)) return a.bound >= all;
    if (a.bound >= all) return a.room < b.room;
    return a.bound > b.bound;
  });
  if (!group_.topology.best_score_first) return;
  const auto end = std::find_if(domains->begin(), domains->end(), [&](const Domain& domain) {
    return domain.has_placed || domain.bound < all;
  });
  const size_t of = static_cast<size_t>(end - domains->begin());
  if (of > 1) PutBestScoredFirst(of, domains);
}

// Moves the domain with the best node for the first member to the front of the first `of`, which
// are big enough for all members.
void GroupSearch::PutBestScoredFirst(size_t of, std::vector<Domain>* domains) {
  absl::flat_hash_map<Slot, size_t> domain_of;
  for (size_t i = 0; i < of; ++i) {
    for (const Slot slot : (*domains)[i].nodes) domain_of.emplace(slot, i);
  }
  std::vector<Slot> nodes;
  for (const Slot slot : cache_->view().node_order()) {
    if (domain_of.contains(slot)) nodes.push_back(slot);
  }
  const Member& first = members_.front();
  Restart(first.nominated == sdk::kNoSlot);
  PlannedPod planned;
  absl::Span<const Slot> left = nodes;
  if (!BeginMember(first, &planned, &left)) return;
  SearchOptions all;
  all.percentage_of_nodes_to_score = 100;
  const Evaluator::Choice choice =
      tools_.evaluator->Choose(*planned.attempt, *first.pod, context_.now, left, all, &filter_);
  error_ = choice.error;
  if (choice.slot == sdk::kNoSlot) return;
  const auto best = domains->begin() + static_cast<std::ptrdiff_t>(domain_of.at(choice.slot));
  std::rotate(domains->begin(), best, best + 1);
}

}  // namespace outboard::runtime
