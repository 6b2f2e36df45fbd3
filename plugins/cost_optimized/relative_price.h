// What a pod costs on a node, compared with the other nodes that it fits on.
#ifndef OUTBOARD_PLUGINS_COST_OPTIMIZED_RELATIVE_PRICE_H_
#define OUTBOARD_PLUGINS_COST_OPTIMIZED_RELATIVE_PRICE_H_

#include <cstdint>

#include "absl/types/span.h"

namespace outboard::cost_optimized {

// A node without a known price, and a pod's cost there.
inline constexpr double kUnknownPrice = -1;

// What a pod requests, or what a node can allocate.
struct Amounts {
  int64_t cpu_millis = 0;
  int64_t memory_bytes = 0;
  int64_t gpus = 0;
};

// The part of a node that a pod occupies, 0..1: the largest share of any of its resources, because
// no other pod can use the rest without that resource. A node that has none of a requested resource
// counts as occupied. For a pod that requests nothing: 1, so that prices of whole nodes are
// compared.
double ShareOf(const Amounts& pod, const Amounts& node);

// The terms of nodes, from what the pod costs on each: the cheapest gets 100, twice as dear 50.
// Nodes that cost nothing get 100; if there are any, all others get at most 50. An unknown cost
// gets 0. Replaces `costs` by the terms.
void CostsToTerms(absl::Span<double> costs);

}  // namespace outboard::cost_optimized

#endif  // OUTBOARD_PLUGINS_COST_OPTIMIZED_RELATIVE_PRICE_H_
