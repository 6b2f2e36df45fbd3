// Calls all hosts of a profile in parallel and merges their answers.
#ifndef OUTBOARD_SHIM_FRAMEWORK_MULTI_HOST_EXTENSION_POINT_RUNNER_H_
#define OUTBOARD_SHIM_FRAMEWORK_MULTI_HOST_EXTENSION_POINT_RUNNER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "outboard/v1beta1/cycle.pb.h"
#include "outboard/v1beta1/plan.pb.h"
#include "shim/framework/algorithm_profile.h"
#include "shim/framework/answer_check.h"
#include "shim/framework/host_call_trace.h"
#include "shim/framework/host_client.h"
#include "shim/framework/nominated_pods.h"

namespace outboard::framework {

// Calls several hosts in parallel, checks each answer and merges the answers. With a single host it
// only calls it; the caller checks the answers.
//
// Threading: the scheduling thread; a call blocks until the slowest host has answered.
// Lifetime: one attempt; hosts and profile outlive it.
// Errors: a host (`failed_host`) returned no usable answer.
class ExtensionPointRunner {
 public:
  ExtensionPointRunner(const AttemptHosts* hosts, const AlgorithmProfile* profile,
                       uint64_t attempt_id, absl::Time deadline)
      : hosts_(*hosts), profile_(*profile), attempt_id_(attempt_id), deadline_(deadline) {}

  // Where to find scores for hosts that may fail to answer; `owner` identifies similar pods.
  // Without them the scores of such hosts are missing.
  void UseLastScores(LastScores* scores, std::string owner) {
    last_scores_ = scores;
    owner_ = std::move(owner);
  }

  // Names in questions of Filter the nodes that are evaluated twice for `pod`; by default none is
  // named. Both outlive the runner.
  void UseNominations(const cache::ClusterState* cluster, const kube::PodObject* pod) {
    cluster_ = cluster;
    pod_ = pod;
  }

  // Asks hosts for the terms of scores.
  void SetExplain(bool explain) { explain_ = explain; }
  // Records questions and answers from now on. The recorder outlives the runner.
  void SetRecorder(CallRecorder* recorder) { recorder_ = recorder; }

  // Makes PreFilter call the main host for all points in one message, `request`, with the same
  // sampling as for a single host. Its answer is used unless another host restricts the nodes or
  // rejects a node of the sample. If the message fails, the host is called point by point, because
  // each point has its own failure policy. Both arguments outlive the runner.
  void AskMainAtOnce(const v1beta1::PlanRequest* request, v1beta1::PlanResponse* answer) {
    at_once_ = AtOnce();
    at_once_.request = request;
    at_once_.answer = answer;
  }
  // Whether the main host's search covered the nodes of the attempt.
  bool main_search_stands() const { return at_once_.search_stands; }

  // Begins the attempt on every host.
  absl::StatusOr<v1beta1::PreFilterResponse> PreFilter(const std::string& pod_uid);
  // `candidates` are the nodes of `search`.
  absl::StatusOr<v1beta1::FilterResponse> Filter(v1beta1::NodeSearch search,
                                                 absl::Span<const uint32_t> candidates,
                                                 uint32_t num_to_find);
  // Evaluates each simulated node on the only host.
  absl::StatusOr<v1beta1::FilterResponse> Simulate(v1beta1::NodeSimulation simulation);
  absl::StatusOr<v1beta1::PreScoreResponse> PreScore(const v1beta1::NodeSet& nodes);
  absl::StatusOr<v1beta1::ScoreResponse> Score(const v1beta1::NodeSet& nodes);
  // Evaluates each hypothesis on all hosts except `excepted`. Entry i has the rejections of
  // hypothesis i, in any order.
  absl::StatusOr<std::vector<std::vector<v1beta1::PluginStatus>>> EvaluateHypotheses(
      const google::protobuf::RepeatedPtrField<v1beta1::SimulatedNode>& hypotheses,
      size_t excepted);
  // The same for the questions of host `asking`, with its own verdicts: per question the verdict of
  // the first plugin in the profile.
  absl::StatusOr<std::vector<v1beta1::PluginStatus>> AnswerQuestions(
      const google::protobuf::RepeatedPtrField<v1beta1::PreemptionQuestion>& questions,
      size_t asking);

