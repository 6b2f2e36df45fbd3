// What plugins said of nodes to one pod, for those like it that come next.
#ifndef OUTBOARD_PLUGIN_HOST_RUNTIME_NODE_OPINIONS_H_
#define OUTBOARD_PLUGIN_HOST_RUNTIME_NODE_OPINIONS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "plugin_host/sdk/node_table.h"

namespace outboard::runtime {

// Holds of nodes on which nothing has changed since, for interchangeable pods, as far as plugins
// are sdk::NodeLocalPlugin, and while nothing but pods on nodes changes.
//
// Threading: thread-compatible. Lifetime: a value. Errors: none.
class NodeOpinions {
 public:
  void Forget() { ++round_; }

  enum class Opinion { kUnknown, kNotFeasible, kFeasible };
  // Of Filter on a node.
  Opinion OfFilter(const sdk::NodeTable& nodes, sdk::Slot slot) const {
    if (slot >= judged_.size() || !Holds(judged_[slot], nodes, slot)) return Opinion::kUnknown;
    return judged_[slot].opinion;
  }
  void SetFeasible(const sdk::NodeTable& nodes, sdk::Slot slot, bool feasible) {
    if (slot >= judged_.size()) judged_.resize(nodes.generation.size());
    judged_[slot] = {nodes.generation[slot], round_,
                     feasible ? Opinion::kFeasible : Opinion::kNotFeasible};
  }

  // Fills in the plugin's raw scores that are known, and the positions of the others.
  void Scores(const sdk::NodeTable& nodes, uint32_t plugin, absl::Span<const sdk::Slot> slots,
              absl::Span<int64_t> raw, std::vector<uint32_t>* unknown) {
    const Scored* const known = Of(nodes, plugin).data();
    const uint64_t* const generations = nodes.generation.data();
    const uint64_t round = round_;
    unknown->clear();
    for (uint32_t i = 0; i < slots.size(); ++i) {
      const sdk::Slot slot = slots[i];
      const Scored& scored = known[slot];
      raw[i] = scored.score;
      if (scored.generation != generations[slot] || scored.round != round) unknown->push_back(i);
    }
  }
  void SetScore(const sdk::NodeTable& nodes, uint32_t plugin, sdk::Slot slot, int64_t score) {
    Of(nodes, plugin)[slot] = {nodes.generation[slot], round_, score};
  }

 private:
  // As of a generation of the node, and a round.
  struct Judged {
    uint64_t generation = 0;
    uint64_t round = 0;
    Opinion opinion = Opinion::kUnknown;
  };
  struct Scored {
    uint64_t generation = 0;
    uint64_t round = 0;
    int64_t score = 0;
  };
  template <typename Entry>
  bool Holds(const Entry& entry, const sdk::NodeTable& nodes, sdk::Slot slot) const {
    return entry.generation == nodes.generation[slot] && entry.round == round_;
  }
  std::vector<Scored>& Of(const sdk::NodeTable& nodes, uint32_t plugin) {
    if (plugin >= scores_.size()) scores_.resize(plugin + 1);
    if (scores_[plugin].size() < nodes.generation.size())
      scores_[plugin].resize(nodes.generation.size());
    return scores_[plugin];
  }

  uint64_t round_ = 1;                       // What is of an earlier one is forgotten.
  std::vector<Judged> judged_;               // By slot.
  std::vector<std::vector<Scored>> scores_;  // By plugin index, then slot.
};

}  // namespace outboard::runtime

#endif  // OUTBOARD_PLUGIN_HOST_RUNTIME_NODE_OPINIONS_H_
