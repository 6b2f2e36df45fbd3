// Plugins' verdicts on nodes for one pod, reused for interchangeable pods.
#ifndef OUTBOARD_PLUGIN_HOST_RUNTIME_NODE_VERDICT_CACHE_H_
#define OUTBOARD_PLUGIN_HOST_RUNTIME_NODE_VERDICT_CACHE_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "plugin_host/sdk/node_table.h"

namespace outboard::runtime {

// Valid for nodes without changes, for interchangeable pods, for plugins that are
// sdk::NodeLocalPlugin, and while nothing except pods changes.
//
// Threading: thread-compatible.
// Lifetime: a value.
// Errors: none.
class NodeVerdictCache {
 public:
  void Forget() {
    std::fill(filter_verdicts_.begin(), filter_verdicts_.end(), CachedVerdict::kUnknown);
    for (Scores& scores : scores_) std::fill(scores.known.begin(), scores.known.end(), 0);
  }
  // Drops entries of changed nodes. Later entries are about the current nodes.
  void CatchUp(const sdk::NodeTable& nodes) {
    filter_verdicts_.resize(nodes.generation.size(), CachedVerdict::kUnknown);
    const auto forget = [&](sdk::Slot slot) {
      filter_verdicts_[slot] = CachedVerdict::kUnknown;
      for (Scores& scores : scores_) {
        if (slot < scores.known.size()) scores.known[slot] = 0;
      }
    };
    if (!nodes.changes.ForEachSince(seen_, forget)) Forget();
    seen_ = nodes.changes.total();
  }

  enum class CachedVerdict : uint8_t { kUnknown, kNotFeasible, kFeasible };
  // Filter's verdicts, by slot.
  const CachedVerdict* OfFilter() const { return filter_verdicts_.data(); }
  void SetFeasible(sdk::Slot slot, bool feasible) {
    filter_verdicts_[slot] = feasible ? CachedVerdict::kFeasible : CachedVerdict::kNotFeasible;
  }

  // Fills in the plugin's known raw scores, and the positions of unknown ones.
  void ScoresOf(uint32_t plugin, absl::Span<const sdk::Slot> slots, absl::Span<int64_t> raw,
                std::vector<uint32_t>* unknown) {
    const Scores& scores = Of(plugin);
    const uint8_t* const known = scores.known.data();
    const int64_t* const values = scores.values.data();
    unknown->clear();
    for (uint32_t i = 0; i < slots.size(); ++i) {
      const sdk::Slot slot = slots[i];
      raw[i] = values[slot];
      if (known[slot] == 0) unknown->push_back(i);
    }
  }
  void SetScore(uint32_t plugin, sdk::Slot slot, int64_t score) {
    Scores& scores = Of(plugin);
    scores.values[slot] = score;
    scores.known[slot] = 1;
  }

 private:
  // By slot.
  struct Scores {
    std::vector<uint8_t> known;
    std::vector<int64_t> values;
  };
  Scores& Of(uint32_t plugin) {
    if (plugin >= scores_.size()) scores_.resize(plugin + 1);
    Scores& scores = scores_[plugin];
    if (scores.known.size() < filter_verdicts_.size()) {
      scores.known.resize(filter_verdicts_.size(), 0);
      scores.values.resize(filter_verdicts_.size());
    }
    return scores;
  }

  uint64_t seen_ = 0;  // of NodeTable::changes
  std::vector<CachedVerdict> filter_verdicts_;
  std::vector<Scores> scores_;  // by plugin index
};

}  // namespace outboard::runtime

#endif  // OUTBOARD_PLUGIN_HOST_RUNTIME_NODE_VERDICT_CACHE_H_
