// Sets of nodes by what nodes are, not by what runs on them, asked 64 nodes at a time.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_NODE_SETS_H_
#define OUTBOARD_PLUGIN_HOST_SDK_NODE_SETS_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <limits>
#include <optional>
#include <vector>

#include "absl/types/span.h"
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
// Lifetime:  a set holds until the next call of Follow, Of or Forget.
// Errors:    none; of blocks that are no stretch of the order it knows nothing.
template <typename Key>
class NodeSets {
 public:
  class Set {
   public:
    // Bit i for node i of the block; bits of nodes that are no candidates mean nothing.
    std::optional<uint64_t> OfBlock(const NodeBlock& block) const {
      const uint32_t at = order_->Find(block.slots);
      if (at == kNowhere) return std::nullopt;
      return At(at);
    }
    // The same of a block at a place of the order; see PlaceOf.
    uint64_t At(uint32_t place) const {
      const uint32_t shift = place % 64;
      const uint64_t low = words_[place / 64] >> shift;
      return shift == 0 ? low : low | words_[place / 64 + 1] << (64 - shift);
    }

   private:
    friend class NodeSets;
    const typename NodeSets::Order* order_ = nullptr;
    std::vector<uint64_t> words_;
  };

  // Sets are made anew if the order is another one.
  void Follow(const NodeTable& nodes) {
    if (nodes.order_generation == followed_) return;
    followed_ = nodes.order_generation;
    order_.Set(nodes.order);
    Forget();
  }
  // What a node is has changed.
  void Forget() { sets_.clear(); }
  // Where the block is in the order, for Set::At of several sets; none if it is no stretch of it.
  std::optional<uint32_t> PlaceOf(const NodeBlock& block) const {
    const uint32_t at = order_.Find(block.slots);
    if (at == kNowhere) return std::nullopt;
    return at;
  }
  // The nodes for which is(slot).
  template <typename Is>
  const Set& Of(const Key& key, const Is& is) {
    Entry* oldest = nullptr;
    for (Entry& entry : sets_) {
      if (entry.key == key) {
        entry.used = ++uses_;
        return entry.set;
      }
      if (oldest == nullptr || entry.used < oldest->used) oldest = &entry;
    }
    if (sets_.size() < kMaxSets) oldest = &sets_.emplace_back();
    oldest->key = key;
    oldest->used = ++uses_;
    Set& set = oldest->set;
    set.order_ = &order_;
    // One more than is needed, for At reads two words.
    set.words_.assign(order_.slots.size() / 64 + 2, 0);
    for (size_t i = 0; i < order_.slots.size(); ++i)
      set.words_[i / 64] |= uint64_t{is(order_.slots[i]) ? 1u : 0u} << (i % 64);
    return set;
  }

 private:
  static constexpr uint32_t kNowhere = std::numeric_limits<uint32_t>::max();
  // The least recently asked for goes first; at 5,000 nodes a set has 640 bytes.
  static constexpr size_t kMaxSets = 16;

  struct Order {
    std::vector<Slot> slots;         // and the first 63 again, as blocks go past the end
    std::vector<uint32_t> position;  // by slot

    void Set(absl::Span<const Slot> order) {
      const size_t nodes = order.size();
      slots.assign(order.begin(), order.end());
      position.assign(order.empty() ? 0 : *std::max_element(order.begin(), order.end()) + 1,
                      kNowhere);
      for (size_t i = 0; i < nodes; ++i) position[order[i]] = static_cast<uint32_t>(i);
      for (size_t i = 0; nodes > 0 && i < 63; ++i) slots.push_back(order[i % nodes]);
    }
    // Where the order has these, one after the other.
    uint32_t Find(absl::Span<const Slot> wanted) const {
      if (wanted.empty() || wanted[0] >= position.size()) return kNowhere;
      const uint32_t at = position[wanted[0]];
      if (at == kNowhere || at + wanted.size() > slots.size()) return kNowhere;
      const bool same =
          std::memcmp(slots.data() + at, wanted.data(), wanted.size() * sizeof(Slot)) == 0;
      return same ? at : kNowhere;
    }
  };

  struct Entry {
    Key key{};
    uint64_t used = 0;  // when last
    Set set;
  };

  uint64_t followed_ = 0;  // NodeTable::order_generation
  Order order_;
  std::deque<Entry> sets_;
  uint64_t uses_ = 0;
};

}  // namespace outboard::sdk

#endif  // OUTBOARD_PLUGIN_HOST_SDK_NODE_SETS_H_
