// Runs a profile's plugins from PreFilter to Score, with kube-scheduler's semantics.
#ifndef OUTBOARD_PLUGIN_HOST_RUNTIME_EVALUATOR_H_
#define OUTBOARD_PLUGIN_HOST_RUNTIME_EVALUATOR_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "outboard/v1beta1/filter.pb.h"
#include "outboard/v1beta1/plan.pb.h"
#include "outboard/v1beta1/post_filter.pb.h"
#include "outboard/v1beta1/score.pb.h"
#include "plugin_host/cache/cluster_cache.h"
#include "plugin_host/runtime/attempt_record.h"
#include "plugin_host/runtime/node_verdict_cache.h"
#include "plugin_host/runtime/plugin_times.h"
#include "plugin_host/runtime/profile.h"
#include "plugin_host/sdk/filter_block.h"
#include "plugin_host/sdk/plugin.h"

namespace outboard::runtime {

// A node with pods removed or returned. See filter.proto.
struct NodeChange {
  sdk::Slot slot = sdk::kNoSlot;
  std::vector<sdk::PodRecord*> removed;
  std::vector<sdk::PodRecord*> added;
  bool continues = false;
};

// Which part of the list of nodes to search.
struct SearchOptions {
  uint32_t start_offset = 0;
  uint32_t percentage_of_nodes_to_score = 0;
  uint32_t num_to_find = 0;  // 0: the percentage applies
};

// How many of `n` nodes must be feasible.
uint32_t FeasibleNodesToFind(uint32_t n, const SearchOptions& options);

// Evaluates one attempt at a time against a cache, reusing its buffers.
//
// Writes answers directly into messages, which callers reuse: no allocation per node.
//
// Threading: thread-compatible; shares the cache's thread.
// Lifetime:  the cache must outlive it.
// Errors:    within the answers; the caller has checked that the pod and the slots exist.
class Evaluator {
 public:
  static constexpr int kStripBlocks = 8;
  static constexpr int kStripNodes = kStripBlocks * 64;

  explicit Evaluator(host_cache::ClusterCache* cache) : cache_(cache) {}

  // A plugin's view of an attempt.
  sdk::Attempt View(AttemptRecord& attempt, uint32_t plugin, const sdk::PodRecord& pod,
                    absl::Time now) const;

  void PreFilter(AttemptRecord& attempt, const sdk::PodRecord& pod, absl::Time now,
                 v1beta1::PreFilterResponse* response);
  // Evaluates `nodes` in order; `feasible` receives the feasible ones.
  void Filter(AttemptRecord& attempt, const sdk::PodRecord& pod, absl::Time now,
              absl::Span<const sdk::Slot> nodes, const SearchOptions& options,
              v1beta1::FilterResponse* response, std::vector<sdk::Slot>* feasible);
  void PreScore(AttemptRecord& attempt, const sdk::PodRecord& pod, absl::Time now,
                absl::Span<const sdk::Slot> nodes, v1beta1::PreScoreResponse* response);
  void Score(AttemptRecord& attempt, const sdk::PodRecord& pod, absl::Time now,
             absl::Span<const sdk::Slot> nodes, bool explain, v1beta1::ScoreResponse* response);
  // Everything after PreFilter up to the selection: the node that the shim would select, and the
  // result of the search. `filter` receives Filter's answer.
  struct Choice {
    sdk::Slot slot = sdk::kNoSlot;  // kNoSlot: none is feasible, or a plugin failed
    uint32_t processed = 0;
    uint32_t feasible = 0;
    bool scored = false;  // selected by scores
    std::string error;    // of a plugin that failed at PreScore or Score
  };
  Choice Choose(AttemptRecord& attempt, const sdk::PodRecord& pod, absl::Time now,
                absl::Span<const sdk::Slot> nodes, const SearchOptions& options,
                v1beta1::FilterResponse* filter);
  // The same for a pod that is interchangeable with those of the cache: reuses cached verdicts, and
  // adds new ones.
  Choice ChooseAgain(AttemptRecord& attempt, const sdk::PodRecord& pod, absl::Time now,
                     absl::Span<const sdk::Slot> nodes, const SearchOptions& options,
                     NodeVerdictCache* verdict_cache);
  // Right after a choice by scores: the nodes among which it was made, and their scores; nothing
  // else of the placement.
  std::unique_ptr<v1beta1::PlannedPlacement> Explain(AttemptRecord& attempt,
                                                     const sdk::PodRecord& pod, absl::Time now);
  // The index of the node that the shim would select, of nodes just scored without an error.
  size_t SelectNode(const AttemptRecord& attempt, size_t num_nodes);
  void FilterHypotheses(AttemptRecord& attempt, const sdk::PodRecord& pod, absl::Time now,
                        absl::Span<const NodeChange> hypotheses, v1beta1::FilterResponse* response);
  // For an attempt that PreFilter or Filter left without a node. The caller has checked that the
  // numbers of answers and open questions are equal.
  void PostFilter(AttemptRecord& attempt, const sdk::PodRecord& pod, absl::Time now,
                  const v1beta1::PostFilterRequest& request, v1beta1::PostFilterResponse* response);

