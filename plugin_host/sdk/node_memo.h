// What a plugin works out of a node alone, whatever the pod, kept until the node changes.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_NODE_MEMO_H_
#define OUTBOARD_PLUGIN_HOST_SDK_NODE_MEMO_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "plugin_host/sdk/node_table.h"

namespace outboard::sdk {

// From one pod to the next only the nodes change that pods came to or left. Also right for nodes
// that are changed by hypothesis.
//
// Threading: thread-compatible. Lifetime: a reference holds until the next call. Errors: none.
template <typename T>
class NodeMemo {
 public:
  // What make() returns of the node as it is; what it depends on besides is the caller's to Clear
  // for.
  template <typename Make>
  const T& Of(const NodeTable& nodes, Slot slot, const Make& make) {
    if (slot >= known_.size()) known_.resize(nodes.generation.size());
    Entry& entry = known_[slot];
    if (const uint64_t generation = nodes.generation[slot]; entry.generation != generation) {
      entry.value = make();
      entry.generation = generation;
    }
    return entry.value;
  }
  // The same of many nodes: make(slot) for those that changed.
  template <typename Make>
  void Of(const NodeTable& nodes, absl::Span<const Slot> slots, absl::Span<T> values,
          const Make& make) {
    // Slots that some node has are within the table.
    known_.resize(std::max(known_.size(), nodes.generation.size()));
    Entry* const known = known_.data();
    const uint64_t* const generations = nodes.generation.data();
    for (size_t i = 0; i < slots.size(); ++i) {
      Entry& entry = known[slots[i]];
      if (const uint64_t generation = generations[slots[i]]; entry.generation != generation) {
        entry.value = make(slots[i]);
        entry.generation = generation;
      }
      values[i] = entry.value;
    }
  }
  void Clear() { known_.clear(); }

 private:
  struct Entry {
    uint64_t generation = 0;  // Of no node.
    T value{};
  };
  std::vector<Entry> known_;  // By slot.
};

}  // namespace outboard::sdk

#endif  // OUTBOARD_PLUGIN_HOST_SDK_NODE_MEMO_H_
