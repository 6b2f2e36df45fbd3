// From a pod to a node: one attempt's PreFilter, Filter, PreScore and Score on its hosts, checked
// and summed up.
#ifndef OUTBOARD_SHIM_CYCLE_ALGORITHM_H_
#define OUTBOARD_SHIM_CYCLE_ALGORITHM_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "shim/cycle/answer_check.h"
#include "shim/cycle/cluster_state.h"
#include "shim/cycle/fit_error.h"
#include "shim/cycle/host_client.h"
#include "shim/cycle/host_panel.h"
#include "shim/kube/objects.h"

namespace outboard::cycle {

struct AlgorithmRequest {
  AttemptHosts hosts;  // all that serve the profile
  const AlgorithmProfile* profile = nullptr;
  const kube::PodObject* pod = nullptr;
  uint64_t attempt_id = 0;
  uint32_t start_offset = 0;
  absl::Duration budget = absl::Seconds(1);  // of wall-clock time, over all calls
  bool explain = false;                      // hosts say what scores are made of
  // Null: nobody wants to know. It is told what hosts answer point by point, unless the pod has a
  // nominated node, for which they are asked otherwise than for others.
  ExchangeRecorder* recorder = nullptr;
  // Pods that come next, which a host that serves the profile alone may place, too; and whether it
  // may place the pod's group.
  std::vector<std::string> next_pod_uids;
  bool place_group = false;
};

// How an attempt's algorithm ended.
struct AlgorithmResult {
  enum class Outcome {
    kPlaced,         // `slot` is the node
    kUnschedulable,  // `diagnosis` says why
    kError,          // a plugin failed; `status` says how
    kNoAnswer,       // a host gave none, or one that cannot be used; `status` says how
  };
  Outcome outcome = Outcome::kNoAnswer;
  absl::Status status;
  size_t silent_host = 0;  // the one that gave no answer
  // Hosts whose answers the attempt did without, as their plugins' failure policies have it.
  std::vector<LeftOut> left_out;
  uint32_t slot = 0;
  Diagnosis diagnosis;
  // Nodes judged, and those of them that can take the pod; for logs.
  uint32_t evaluated_nodes = 0;
  uint32_t feasible_nodes = 0;
  // How far the next attempt's start moves.
  uint32_t processed_nodes = 0;
  // With kPlaced: other pods and their nodes; the next ones in order, or of the pod's group.
  std::vector<v1alpha1::PlannedPlacement> others;
  bool is_group = false;
  // With kUnschedulable: other pods of the group that would have had the same answer.
  std::vector<std::string> rejected_with;
  bool placed_together =
      false;  // with others: of each node nothing is known but that it was looked at

  // For whoever wants to see it all: what was answered, on which nodes, in the order in which they
  // were examined.
  int64_t snapshot_version = 0;
  std::vector<uint32_t> examined_slots;      // slot of node i of the FilterResponse
  std::vector<uint32_t> feasible_positions;  // indices into examined_slots
  std::vector<int64_t> totals;               // one a feasible node; empty if nothing was scored
  // The nominated node, if it was looked at alone, rejected, and not looked at again.
  std::optional<uint32_t> tried_slot;
  v1alpha1::PluginStatus tried_status;
};

// Runs attempts on one thread; keeps its buffers between them.
//
// Threading: thread-compatible. Lifetime: the cluster outlives it. Errors: in the result.
class Algorithm {
 public:
  explicit Algorithm(const ClusterState* cluster) : cluster_(cluster) {}

  // The result is valid until the next Run.
  const AlgorithmResult& Run(const AlgorithmRequest& request);
  // What the host answered in the last Run, or the hosts together.
  const v1alpha1::CycleResponse& response() const { return response_; }
  // Of the last Run.
  const AlgorithmResult& result() const { return result_; }
  // What one host was asked and answered in the last Run in one message about all nodes, if there
  // was one that could be used.
  struct FusedAnswer {
    size_t host = 0;
    const v1alpha1::CycleRequest* request = nullptr;
    const v1alpha1::CycleResponse* response = nullptr;
  };
  const std::optional<FusedAnswer>& fused_answer() const { return fused_answer_; }
  uint32_t num_candidates() const { return static_cast<uint32_t>(candidates_.size()); }
  // How many feasible nodes of a list are enough.
  static uint32_t NumToFind(const AlgorithmProfile& profile, size_t num_nodes);
  // What the last Run, which found no node, learned of each.
  v1alpha1::JudgedNodes JudgedNodes() const;

 private:
  static bool CanPlaceGroup(const AlgorithmRequest& request);
  // One message to the only host; the answer is in `response_`.
  absl::Status AskAtOnce(const AlgorithmRequest& request, absl::Time deadline);
  // Fills `request_`.
  void FillCycle(const AlgorithmRequest& request, size_t host, v1alpha1::FilterRequest filter);
  absl::Status RunPointByPoint(const AlgorithmRequest& request, HostPanel* panel);
  // Tries the pod's nominated node alone; true if it was taken.
  absl::StatusOr<bool> TryNominatedNode(const AlgorithmRequest& request, uint32_t slot,
                                        HostPanel* panel);
  absl::Status FilterAndScore(const AlgorithmRequest& request, HostPanel* panel);
  // Puts the slots to be judged into `candidates_`, in node order.
  void FindCandidates();
  void Evaluate(const AlgorithmRequest& request);
  void EvaluatePlacements(const AlgorithmRequest& request);
  void EvaluateFilter(const AlgorithmRequest& request, uint32_t num_to_find);
  void Fail(AlgorithmResult::Outcome outcome, absl::Status status);

  const ClusterState* const cluster_;
  AlgorithmResult result_;
  v1alpha1::CycleRequest request_;
  std::optional<FusedAnswer> fused_answer_;
  LastScores last_scores_;
  v1alpha1::CycleResponse response_;
  v1alpha1::CycleResponse main_response_;
  std::vector<uint32_t> candidates_;
};

}  // namespace outboard::cycle

#endif  // OUTBOARD_SHIM_CYCLE_ALGORITHM_H_