  // The same for a pod whose group did not fit.
  // `point`: POST_FILTER or POD_GROUP_POST_FILTER.
  void PostFilterGroup(AttemptRecord& attempt, const sdk::PodRecord& pod, absl::Time now,
                       sdk::ExtensionPoint point, const sdk::GroupToPlace& group,
                       sdk::GroupDryRun* group_dry_run, v1beta1::PostFilterResponse* response);

  // Runs the Filter plugins on one node as it is now, with and without the nominated pods; returns
  // success, or the first rejection or failure with its plugin.
  struct NodeVerdict {
    sdk::Verdict verdict;
    uint32_t plugin = 0;
  };
  NodeVerdict EvaluateNode(AttemptRecord& attempt, const sdk::PodRecord& pod, absl::Time now,
                           sdk::Slot slot);
  // Calls AddPod or RemovePod of the PreFilter plugins, on copies of states; `failed` is the failed
  // plugin, if the verdict is an error.
  enum class PodChange { kAdd, kRemove };
  sdk::Verdict UpdatePluginStates(AttemptRecord& attempt, const sdk::PodRecord& pod, absl::Time now,
                                  PodChange change, const sdk::PodRecord& other, sdk::Slot slot,
                                  uint32_t* failed);

 private:
  // Fills `scored_` and `scores_` with normalised scores; false with an error in `response`.
  bool RunScores(AttemptRecord& attempt, const sdk::PodRecord& pod, absl::Time now,
                 absl::Span<const sdk::Slot> nodes, NodeVerdictCache* verdict_cache,
                 v1beta1::ScoreResponse* response);
  // The scores that RunScores left for these nodes.
  void WriteScores(AttemptRecord& attempt, const sdk::PodRecord& pod, absl::Time now,
                   absl::Span<const sdk::Slot> nodes, bool explain,
                   v1beta1::ScoreResponse* response);
  // Scores the nodes without a cached score, with a node-local plugin.
  sdk::Verdict ScoreUnknown(AttemptRecord& attempt, uint32_t plugin, const sdk::PodRecord& pod,
                            absl::Time now, absl::Span<const sdk::Slot> nodes,
                            absl::Span<int64_t> raw, NodeVerdictCache* verdict_cache);
  // Selects the node of feasible_ with the highest score; kNoSlot if empty.
  void ChooseAmongFeasible(AttemptRecord& attempt, const sdk::PodRecord& pod, absl::Time now,
                           NodeVerdictCache* verdict_cache, Choice* choice);
  // Searches like Filter, into `feasible_`. False if Filter must run: not all plugins are
  // node-local, nodes have nominated pods, or a plugin failed.
  bool SearchAgain(AttemptRecord& attempt, const sdk::PodRecord& pod, absl::Time now,
                   absl::Span<const sdk::Slot> nodes, const SearchOptions& options,
                   NodeVerdictCache* verdict_cache, uint32_t* processed);
  // Nodes that are evaluated together: one bit each, 64 per block.
  struct Strip {
    int size = 0;
    // Position of the first in the cache's order of nodes, if they are contiguous there; see
    // sdk::NodeBlock.
    uint32_t place = sdk::NodeBlock::kNoPlace;
    std::array<sdk::Slot, kStripNodes> slots;
    std::array<sdk::BlockVerdicts, kStripBlocks> verdicts;
    std::array<uint64_t, kStripBlocks> feasible;
    std::array<uint64_t, kStripBlocks> failed;
    // Infeasible nodes that are feasible with the nominated pods.
    std::array<uint64_t, kStripBlocks> only_without_nominated;
  };
  class FilterWriter;
  // Nodes of one block with the same verdict.
  struct Rejected {
    uint32_t block;
    uint32_t verdict;
    uint64_t nodes;
  };
  // `stable`: see FilterSink.
  void RunFilters(AttemptRecord& attempt, const sdk::PodRecord& pod, absl::Time now, bool stable,
                  Strip* strip);
  // Evaluates a node again as if its nominated pods ran there. True if that is a rejection, which
  // it keeps.
  bool EvaluateWithNominated(AttemptRecord& attempt, const sdk::PodRecord& pod, absl::Time now,
                             int index, Strip* strip);
  bool HasRelevantNominated(const sdk::PodRecord& pod, sdk::Slot slot) const;
  // kube-scheduler's text for a failure.
  std::string FailureText(const AttemptRecord& attempt, uint32_t verdict) const;
  // `ask` calls a plugin, and fills in its candidates on success.
  using AskPostFilter = absl::FunctionRef<sdk::Verdict(uint32_t plugin, bool* clear_nomination,
                                                       v1beta1::PreemptionCandidates* candidates)>;
  static void RunPostFilter(const Profile& profile, sdk::ExtensionPoint point, AskPostFilter ask,
                            v1beta1::PostFilterResponse* response);
  void NoteRejections(absl::Span<const sdk::Slot> nodes, uint32_t start,
                      const v1beta1::FilterResponse& response, AttemptRecord* attempt) const;

