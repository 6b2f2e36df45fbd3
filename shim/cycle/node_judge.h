// One pod against given nodes: which can take it, why not, and how good they are. For those who
// choose a node themselves.
#ifndef OUTBOARD_SHIM_CYCLE_NODE_JUDGE_H_
#define OUTBOARD_SHIM_CYCLE_NODE_JUDGE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "shim/cycle/host_panel.h"

namespace outboard::cycle {

struct JudgeRequest {
  AttemptHosts hosts;  // all that serve the profile
  const AlgorithmProfile* profile = nullptr;
  std::string pod_uid;
  uint64_t attempt_id = 0;
  absl::Duration budget = absl::Seconds(1);  // of wall-clock time, over all calls
};

// What hosts say of each of some nodes, in their order.
struct NodeJudgement {
  static constexpr int kFeasible = -1;
  static constexpr int64_t kMaxScore = 1000;

  std::vector<v1alpha1::PluginStatus> reasons;
  std::vector<int> verdicts;  // kFeasible, or an index into `reasons`
  // One a node, 0..kMaxScore: the weighted mean of the plugins that had something to say about the
  // pod; 0 where the node is not feasible, and everywhere if no plugin had.
  std::vector<int64_t> scores;
  // A plugin failed to score; then all scores are 0.
  absl::Status scoring;
};

// Asks hosts about pods, from PreFilter to Score.
//
// Threading: the scheduling thread; a call blocks until the answer or the end of its budget.
// Lifetime:  of one attempt; what the request points to outlives it.
// Errors:    UNKNOWN with `plugin_failed`: a plugin failed, in its words. Others: the host
// `silent_host` gave no answer, or one that cannot be used.
class NodeJudge {
 public:
  explicit NodeJudge(JudgeRequest request);

  // The name of the node in a slot; asked only where a plugin names nodes.
  using NameOf = absl::FunctionRef<std::string(uint32_t slot)>;

  // Every one of `slots`, nothing is sampled.
  absl::Status Judge(absl::Span<const uint32_t> slots, NameOf name_of, NodeJudgement* out);
  // Whether the pod could come to each hypothesis' node.
  absl::Status JudgeHypotheses(
      const google::protobuf::RepeatedPtrField<v1alpha1::Hypothesis>& hypotheses, NameOf name_of,
      std::vector<bool>* fits);

  bool plugin_failed() const { return plugin_failed_; }
  size_t silent_host() const { return panel_.silent_host(); }

 private:
  absl::Status PluginFailed(const v1alpha1::PluginStatus& status);
  absl::Status Ask(const v1alpha1::NodeSet& nodes);
  absl::Status AskPointByPoint(v1alpha1::NodeSet nodes);
  absl::Status TakeAnswer(absl::Span<const uint32_t> slots, absl::Span<const size_t> asked,
                          NodeJudgement* out);

  const JudgeRequest request_;
  HostPanel panel_;
  v1alpha1::CycleResponse response_;
  bool plugin_failed_ = false;
};

}  // namespace outboard::cycle

#endif  // OUTBOARD_SHIM_CYCLE_NODE_JUDGE_H_
