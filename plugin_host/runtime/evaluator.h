// Runs a profile's plugins from PreFilter to Score, with kube-scheduler's semantics.
#ifndef OUTBOARD_PLUGIN_HOST_RUNTIME_EVALUATOR_H_
#define OUTBOARD_PLUGIN_HOST_RUNTIME_EVALUATOR_H_

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "plugin_host/mirror/mirror.h"
#include "plugin_host/runtime/node_opinions.h"
#include "plugin_host/runtime/profile.h"
#include "plugin_host/sdk/filter_block.h"
#include "plugin_host/sdk/plugin.h"
#include "proto/outboard/v1alpha1/filter.pb.h"
#include "proto/outboard/v1alpha1/post_filter.pb.h"
#include "proto/outboard/v1alpha1/score.pb.h"

namespace outboard::runtime {

// A question that went to other hosts.
struct OpenQuestion {
  sdk::Slot slot = sdk::kNoSlot;
  bool own_ok = false;  // this host has no objection, and went on as if nobody had
};

// What if pods left a node, or came back? See filter.proto.
struct NodeChange {
  sdk::Slot slot = sdk::kNoSlot;
  std::vector<sdk::PodRecord*> removed;
  std::vector<sdk::PodRecord*> added;
  bool continues = false;
};

// What the host keeps of an attempt.
struct AttemptRecord {
  uint64_t id = 0;
  std::string pod_uid;
  std::shared_ptr<const Profile> profile;
  std::vector<sdk::PluginState> states;  // By plugin index.
  std::vector<uint8_t> skip_filter;      // By plugin index: PreFilter said SKIP.
  std::vector<uint8_t> skip_score;       // By plugin index: PreScore said SKIP.
  // For PostFilter: nodes that Filter rejected, the last word on each last, and the code of all
  // others. Kept only where no node was feasible.
  std::vector<std::pair<sdk::Slot, sdk::Code>> rejected_nodes;
  sdk::Code other_nodes = v1alpha1::UNSCHEDULABLE_AND_UNRESOLVABLE;
  // For PostFilter where other hosts filter, too: what they said of dry runs, by node in the order
  // in which it was asked, and the nodes of questions without an answer.
  absl::flat_hash_map<sdk::Slot, std::vector<sdk::Verdict>> answers;
  std::vector<OpenQuestion> questions;
  // Of the plugin whose group found no room, if that is why there is no node.
  std::optional<uint32_t> group_plugin;

  // Begins anew for this profile.
  void Begin(uint64_t attempt_id, absl::string_view uid, std::shared_ptr<const Profile> p);
};

// Copies of plugins' PreFilter states for AddPod and RemovePod to change; the states come back when
// it goes. Plugins without either share theirs.
class StateCopies {
 public:
  explicit StateCopies(AttemptRecord* attempt);
  ~StateCopies();
  StateCopies(const StateCopies&) = delete;
  StateCopies& operator=(const StateCopies&) = delete;

 private:
  AttemptRecord* const attempt_;
  std::vector<std::unique_ptr<sdk::AttemptState>> saved_;  // By plugin index.
};

// Which part of the list of nodes to search.
struct SearchOptions {
  uint32_t start_offset = 0;
  uint32_t percentage_of_nodes_to_score = 0;
  bool first_feasible_only = false;
  uint32_t enough_nodes = 0;  // 0: as the percentage says
};

// How many of `n` nodes have to be found feasible.
uint32_t FeasibleNodesToFind(uint32_t n, const SearchOptions& options);

// Evaluates one attempt at a time against a mirror, reusing its buffers.
//
// Answers are written straight into messages, which callers reuse: nothing is allocated per node.
//
// Threading: thread-compatible; shares the mirror's thread.
// Lifetime:  the mirror must outlive it.
// Errors:    within the answers; the caller has checked that the pod and the slots exist.
class Evaluator {
 public:
  static constexpr int kStripBlocks = 8;
  static constexpr int kStripNodes = kStripBlocks * 64;

  explicit Evaluator(mirror::Mirror* mirror) : mirror_(mirror) {}

  // What a plugin of the profile is shown of an attempt.
  sdk::Attempt View(AttemptRecord& attempt, uint32_t plugin, const sdk::PodRecord& pod,
                    absl::Time now) const;