  host_cache::ClusterCache* cache_;
  sdk::VerdictTable verdicts_;
  Strip strip_;
  std::vector<Rejected> rejected_;  // in this search
  bool any_nominated_ = true;       // Possibly to some node, as far as RunFilters knows.
  std::vector<uint32_t> scored_;    // Indices of plugins that were not skipped.
  std::vector<int64_t> scores_;     // One row per plugin.
  std::vector<int64_t> totals_;
  std::vector<sdk::Slot> feasible_;
  // Nodes to score without a cached score: their positions, slots and scores.
  std::vector<uint32_t> unknown_;
  std::vector<sdk::Slot> unknown_slots_;
  std::vector<int64_t> unknown_scores_;
  v1beta1::FilterResponse filter_;
  v1beta1::PreScoreResponse pre_score_;
  v1beta1::ScoreResponse score_;
  std::vector<int64_t> tie_keys_;
  // Times of the Filter plugins for one pod, over all calls of RunFilters; null in dry runs, which
  // are part of their own point's time.
  PluginTimes::Evaluation* filter_times_ = nullptr;
};

// Writes a verdict in the contract's form, within its limits.
void FillStatus(const std::string& plugin, const sdk::Verdict& verdict,
                v1beta1::PluginStatus* status);
void FillErrorStatus(const std::string& plugin, const std::string& message,
                     v1beta1::PluginStatus* status);
// A failure's reasons as one text.
std::string ErrorText(const sdk::Verdict& verdict);

}  // namespace outboard::runtime

#endif  // OUTBOARD_PLUGIN_HOST_RUNTIME_EVALUATOR_H_
