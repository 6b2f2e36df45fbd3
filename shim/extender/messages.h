// Requests and answers of kube-scheduler's extender protocol (k8s.io/kube-scheduler/extender/v1),
// in JSON.
#ifndef OUTBOARD_SHIM_EXTENDER_MESSAGES_H_
#define OUTBOARD_SHIM_EXTENDER_MESSAGES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "outboard/v1beta1/call.pb.h"

namespace outboard::extender {

// Only the pod's identity is read: the shim knows the pod from its watch.
struct PodName {
  std::string uid;
  std::string key;  // NAMESPACE/NAME, for messages

  bool operator==(const PodName&) const = default;
};

// ExtenderArgs of /filter and /prioritize.
struct NodesQuestion {
  PodName pod;
  bool by_name = false;  // nodeCacheCapable
  std::vector<std::string> names;
  std::vector<absl::string_view> nodes;  // unless by_name: the nodes' own JSON, in the body
};

// The answer: one verdict per node of the question.
struct NodesAnswer {
  static constexpr int kFeasible = -1;
  static constexpr int kUnknown = -2;       // the node is unknown
  static constexpr int64_t kMaxScore = 10;  // upstream's MaxExtenderPriority

  std::vector<int> verdicts;  // or an index into `reasons`
  std::vector<v1beta1::PluginStatus> reasons;
  std::vector<int64_t> scores;  // 0..kMaxScore; 0 for infeasible nodes
  absl::Status scoring;         // an error if a plugin failed to score; then scores is empty
};

// ExtenderPreemptionArgs of /preempt.
struct Victims {
  std::string node;
  std::vector<std::string> uids;
  int64_t budget_violations = 0;
};
struct PreemptionQuestion {
  PodName pod;
  std::vector<Victims> nodes;
};

// ExtenderBindingArgs of /bind.
struct BindingOrder {
  PodName pod;
  std::string node;
};

// An AdmissionReview (admission.k8s.io/v1) of a bind by another client of the API server.
struct BindReview {
  std::string uid;  // of the review
  BindingOrder order;
  bool dry_run = false;
};

// Field names are case-insensitive, as in Go; unknown fields are skipped. Pure.
// Errors: INVALID_ARGUMENT with the fault and its position.
absl::StatusOr<NodesQuestion> DecodeNodesQuestion(absl::string_view body);
absl::StatusOr<PreemptionQuestion> DecodePreemption(absl::string_view body);
absl::StatusOr<BindingOrder> DecodeBinding(absl::string_view body);
// The pod has a uid or at least a name. Also an error if it is a review of another operation.
absl::StatusOr<BindReview> DecodeBindReview(absl::string_view body);

// ExtenderFilterResult, with unchanged nodes or with names, as in the question. Pure.
std::string EncodeFilter(const NodesQuestion& question, const NodesAnswer& answer);
// HostPriorityList. Pure.
std::string EncodePriorities(const NodesQuestion& question, const NodesAnswer& answer);
// ExtenderPreemptionResult, always with MetaVictims: those with a true `fits`. Pure.
std::string EncodePreemption(const PreemptionQuestion& question, const std::vector<bool>& fits);
// AdmissionReview. `objection` is for the client that requested the bind; empty: allowed. Pure.
std::string EncodeBindReview(const BindReview& review, absl::string_view objection);
// ExtenderFilterResult or ExtenderBindingResult with only an error; empty: success. Pure.
std::string EncodeError(absl::string_view error);

}  // namespace outboard::extender

#endif  // OUTBOARD_SHIM_EXTENDER_MESSAGES_H_
