// All hosts of a profile, asked at once and heard as one.
#ifndef OUTBOARD_SHIM_CYCLE_HOST_PANEL_H_
#define OUTBOARD_SHIM_CYCLE_HOST_PANEL_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "shim/cycle/answer_check.h"
#include "shim/cycle/host_client.h"

namespace outboard::cycle {

// What one of several hosts does in a profile: names of plugins, in the profile's order.
struct AlgorithmShare {
  std::vector<std::string> pre_filter_plugins;
  std::vector<std::string> filter_plugins;
  std::vector<std::string> pre_score_plugins;
  std::vector<WeightedPlugin> score_plugins;
};

// What the algorithm needs of a profile.
struct AlgorithmProfile {
  std::string name;
  uint32_t percentage_of_nodes_to_score = 0;  // 0: adapts to the size of the cluster
  // Names, for counting who was asked.
  std::vector<std::string> pre_filter_plugins;
  std::vector<std::string> filter_plugins;
  std::vector<std::string>
      post_filter_plugins;  // empty: nothing is tried for a pod that fits nowhere
  std::vector<std::string> pre_score_plugins;
  std::vector<WeightedPlugin> score_plugins;  // empty: the first feasible node is taken
  // One for each host that has a plugin at one of these points, if there are several.
  std::vector<AlgorithmShare> shares;
};

// A host, and the version of the cluster at which it is asked.
struct HostAtVersion {
  HostClient* client = nullptr;
  int64_t version = 0;
};
using AttemptHosts = absl::InlinedVector<HostAtVersion, 2>;

// Several hosts are asked in parallel, and each of their answers is checked before they are merged.
// One host is simply asked; its answers are the caller's to check.
//
// Threading: the scheduling thread; a call blocks until the slowest host has answered.
// Lifetime:  of one attempt; hosts and profile outlive it.
// Errors:    a status: some host, `silent_host`, gave no answer or one that cannot be used.
class HostPanel {
 public:
  HostPanel(const AttemptHosts* hosts, const AlgorithmProfile* profile, uint64_t attempt_id,
            absl::Time deadline)
      : hosts_(*hosts), profile_(*profile), attempt_id_(attempt_id), deadline_(deadline) {}

  // Begins the attempt on every host.
  absl::StatusOr<v1alpha1::PreFilterResponse> PreFilter(const std::string& pod_uid);
  // `candidates` are the nodes that `request` is about.
  absl::StatusOr<v1alpha1::FilterResponse> Filter(v1alpha1::FilterRequest request,
                                                  absl::Span<const uint32_t> candidates,
                                                  uint32_t num_to_find);
  absl::StatusOr<v1alpha1::PreScoreResponse> PreScore(const v1alpha1::NodeSet& nodes);
  absl::StatusOr<v1alpha1::ScoreResponse> Score(const v1alpha1::NodeSet& nodes);
  // What the hosts, but for `excepted`, say of each hypothesis: at its position the verdicts of
  // those that object, in no order.
  absl::StatusOr<std::vector<std::vector<v1alpha1::PluginStatus>>> Judge(
      const google::protobuf::RepeatedPtrField<v1alpha1::Hypothesis>& hypotheses, size_t excepted);
  // The same to a host's questions, its own verdicts included: the one that stands first.
  absl::StatusOr<std::vector<v1alpha1::PluginStatus>> AnswerQuestions(
      const google::protobuf::RepeatedPtrField<v1alpha1::PreemptionQuestion>& questions,
      size_t asking);

  absl::Time deadline() const { return deadline_; }
  // Index of the host that the last error is about.
  size_t silent_host() const { return silent_host_; }

 private:
  bool alone() const { return hosts_.size() == 1; }
  void FillHeader(size_t host, v1alpha1::CallHeader* header) const;
  // Asks the hosts for which `takes_part` holds; their answers, in their order.
  template <typename Response, typename Request, typename TakesPart, typename Check>
  absl::StatusOr<std::vector<Response>> AskAll(const Request& request, TakesPart takes_part,
                                               Check check);

  const AttemptHosts& hosts_;
  const AlgorithmProfile& profile_;
  const uint64_t attempt_id_;
  const absl::Time deadline_;
  size_t silent_host_ = 0;
};

}  // namespace outboard::cycle

#endif  // OUTBOARD_SHIM_CYCLE_HOST_PANEL_H_
