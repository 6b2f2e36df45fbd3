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
    std::fill(judged_.begin(), judged_.end(), Opinion::kUnknown);
    for (Scores& scores : scores_) std::fill(scores.known.begin(), scores.known.end(), 0);
  }
  // Drops entries of changed nodes. Later entries are about the current nodes.
  void CatchUp(const sdk::NodeTable& nodes) {
    judged_.resize(nodes.generation.size(), Opinion::kUnknown);
    const auto forget = [&](sdk::Slot slot) {
      judged_[slot] = Opinion::kUnknown;
      for (Scores& scores : scores_) {
        if (slot < scores.known.size()) scores.known[slot] = 0;
      }
    };
    if (!nodes.changes.ForEachSince(seen_, forget)) Forget();
    seen_ = nodes.changes.total();
  }

  enum class Opinion : uint8_t { kUnknown, kNotFeasible, kFeasible };
  // Filter's verdicts, by slot.
  const Opinion* OfFilter() const { return judged_.data(); }
  void SetFeasible(sdk::Slot slot, bool feasible) {
    judged_[slot] = feasible ? Opinion::kFeasible : Opinion::kNotFeasible;
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
    if (scores.known.size() < judged_.size()) {
      scores.known.resize(judged_.size(), 0);
      scores.values.resize(judged_.size());
    }
    return scores;
  }

  uint64_t seen_ = 0;  // of NodeTable::changes
  std::vector<Opinion> judged_;
  std::vector<Scores> scores_;  // by plugin index
};

}  // namespace outboard::runtime

#endif  // OUTBOARD_PLUGIN_HOST_RUNTIME_NODE_VERDICT_CACHE_H_