  void PreFilter(AttemptRecord& attempt, const sdk::PodRecord& pod, absl::Time now,
                 v1alpha1::PreFilterResponse* response);
  // Judges `nodes` in order; `feasible` receives the feasible ones.
  void Filter(AttemptRecord& attempt, const sdk::PodRecord& pod, absl::Time now,
              absl::Span<const sdk::Slot> nodes, const SearchOptions& options,
              v1alpha1::FilterResponse* response, std::vector<sdk::Slot>* feasible);
  void PreScore(AttemptRecord& attempt, const sdk::PodRecord& pod, absl::Time now,
                absl::Span<const sdk::Slot> nodes, v1alpha1::PreScoreResponse* response);
  void Score(AttemptRecord& attempt, const sdk::PodRecord& pod, absl::Time now,
             absl::Span<const sdk::Slot> nodes, bool explain, v1alpha1::ScoreResponse* response);
  // From Filter to the choice, after PreFilter: the node that the shim would take, and how the
  // search went. `filter` receives what Filter said.
  struct Choice {
    sdk::Slot slot = sdk::kNoSlot;  // kNoSlot: none is feasible, or a plugin failed
    uint32_t processed = 0;
    uint32_t feasible = 0;
    std::string error;  // of a plugin that failed at PreScore or Score
  };
  Choice Choose(AttemptRecord& attempt, const sdk::PodRecord& pod, absl::Time now,
                absl::Span<const sdk::Slot> nodes, const SearchOptions& options,
                v1alpha1::FilterResponse* filter);
  // The same for a pod like those that the opinions are of, without asking again what is known.
  // What it learns it adds to them.
  Choice ChooseAgain(AttemptRecord& attempt, const sdk::PodRecord& pod, absl::Time now,
                     absl::Span<const sdk::Slot> nodes, const SearchOptions& options,
                     NodeOpinions* opinions);
  // Of nodes that were scored just now, without an error, the index of the one that the
  // shim takes.
  size_t SelectHost(const AttemptRecord& attempt, size_t num_nodes);
  void FilterHypotheses(AttemptRecord& attempt, const sdk::PodRecord& pod, absl::Time now,
                        absl::Span<const NodeChange> hypotheses,
                        v1alpha1::FilterResponse* response);
  // For an attempt that PreFilter or Filter left without a node. The caller has checked that
  // answers and open questions are as many.
  void PostFilter(AttemptRecord& attempt, const sdk::PodRecord& pod, absl::Time now,
                  const v1alpha1::PostFilterRequest& request,
                  v1alpha1::PostFilterResponse* response);

  // The same for a pod whose group found no room.
  void PostFilterGroup(AttemptRecord& attempt, const sdk::PodRecord& pod, absl::Time now,
                       const sdk::GroupToPlace& group, sdk::GroupDryRun* group_dry_run,
                       v1alpha1::PostFilterResponse* response);

  // The Filter plugins on one node as it is now, with the nominated pods and without; success, or
  // the first rejection or failure, and by which plugin.
  struct NodeVerdict {
    sdk::Verdict verdict;
    uint32_t plugin = 0;
  };
  NodeVerdict JudgeNode(AttemptRecord& attempt, const sdk::PodRecord& pod, absl::Time now,
                        sdk::Slot slot);
  // AddPod or RemovePod of the PreFilter plugins, on states that are copies; `failed` is the plugin
  // that did, if the verdict is an error.
  enum class PodChange { kAdd, kRemove };
  sdk::Verdict TellPlugins(AttemptRecord& attempt, const sdk::PodRecord& pod, absl::Time now,
                           PodChange change, const sdk::PodRecord& other, sdk::Slot slot,
                           uint32_t* failed);

