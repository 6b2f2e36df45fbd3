// Sets of nodes by properties of nodes, not of their pods, read 64 nodes at a time.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_NODE_SETS_H_
#define OUTBOARD_PLUGIN_HOST_SDK_NODE_SETS_H_

#include <cstdint>
#include <deque>
#include <vector>

#include "plugin_host/sdk/filter_block.h"
#include "plugin_host/sdk/node_table.h"

namespace outboard::sdk {

// If only few nodes fit a pod, Filter visits thousands of others. A set has one bit per node in the
// order in which nodes are examined, so that one read covers a block:
//
//   sets_.Follow(attempt.cluster().nodes());                                   // once an attempt
//   const uint64_t of = sets_.Bits(model, block, [&](Slot slot) { ... });      // is(slot)
//
// Threading: thread-compatible.
// Lifetime: sets come from the table followed last, within the same attempt, and live until Forget.
// Errors: none; blocks that are not contiguous in the order are evaluated node by node.
template <typename Key>
class NodeSets {
 public:
  // Rebuilds the sets if the order changed.
  void Follow(const NodeTable& nodes) {
    nodes_ = &nodes;
    if (nodes.order_generation == followed_) return;
    followed_ = nodes.order_generation;
    Forget();
  }
  // A property of a node changed.
  void Forget() {
    sets_.clear();
    last_ = nullptr;
  }
  // The nodes of the block with is(slot), a function of `key` and the node's properties: bit i for
  // node i. Bits of other than candidates have no meaning.
  template <typename Is>
  uint64_t Bits(const Key& key, const NodeBlock& block, const Is& is) {
    if (block.place != NodeBlock::kNoPlace) {
      const std::vector<uint64_t>& words = Of(key, is);
      const size_t first = block.place / 64;
      const uint32_t shift = block.place % 64;
      // The block must have the order of the followed table.
      if (first + 1 < words.size())
        return shift == 0 ? words[first] : words[first] >> shift | words[first + 1] << (64 - shift);
    }
    uint64_t bits = 0;
    block.ForEach([&](int i, Slot slot) { bits |= uint64_t{is(slot) ? 1u : 0u} << i; });
    return bits;
  }

 private:
  // The nodes for which is(slot), in their order.
  template <typename Is>
  const std::vector<uint64_t>& Of(const Key& key, const Is& is) {
    if (last_ != nullptr && last_->key == key) return last_->words;
    Entry* oldest = nullptr;
    for (Entry& entry : sets_) {
      if (entry.key == key) {
        entry.used = ++uses_;
        last_ = &entry;
        return entry.words;
      }
      if (oldest == nullptr || entry.used < oldest->used) oldest = &entry;
    }
    if (sets_.size() < kMaxSets) oldest = &sets_.emplace_back();
    oldest->key = key;
    oldest->used = ++uses_;
    last_ = oldest;
    // Repeats the first 63, because blocks wrap around, and adds one word, because two are read.
    const std::vector<Slot>& order = nodes_->order;
    const size_t bits = order.empty() ? 0 : order.size() + 63;
    std::vector<uint64_t>& words = oldest->words;
    words.assign(bits / 64 + 2, 0);
    for (size_t i = 0; i < bits; ++i)
      words[i / 64] |= uint64_t{is(order[i % order.size()]) ? 1u : 0u} << (i % 64);
    return words;
  }

  // Evicts the least recently used; at 5,000 nodes a set has 640 bytes.
  static constexpr size_t kMaxSets = 16;

  struct Entry {
    Key key{};
    uint64_t used = 0;  // last use
    std::vector<uint64_t> words;
  };

  uint64_t followed_ = 0;  // NodeTable::order_generation
  const NodeTable* nodes_ = nullptr;
  std::deque<Entry> sets_;
  Entry* last_ = nullptr;  // the last used; the same for block after block
  uint64_t uses_ = 0;
};

}  // namespace outboard::sdk

#endif  // OUTBOARD_PLUGIN_HOST_SDK_NODE_SETS_H_
