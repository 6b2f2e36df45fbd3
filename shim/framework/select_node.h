// Selects one of the best nodes.
#ifndef OUTBOARD_SHIM_FRAMEWORK_SELECT_NODE_H_
#define OUTBOARD_SHIM_FRAMEWORK_SELECT_NODE_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "outboard/v1beta1/filter.pb.h"

namespace outboard::framework {

// Index of the node that kube-scheduler v1.36.3 selects from `totals`, the feasible nodes' total
// scores in the order in which they were found. `totals` is not empty. Pure.
//
// kube-scheduler builds a container/heap over the list and takes the root. With equal scores that
// is the first of the best in the heap's preorder (0, 1, 3, 7, …, 4, …), because building the heap
// only lifts a strictly better child, the left one on a tie.
size_t SelectNode(absl::Span<const int64_t> totals);

// How many feasible nodes are enough in a list of `num_nodes`, as filter.proto defines.
// `percentage` 0 adapts to the size. Pure.
uint32_t NumFeasibleNodesToFind(uint32_t num_nodes, uint32_t percentage);

// A search that evaluates every one of these nodes, in order. Pure.
v1beta1::NodeSearch SearchEach(absl::Span<const uint32_t> slots);

}  // namespace outboard::framework

#endif  // OUTBOARD_SHIM_FRAMEWORK_SELECT_NODE_H_
