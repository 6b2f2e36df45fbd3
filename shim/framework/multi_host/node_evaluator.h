// One pod against given nodes: which can take it, why not, and how good they are. For callers that
// select a node themselves.
#ifndef OUTBOARD_SHIM_FRAMEWORK_MULTI_HOST_NODE_EVALUATOR_H_
#define OUTBOARD_SHIM_FRAMEWORK_MULTI_HOST_NODE_EVALUATOR_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "shim/framework/multi_host/extension_point_runner.h"

namespace outboard::framework {

struct EvaluateRequest {
  AttemptHosts hosts;  // all that serve the profile
  const AlgorithmProfile* profile = nullptr;
  std::string pod_uid;
  // The pod itself and the cluster, from which questions name the nodes with nominated pods; null:
  // they name none.
  const cache::ClusterState* cluster = nullptr;
  const kube::PodObject* pod = nullptr;
  uint64_t attempt_id = 0;
  absl::Duration budget = absl::Seconds(1);  // of wall-clock time, over all calls
};

// The hosts' evaluation of the given nodes, in the order of the nodes.
struct NodeEvaluation {
  static constexpr int kFeasible = -1;
  static constexpr int64_t kMaxScore = 1000;

  std::vector<v1beta1::PluginStatus> reasons;
  std::vector<int> verdicts;  // kFeasible, or an index into `reasons`
  // Per node, 0..kMaxScore: the weighted mean of the plugins that scored the pod; 0 if the node is
  // not feasible, and for all nodes if no plugin scored.
  std::vector<int64_t> scores;
  // A plugin failed to score; then all scores are 0.
  absl::Status scoring;
};

// Asks hosts about pods, from PreFilter to Score.
//
// Threading: the scheduling thread; a call blocks until the answer or the end of its budget.
// Lifetime: one attempt; what the request points to outlives it.
// Errors: UNKNOWN with `plugin_failed`: a plugin failed, with its message. Others: the host
// `failed_host` returned no usable answer.
class NodeEvaluator {
 public:
  explicit NodeEvaluator(EvaluateRequest request);

  // The name of the node in a slot; called only if a plugin names nodes.
  using NameOf = absl::FunctionRef<std::string(uint32_t slot)>;

  // Evaluates all `slots`, without sampling.
  absl::Status Evaluate(absl::Span<const uint32_t> slots, NameOf name_of, NodeEvaluation* out);
  // Whether the pod fits on each hypothesis' node.
  absl::Status EvaluateHypotheses(
      const google::protobuf::RepeatedPtrField<v1beta1::SimulatedNode>& hypotheses, NameOf name_of,
      std::vector<bool>* fits);

  bool plugin_failed() const { return plugin_failed_; }
  size_t failed_host() const { return runner_.failed_host(); }

 private:
  absl::Status PluginFailed(const v1beta1::PluginStatus& status);
  absl::Status Ask(const v1beta1::NodeSet& nodes);
  absl::Status AskPointByPoint(const v1beta1::NodeSet& nodes);
  absl::Status TakeAnswer(absl::Span<const uint32_t> slots, absl::Span<const size_t> asked,
                          NodeEvaluation* out);

  const EvaluateRequest request_;
  ExtensionPointRunner runner_;
  v1beta1::CycleEvaluation answers_;  // PreFilter may have rejected
  bool plugin_failed_ = false;
};

}  // namespace outboard::framework

#endif  // OUTBOARD_SHIM_FRAMEWORK_MULTI_HOST_NODE_EVALUATOR_H_
