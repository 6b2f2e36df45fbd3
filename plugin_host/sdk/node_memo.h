// Values that a plugin derives from a node alone, for any pod, cached until the node changes.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_NODE_MEMO_H_
#define OUTBOARD_PLUGIN_HOST_SDK_NODE_MEMO_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "plugin_host/sdk/node_table.h"

namespace outboard::sdk {

// Between two pods only nodes with added or removed pods change. Also correct for nodes changed by
// a hypothesis. A smaller T is faster: memory bounds loops over nodes.
//
// Threading: thread-compatible.
// Lifetime: a reference is valid until the next call.
// Errors: none.
template <typename T>
class NodeMemo {
 public:
  // make()'s value for the node as it is. If make() depends on anything else, the caller must Clear
  // when that changes.
  template <typename Make>
  const T& Of(const NodeTable& nodes, Slot slot, const Make& make) {
    CatchUp(nodes);
    if (known_[slot] == 0) {
      values_[slot] = make();
      known_[slot] = 1;
    }
    return values_[slot];
  }
  // The same for many nodes: calls make(slot) for changed ones.
  template <typename Make>
  void Of(const NodeTable& nodes, absl::Span<const Slot> slots, absl::Span<T> values,
          const Make& make) {
    CatchUp(nodes);
    const uint8_t* const known = known_.data();
    T* const kept = values_.data();
    for (size_t i = 0; i < slots.size(); ++i) {
      const Slot slot = slots[i];
      if (known[slot] == 0) {
        kept[slot] = make(slot);
        known_[slot] = 1;
      }
      values[i] = kept[slot];
    }
  }
  void Clear() { std::fill(known_.begin(), known_.end(), 0); }

 private:
  void CatchUp(const NodeTable& nodes) {
    // Slots of nodes are within the table.
    const size_t size = nodes.generation.size();
    if (seen_ == nodes.changes.total() && size <= known_.size()) return;
    if (size > known_.size()) {
      known_.resize(size, 0);
      values_.resize(size);
    }
    if (!nodes.changes.ForEachSince(seen_, [&](Slot slot) { known_[slot] = 0; })) Clear();
    seen_ = nodes.changes.total();
  }

  uint64_t seen_ = 0;  // of NodeTable::changes
  // By slot.
  std::vector<uint8_t> known_;
  std::vector<T> values_;
};

}  // namespace outboard::sdk

#endif  // OUTBOARD_PLUGIN_HOST_SDK_NODE_MEMO_H_
