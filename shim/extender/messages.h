// What kube-scheduler asks an extender and is answered (k8s.io/kube-scheduler/extender/v1), in
// JSON.
#ifndef OUTBOARD_SHIM_EXTENDER_MESSAGES_H_
#define OUTBOARD_SHIM_EXTENDER_MESSAGES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/outboard/v1alpha1/call.pb.h"

namespace outboard::extender {

// Of the pod only its names are read: the shim knows it from the API server, as everybody does.
struct PodName {
  std::string uid;
  std::string key;  // NAMESPACE/NAME, for people

  bool operator==(const PodName&) const = default;
};

// ExtenderArgs: of /filter and /prioritize.
struct NodesQuestion {
  PodName pod;
  bool by_name = false;  // nodeCacheCapable
  std::vector<std::string> names;
  std::vector<absl::string_view> nodes;  // unless by_name: the nodes' own JSON, in the body
};

// The answer to it: one verdict a node of the question.
struct NodesAnswer {
  static constexpr int kFeasible = -1;
  static constexpr int kUnknown = -2;       // no such node has been heard of
  static constexpr int64_t kMaxScore = 10;  // upstream's MaxExtenderPriority

  std::vector<int> verdicts;  // or an index into `reasons`
  std::vector<v1alpha1::PluginStatus> reasons;
  std::vector<int64_t> scores;  // 0..kMaxScore; 0 where the node is not feasible
  absl::Status scoring;         // a plugin failed to score; then there are none
};

// ExtenderPreemptionArgs: of /preempt.
struct Victims {
  std::string node;
  std::vector<std::string> uids;
  int64_t budget_violations = 0;
};
struct PreemptionQuestion {
  PodName pod;
  std::vector<Victims> nodes;
};

// ExtenderBindingArgs: of /bind.
struct BindingOrder {
  PodName pod;
  std::string node;
};

// An AdmissionReview (admission.k8s.io/v1) of a bind that somebody else asks the API server for.
struct BindReview {
  std::string uid;  // of the review
  BindingOrder order;
  bool dry_run = false;
};

// Names of fields as Go reads them: in any case; fields that are not known are passed over. Pure.
// Errors: INVALID_ARGUMENT, saying what is wrong and where.
absl::StatusOr<NodesQuestion> DecodeNodesQuestion(absl::string_view body);
absl::StatusOr<PreemptionQuestion> DecodePreemption(absl::string_view body);
absl::StatusOr<BindingOrder> DecodeBinding(absl::string_view body);
// The pod has a uid or else a name. Errors also where it is the review of something else.
absl::StatusOr<BindReview> DecodeBindReview(absl::string_view body);

// ExtenderFilterResult, with nodes as they came or names, as was asked. Pure.
std::string EncodeFilter(const NodesQuestion& question, const NodesAnswer& answer);
// HostPriorityList. Pure.
std::string EncodePriorities(const NodesQuestion& question, const NodesAnswer& answer);
// ExtenderPreemptionResult, always of MetaVictims: those for which `fits` holds. Pure.
std::string EncodePreemption(const PreemptionQuestion& question, const std::vector<bool>& fits);
// AdmissionReview; `objection` is for who asked for the bind, and empty where there is none. Pure.
std::string EncodeBindReview(const BindReview& review, absl::string_view objection);
// What ExtenderFilterResult and ExtenderBindingResult have where nothing else is said; empty: all
// went well. Pure.
std::string EncodeError(absl::string_view error);

}  // namespace outboard::extender

#endif  // OUTBOARD_SHIM_EXTENDER_MESSAGES_H_
