// What nodes cost, and how cheap each is beside others.
#ifndef OUTBOARD_PLUGINS_OBJECTIVES_NODE_COSTS_H_
#define OUTBOARD_PLUGINS_OBJECTIVES_NODE_COSTS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "plugin_host/sdk/node_table.h"

namespace outboard::objectives {

// Nodes have few different costs, which change rarely: so they are ranked, and what is asked of
// many nodes is worked out once for each cost.
//
// Threading: thread-compatible. Lifetime: a value. Errors: none.
class NodeCosts {
 public:
  static constexpr double kUnknown = -1;

  void Reset();
  // True if it was another one.
  bool Set(sdk::Slot slot, double cost);
  double At(sdk::Slot slot) const { return by_slot_[slot]; }

  // Of those of the nodes whose cost is known, the lower of two; none if there are none. A median,
  // since one absurd label moves it little.
  std::optional<double> Median(absl::Span<const sdk::Slot> nodes);
  // 1 for what costs nothing, a half at the median; 0 where the cost is unknown.
  static double Term(double cost, double median);
  // Weighed terms of the nodes for which Median was asked last.
  void WeighTerms(absl::Span<const sdk::Slot> nodes, double median, double weight,
                  absl::Span<double> weighed);

 private:
  void Rank();

  std::vector<double> by_slot_;
  bool ranked_ = false;
  std::vector<double> costs_;           // all there are, the unknown one first, then rising
  std::vector<uint32_t> rank_by_slot_;  // in costs_
  // By rank, for one call.
  std::vector<uint32_t> count_;  // of nodes
  std::vector<double> weighed_;
};

}  // namespace outboard::objectives

#endif  // OUTBOARD_PLUGINS_OBJECTIVES_NODE_COSTS_H_
