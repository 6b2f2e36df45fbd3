#include "shim/framework/select_node.h"

#include <algorithm>
#include <vector>

namespace outboard::framework {
namespace {

constexpr uint32_t kMinFeasibleNodesToFind = 100;
constexpr uint32_t kMinPercentage = 5;

}  // namespace

size_t SelectNode(absl::Span<const int64_t> totals) {
  const int64_t best = *std::max_element(totals.begin(), totals.end());
  // Preorder walk: a node, its left subtree, its right subtree. The depth is at most 64, the walk
  // mostly short.
  std::vector<size_t> pending = {0};
  while (!pending.empty()) {
    const size_t i = pending.back();
    pending.pop_back();
    if (i >= totals.size()) continue;
    if (totals[i] == best) return i;
    pending.push_back(2 * i + 2);
    pending.push_back(2 * i + 1);
  }
  return 0;
}

uint32_t NumFeasibleNodesToFind(uint32_t num_nodes, uint32_t percentage) {
  if (num_nodes < kMinFeasibleNodesToFind) return num_nodes;
  if (percentage == 0) {
    const int64_t adaptive = int64_t{50} - num_nodes / 125;
    percentage = static_cast<uint32_t>(std::max<int64_t>(adaptive, kMinPercentage));
  }
  const uint64_t wanted = uint64_t{num_nodes} * percentage / 100;
  return static_cast<uint32_t>(std::max<uint64_t>(wanted, kMinFeasibleNodesToFind));
}

v1beta1::NodeSearch SearchEach(absl::Span<const uint32_t> slots) {
  v1beta1::NodeSearch search;
  search.mutable_nodes()->mutable_slots()->Add(slots.begin(), slots.end());
  search.set_num_feasible_nodes_to_find(std::max<uint32_t>(static_cast<uint32_t>(slots.size()), 1));
  return search;
}

}  // namespace outboard::framework