  absl::Time deadline() const { return deadline_; }
  // Index of the host that caused the last error.
  size_t failed_host() const { return failed_host_; }
  // Hosts whose missing answers the attempt ignored.
  const std::vector<IgnoredFailure>& ignored_failures() const { return ignored_failures_; }

 private:
  bool alone() const { return profile_.shares.empty(); }
  // `sample`: the number of nodes in the main host's sample if the late hosts are asked about it;
  // else 0.
  absl::StatusOr<v1beta1::FilterResponse> AskFilter(v1beta1::NodeSearch search,
                                                    absl::Span<const uint32_t> candidates,
                                                    uint32_t num_to_find, bool late,
                                                    uint32_t sample, bool answer_required);
  // Asks a late host about the sample, in one message with the points after Filter.
  PendingAnswer<v1beta1::FilterResponse> AskAtOnce(size_t host, const v1beta1::NodeSearch& search,
                                                   uint32_t sample);
  // The main host's PreFilter answer, from its one message about all points.
  PendingAnswer<v1beta1::PreFilterResponse> AskMain(v1beta1::PreFilterRequest request);
  // Its answer about its sample.
  absl::StatusOr<v1beta1::FilterResponse> TakeMainSearch(uint32_t num_nodes, uint32_t num_to_find,
                                                         bool must_answer);
  // `Question`: NodeSearch or NodeSimulation.
  template <typename Question>
  void NameNominated(Question* question);
  bool IsIgnored(size_t host) const;
  template <typename Response>
  absl::StatusOr<Response> Recorded(absl::StatusOr<Response> answer);
  void FillHeader(size_t host, v1beta1::CallHeader* header) const;
  // Calls in flight, by host, in the order of hosts.
  template <typename Response>
  using Pending = std::vector<std::pair<size_t, PendingAnswer<Response>>>;
  template <typename Response>
  struct Answers {
    std::vector<size_t> hosts;
    std::vector<Response> answers;
  };
  // Calls the hosts for which `takes_part` holds.
  template <typename Response, typename Request, typename TakesPart>
  Pending<Response> StartAll(const Request& request, TakesPart takes_part);
  // The same, except that hosts which have already answered are not called: their answer contains
  // `part`.
  template <typename Response, typename Request, typename TakesPart>
  Pending<Response> StartOrRecall(const Request& request, TakesPart takes_part,
                                  const Response& (v1beta1::CycleEvaluation::*part)() const);
  // Waits for the answers. `fail_open`: whether the attempt can continue without this host's
  // answer; the host is then ignored at later points.
  template <typename Response, typename IsOpen, typename Check>
  absl::StatusOr<Answers<Response>> TakeAll(v1beta1::ExtensionPoint point,
                                            Pending<Response> pending, IsOpen fail_open,
                                            Check check, bool answer_required);

  const AttemptHosts& hosts_;
  const AlgorithmProfile& profile_;
  const uint64_t attempt_id_;
  const absl::Time deadline_;
  struct AtOnce {
    const v1beta1::PlanRequest* request = nullptr;  // null: point by point
    v1beta1::PlanResponse* answer = nullptr;
    bool answered = false;
    bool search_stands = false;  // until another host restricts the nodes
    bool scores_stand = false;   // until another host rejects one of the sample
    // The late hosts' answers about the sample, by host; while the sample stands.
    std::map<size_t, v1beta1::PlanResponse> late;
  };
  AtOnce at_once_;
  size_t failed_host_ = 0;
  std::vector<IgnoredFailure> ignored_failures_;
  LastScores* last_scores_ = nullptr;
  std::string owner_;
  const cache::ClusterState* cluster_ = nullptr;
  const kube::PodObject* pod_ = nullptr;
  std::optional<std::vector<v1beta1::NominatedPods>> nominated_;  // absent: not asked yet
  bool explain_ = false;
  CallRecorder* recorder_ = nullptr;
};

}  // namespace outboard::framework

#endif  // OUTBOARD_SHIM_FRAMEWORK_MULTI_HOST_EXTENSION_POINT_RUNNER_H_