 private:
  // Fills `scored_` and `scores_` with what plugins at Score say, normalised; false with an error
  // in `response`.
  bool RunScores(AttemptRecord& attempt, const sdk::PodRecord& pod, absl::Time now,
                 absl::Span<const sdk::Slot> nodes, NodeOpinions* opinions,
                 v1alpha1::ScoreResponse* response);
  // Asks a plugin that judges nodes by themselves about those on which it has no opinion yet.
  sdk::Verdict ScoreUnknown(AttemptRecord& attempt, uint32_t plugin, const sdk::PodRecord& pod,
                            absl::Time now, absl::Span<const sdk::Slot> nodes,
                            absl::Span<int64_t> raw, NodeOpinions* opinions);
  // Of feasible_ nodes the one that has most; kNoSlot if there is none.
  void ChooseAmongFeasible(AttemptRecord& attempt, const sdk::PodRecord& pod, absl::Time now,
                           NodeOpinions* opinions, Choice* choice);
  // Searches as Filter does, for `feasible_`; false where it takes Filter itself: not all plugins
  // judge nodes by themselves, pods are nominated to nodes, or a plugin failed.
  bool SearchAgain(AttemptRecord& attempt, const sdk::PodRecord& pod, absl::Time now,
                   absl::Span<const sdk::Slot> nodes, const SearchOptions& options,
                   NodeOpinions* opinions, uint32_t* processed);
  // Nodes that are judged together: a bit each, 64 to a block.
  struct Strip {
    int size = 0;
    // Of the first of them in the mirror's order of nodes, if they are a stretch of it; see
    // sdk::NodeBlock.
    uint32_t place = sdk::NodeBlock::kNoPlace;
    std::array<sdk::Slot, kStripNodes> slots;
    std::array<sdk::BlockVerdicts, kStripBlocks> verdicts;
    std::array<uint64_t, kStripBlocks> feasible;
    std::array<uint64_t, kStripBlocks> failed;
    // Of those not feasible: fine with the nominated pods.
    std::array<uint64_t, kStripBlocks> only_without_nominated;
  };
  class FilterWriter;
  // Nodes of one block that were rejected with one verdict.
  struct Rejected {
    uint32_t block;
    uint32_t verdict;
    uint64_t nodes;
  };
  // `stable`: see FilterSink.
  void RunFilters(AttemptRecord& attempt, const sdk::PodRecord& pod, absl::Time now, bool stable,
                  Strip* strip);
  // Judges a node again as if the pods nominated to it ran there, and keeps what that says if it is
  // a rejection; then it is true.
  bool JudgeWithNominated(AttemptRecord& attempt, const sdk::PodRecord& pod, absl::Time now,
                          int index, Strip* strip);
  bool HasRelevantNominated(const sdk::PodRecord& pod, sdk::Slot slot) const;
  // What a failure is called in kube-scheduler.
  std::string FailureText(const AttemptRecord& attempt, uint32_t verdict) const;
  // `ask` says what a plugin says, and fills in its candidates if that is success.
  using AskPostFilter = absl::FunctionRef<sdk::Verdict(uint32_t plugin, bool* clear_nomination,
                                                       v1alpha1::PostFilterResponse* candidates)>;
  static void RunPostFilter(const Profile& profile, AskPostFilter ask,
                            v1alpha1::PostFilterResponse* response);
  void NoteRejections(absl::Span<const sdk::Slot> nodes, uint32_t start,
                      const v1alpha1::FilterResponse& response, AttemptRecord* attempt) const;

  mirror::Mirror* mirror_;
  sdk::VerdictTable verdicts_;
  Strip strip_;
  std::vector<Rejected> rejected_;  // of the search
  bool any_nominated_ = true;       // To some node, for all that RunFilters knows.
  std::vector<uint32_t> scored_;    // Indices of plugins that were not skipped.
  std::vector<int64_t> scores_;     // A row for each of them.
  std::vector<int64_t> totals_;
  std::vector<sdk::Slot> feasible_;
  // Of the nodes to score, those without an opinion: their positions, slots and scores.
  std::vector<uint32_t> unknown_;
  std::vector<sdk::Slot> unknown_slots_;
  std::vector<int64_t> unknown_scores_;
  v1alpha1::FilterResponse filter_;
  v1alpha1::PreScoreResponse pre_score_;
  v1alpha1::ScoreResponse score_;
  std::vector<int64_t> tie_keys_;
};

// Writes a verdict as the contract has it, within its limits.
void FillStatus(const std::string& plugin, const sdk::Verdict& verdict,
                v1alpha1::PluginStatus* status);
void FillErrorStatus(const std::string& plugin, const std::string& message,
                     v1alpha1::PluginStatus* status);
// A failure's reasons in one text.
std::string ErrorText(const sdk::Verdict& verdict);

}  // namespace outboard::runtime

#endif  // OUTBOARD_PLUGIN_HOST_RUNTIME_EVALUATOR_H_
