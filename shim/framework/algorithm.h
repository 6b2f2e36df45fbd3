// From a pod to a node: one attempt's PreFilter, Filter, PreScore and Score on its hosts, with the
// answers checked and summed up.
#ifndef OUTBOARD_SHIM_FRAMEWORK_ALGORITHM_H_
#define OUTBOARD_SHIM_FRAMEWORK_ALGORITHM_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "shim/cache/cluster_state.h"
#include "shim/framework/algorithm_profile.h"
#include "shim/framework/answer_check.h"
#include "shim/framework/fit_error.h"
#include "shim/framework/group_steps.h"
#include "shim/framework/host_client.h"
#include "shim/kube/objects.h"

namespace outboard::framework {

class CallRecorder;
class ExtensionPointRunner;

struct AlgorithmRequest {
  AttemptHosts hosts;  // all that serve the profile
  const AlgorithmProfile* profile = nullptr;
  const kube::PodObject* pod = nullptr;
  uint64_t attempt_id = 0;
  uint32_t start_offset = 0;
  absl::Duration budget = absl::Seconds(1);  // of wall-clock time, over all calls
  bool explain = false;                      // ask hosts for the terms of scores
  // Null: not recorded. Receives the hosts' point-by-point answers, unless the pod has a nominated
  // node, because then hosts get other questions.
  CallRecorder* recorder = nullptr;
  // The next pods of the queue, which a host that serves the profile alone may place too; and
  // whether it may place the pod's group.
  std::vector<std::string> next_pod_uids;
  bool place_group = false;
  // The plugins that say where the group may be placed; null: anywhere.
  GroupPoints* group_points = nullptr;
};

// How an attempt's algorithm ended.
struct AlgorithmResult {
  enum class Outcome {
    kPlaced,         // `slot` is the node
    kUnschedulable,  // `diagnosis` has the reasons
    kError,          // a plugin failed; see `status`
    kNoAnswer,       // a host returned no usable answer; see `status`
  };
  Outcome outcome = Outcome::kNoAnswer;
  absl::Status status;
  size_t failed_host = 0;  // with kNoAnswer
  // With kNoAnswer: the name of the host if a call at a point of groups failed; `failed_host` means
  // nothing then.
  std::string failed_group_host;
  // Hosts whose missing answers the plugins' failure policies allowed the attempt to ignore.
  std::vector<IgnoredFailure> ignored_failures;
  uint32_t slot = 0;
  Diagnosis diagnosis;
  // Nodes evaluated, and how many of them can take the pod; for logs.
  uint32_t evaluated_nodes = 0;
  uint32_t feasible_nodes = 0;
  // By how much the start offset moves for the next attempt.
  uint32_t processed_nodes = 0;
  // With kPlaced: other pods and their nodes: the next pods in order, or the pod's group.
  std::vector<v1beta1::PlannedPlacement> others;
  bool is_group = false;
  // With kUnschedulable: other pods of the group that would get the same answer; and whether
  // PostFilter cannot help, because a plugin at a point of groups rejected the group.
  std::vector<std::string> rejected_with;
  bool rejected_at_group_point = false;
  // With others: per node only "evaluated" is known, unless the host explained the choice.
  bool placed_together = false;

  // For diagnostics: what was answered, for which nodes, in the order of examination.
  int64_t snapshot_version = 0;
  std::vector<uint32_t> examined_slots;      // slot of node i of the FilterResponse
  std::vector<uint32_t> feasible_positions;  // indices into examined_slots
  std::vector<int64_t> totals;               // one a feasible node; empty if nothing was scored
  v1beta1::ScoreResponse explained;          // with placed_together: the scores behind `totals`
  // The nominated node, if it was tried alone, rejected, and not examined again.
  std::optional<uint32_t> tried_slot;
  v1beta1::PluginStatus tried_status;
};

// Adds the scores by which a host selected the node of a pod that was placed with others; checked
// before.
void AddExplanation(const v1beta1::PlannedPlacement& placement,
                    const std::vector<WeightedPlugin>& score_plugins, AlgorithmResult* result);

// Runs attempts on one thread; keeps its buffers between them.
//
// Threading: thread-compatible.
// Lifetime: the cluster outlives it.
// Errors: in the result.
class Algorithm {
 public:
  explicit Algorithm(const cache::ClusterState* cluster) : cluster_(cluster) {}

  // The result is valid until the next Run.
  const AlgorithmResult& Run(const AlgorithmRequest& request);
  // The answer of the host in the last Run, or the merged answer of several hosts.
  const v1beta1::PlanResponse& response() const { return response_; }
  // Of the last Run.
  const AlgorithmResult& result() const { return result_; }
  // One host's question and answer in the last Run, in one message about all nodes; nullopt without
  // a usable answer of this kind.
  struct FusedAnswer {
    size_t host = 0;
    const v1beta1::PlanRequest* request = nullptr;
    const v1beta1::PlanResponse* response = nullptr;
  };
  const std::optional<FusedAnswer>& fused_answer() const { return fused_answer_; }
  uint32_t num_candidates() const { return static_cast<uint32_t>(candidates_.size()); }
  // How many feasible nodes of a list are enough.
  static uint32_t NumToFind(const AlgorithmProfile& profile, size_t num_nodes);
  // The verdicts of the last Run, which found no node, for each node.
  v1beta1::JudgedNodes JudgedNodes() const;

 private:
  static bool CanPlaceGroup(const AlgorithmRequest& request);
  // One message to the only host. The answer is in `response_`.
  absl::Status AskAtOnce(const AlgorithmRequest& request, absl::Time deadline);
  // The same, step by step if the pod is in a group.
  absl::Status AskGroupSteps(const AlgorithmRequest& request, absl::Time deadline);
  // Fills `request_` with a search of all nodes that PreFilter leaves.
  void FillCycle(const AlgorithmRequest& request, size_t host);
  // Puts the answer into `response_`.
  absl::Status AskPreFilter(const AlgorithmRequest& request, ExtensionPointRunner* runner);
  absl::Status RunPointByPoint(const AlgorithmRequest& request, ExtensionPointRunner* runner);
  // Tries the pod's nominated node alone; true if the pod takes it.
  absl::StatusOr<bool> TryNominatedNode(const AlgorithmRequest& request, uint32_t slot,
                                        ExtensionPointRunner* runner);
  absl::Status FilterAndScore(const AlgorithmRequest& request, ExtensionPointRunner* runner);
  // Puts the slots to examine into `candidates_`, in node order.
  void FindCandidates();
  void Evaluate(const AlgorithmRequest& request);
  void EvaluatePlacements(const AlgorithmRequest& request);
  void EvaluateFilter(const AlgorithmRequest& request, uint32_t num_to_find);
  void Fail(AlgorithmResult::Outcome outcome, absl::Status status);

  const cache::ClusterState* const cluster_;
  AlgorithmResult result_;
  v1beta1::PlanRequest request_;
  std::optional<FusedAnswer> fused_answer_;
  LastScores last_scores_;
  v1beta1::PlanResponse response_;
  v1beta1::PlanResponse main_response_;
  std::vector<uint32_t> candidates_;
};

}  // namespace outboard::framework

#endif  // OUTBOARD_SHIM_FRAMEWORK_ALGORITHM_H_
