// Rejections whose text depends on the node, built once per key instead of once per node.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_KNOWN_VERDICTS_H_
#define OUTBOARD_PLUGIN_HOST_SDK_KNOWN_VERDICTS_H_

#include <algorithm>
#include <bit>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "plugin_host/sdk/filter_block.h"
#include "plugin_host/sdk/verdict.h"

namespace outboard::sdk {

// Example: `insufficient GPU: need 4, available N` has few distinct N, regardless of the number of
// nodes. Kept in the attempt's state, keyed by N. Keys are compared linearly, so beyond a few dozen
// keys, further verdicts are built per node.
//
// Threading: thread-compatible.
// Lifetime: as the attempt's state; a copy has its own verdicts.
// Errors:    none.
template <typename Key>
class KnownVerdicts {
 public:
  // The rejections of one block. The destructor passes them to the sink, grouped by verdict.
  class Block {
   public:
    Block(KnownVerdicts* known, FilterSink* sink) : known_(*known), sink_(*sink) {
      known_.nodes_.assign(known_.keys_.size(), 0);
    }
    ~Block() {
      for (size_t k = 0; k < known_.nodes_.size(); ++k) {
        if (known_.nodes_[k] != 0) sink_.RejectAll(known_.nodes_[k], known_.verdicts_[k]);
      }
    }
    Block(const Block&) = delete;
    Block& operator=(const Block&) = delete;

    // Rejects node i, unless it was rejected before, with the verdict of `key`; make() builds it
    // the first time.
    template <typename Make>
    void Reject(int i, const Key& key, const Make& make) {
      RejectAll(uint64_t{1} << i, key, make);
    }
    // The same for all nodes of `mask`.
    template <typename Make>
    void RejectAll(uint64_t mask, const Key& key, const Make& make) {
      mask &= ~rejected_;
      if (mask == 0) return;
      rejected_ |= mask;
      std::vector<Key>& keys = known_.keys_;
      // Neighbours are often alike.
      if (last_ >= keys.size() || !(keys[last_] == key)) {
        last_ = static_cast<size_t>(std::find(keys.begin(), keys.end(), key) - keys.begin());
        if (last_ == kMaxKeys) return RejectSingly(mask, make());
        if (last_ == keys.size()) {
          keys.push_back(key);
          known_.verdicts_.push_back(make());
          known_.nodes_.push_back(0);
        }
      }
      known_.nodes_[last_] |= mask;
    }

   private:
    void RejectSingly(uint64_t mask, const Verdict& verdict) {
      for (; mask != 0; mask &= mask - 1) sink_.RejectWith(std::countr_zero(mask), verdict);
    }

    KnownVerdicts& known_;
    FilterSink& sink_;
    uint64_t rejected_ = 0;
    size_t last_ = 0;
  };

 private:
  static constexpr size_t kMaxKeys = 48;
  std::vector<Key> keys_;
  std::deque<Verdict> verdicts_;  // One per key, at stable addresses.
  std::vector<uint64_t> nodes_;   // The block's nodes, per key.
};

}  // namespace outboard::sdk

#endif  // OUTBOARD_PLUGIN_HOST_SDK_KNOWN_VERDICTS_H_
