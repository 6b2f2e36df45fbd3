// Sets of nodes by what nodes are, not by what runs on them, asked 64 nodes at a time.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_NODE_SETS_H_
#define OUTBOARD_PLUGIN_HOST_SDK_NODE_SETS_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "plugin_host/sdk/filter_block.h"
#include "plugin_host/sdk/node_table.h"

namespace outboard::sdk {

// Where few nodes will do for a pod Filter goes past thousands of others. A set has a bit for each
// node in the order in which nodes are examined, so that a block of it is read in one go:
//
//   sets_.Follow(attempt.cluster().nodes());                        // once an attempt
//   const auto& set = sets_.Of(model, [&](Slot slot) { ... });      // kept until Forget
//   if (auto bits = set.OfBlock(block)) ... else ...                // node by node
//
// Threading: thread-compatible.
// Lifetime:  a set holds until the next call of Follow, Of or Forget; Of reads the table that was
//            followed last, within the same call of the plugin or at least the same attempt.
// Errors:    none; of blocks that are no stretch of the order it knows nothing.
template <typename Key>
class NodeSets {
 public:
  class Set {
   public:
    // Bit i for node i of the block; bits of nodes that are no candidates mean nothing.
    std::optional<uint64_t> OfBlock(const NodeBlock& block) const {
      if (block.place == NodeBlock::kNoPlace) return std::nullopt;
      const uint32_t shift = block.place % 64;
      const uint64_t low = words_[block.place / 64] >> shift;
      return shift == 0 ? low : low | words_[block.place / 64 + 1] << (64 - shift);
    }

   private:
    friend class NodeSets;
    std::vector<uint64_t> words_;
  };

  // Sets are made anew if the order is another one.
  void Follow(const NodeTable& nodes) {
    nodes_ = &nodes;
    if (nodes.order_generation == followed_) return;
    followed_ = nodes.order_generation;
    Forget();
  }
  // What a node is has changed.
  void Forget() {
    sets_.clear();
    last_ = nullptr;
  }
  // The nodes for which is(slot).
  template <typename Is>
  const Set& Of(const Key& key, const Is& is) {
    if (last_ != nullptr && last_->key == key) return last_->set;
    Entry* oldest = nullptr;
    for (Entry& entry : sets_) {
      if (entry.key == key) {
        entry.used = ++uses_;
        last_ = &entry;
        return entry.set;
      }
      if (oldest == nullptr || entry.used < oldest->used) oldest = &entry;
    }
    if (sets_.size() < kMaxSets) oldest = &sets_.emplace_back();
    oldest->key = key;
    oldest->used = ++uses_;
    last_ = oldest;
    // And the first 63 again, as blocks go past the end; a word more than that, since two are read.
    const std::vector<Slot>& order = nodes_->order;
    const size_t bits = order.empty() ? 0 : order.size() + 63;
    std::vector<uint64_t>& words = oldest->set.words_;
    words.assign(bits / 64 + 2, 0);
    for (size_t i = 0; i < bits; ++i)
      words[i / 64] |= uint64_t{is(order[i % order.size()]) ? 1u : 0u} << (i % 64);
    return oldest->set;
  }

 private:
  // The least recently asked for goes first; at 5,000 nodes a set has 640 bytes.
  static constexpr size_t kMaxSets = 16;

  struct Entry {
    Key key{};
    uint64_t used = 0;  // when last
    Set set;
  };

  uint64_t followed_ = 0;  // NodeTable::order_generation
  const NodeTable* nodes_ = nullptr;
  std::deque<Entry> sets_;
  Entry* last_ = nullptr;  // that was asked for; block after block it is the same
  uint64_t uses_ = 0;
};

}  // namespace outboard::sdk

#endif  // OUTBOARD_PLUGIN_HOST_SDK_NODE_SETS_H_
