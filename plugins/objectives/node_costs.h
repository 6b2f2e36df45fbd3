// Costs of nodes, and how cheap each node is compared with others.
#ifndef OUTBOARD_PLUGINS_OBJECTIVES_NODE_COSTS_H_
#define OUTBOARD_PLUGINS_OBJECTIVES_NODE_COSTS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "plugin_host/sdk/node_table.h"

namespace outboard::objectives {

// Nodes have few distinct costs, which change rarely. The class ranks the costs and computes a term
// once per cost, not per node.
//
// Threading: thread-compatible.
// Lifetime:  a value.
// Errors:    none.
class NodeCosts {
 public:
  static constexpr double kUnknown = -1;

  void Reset();
  // Returns true if the cost changed.
  bool Set(sdk::Slot slot, double cost);
  double At(sdk::Slot slot) const { return by_slot_[slot]; }

  // The median of the known costs; of two middle values the lower one; nullopt if no cost is known.
  // A median, because one wrong label changes it little.
  std::optional<double> Median(absl::Span<const sdk::Slot> nodes);
  // 1 for cost 0, 0.5 at the median, 0 for an unknown cost.
  static double Term(double cost, double median);
  // Writes the weighted terms of `nodes`, which must be the nodes of the last call of Median.
  void WeighTerms(absl::Span<const sdk::Slot> nodes, double median, double weight,
                  absl::Span<double> weighed);

 private:
  void Rank();

  std::vector<double> by_slot_;
  bool ranked_ = false;
  std::vector<double> costs_;           // distinct costs: the unknown one first, then ascending
  std::vector<uint32_t> rank_by_slot_;  // in costs_
  // By rank; valid within one call.
  std::vector<uint32_t> count_;  // of nodes
  std::vector<double> weighed_;
};

}  // namespace outboard::objectives

#endif  // OUTBOARD_PLUGINS_OBJECTIVES_NODE_COSTS_H_
