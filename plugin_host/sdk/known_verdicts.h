// Rejections whose words depend on the node, made once for each key instead of once for each node.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_KNOWN_VERDICTS_H_
#define OUTBOARD_PLUGIN_HOST_SDK_KNOWN_VERDICTS_H_

#include <deque>
#include <utility>

#include "plugin_host/sdk/filter_block.h"
#include "plugin_host/sdk/verdict.h"

namespace outboard::sdk {

// `insufficient GPU: need 4, available N` has few different N, whatever the number of nodes: kept
// in the attempt's state, keyed by N. Keys are compared one by one, so beyond a few dozen every
// further key's verdict is made again for each node.
//
// Threading: thread-compatible. Lifetime: as the attempt's state; a copy has verdicts of its own.
// Errors:    none.
template <typename Key>
class KnownVerdicts {
 public:
  // Rejects node i with the verdict of `key`, which make() returns the first time.
  template <typename Make>
  void Reject(FilterSink& sink, int i, const Key& key, const Make& make) {
    // Neighbours are often alike.
    if (last_ < verdicts_.size() && verdicts_[last_].first == key)
      return sink.Reject(i, verdicts_[last_].second);
    for (last_ = 0; last_ < verdicts_.size(); ++last_) {
      if (verdicts_[last_].first == key) return sink.Reject(i, verdicts_[last_].second);
    }
    if (verdicts_.size() == kMaxKeys) return sink.RejectWith(i, make());
    verdicts_.emplace_back(key, make());
    sink.Reject(i, verdicts_.back().second);
  }

 private:
  static constexpr size_t kMaxKeys = 48;
  std::deque<std::pair<Key, Verdict>> verdicts_;  // At stable addresses.
  size_t last_ = 0;
};

}  // namespace outboard::sdk

#endif  // OUTBOARD_PLUGIN_HOST_SDK_KNOWN_VERDICTS_H_
