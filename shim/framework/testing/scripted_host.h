// A host that answers what the test sets, without a process or a socket.
#ifndef OUTBOARD_SHIM_FRAMEWORK_TESTING_SCRIPTED_HOST_H_
#define OUTBOARD_SHIM_FRAMEWORK_TESTING_SCRIPTED_HOST_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "glog/logging.h"
#include "shim/framework/host_client.h"

namespace outboard::framework {

// By default every node is feasible, the scores are 0, and nothing is reserved or waits. Tests
// replace the functions.
//
// Threading: one thread.
// Filter's answer needs the number of nodes: `num_nodes`.
class ScriptedHost final : public HostClient {
 public:
  ScriptedHost() { info_.add_capabilities(v1beta1::CAPABILITY_FUSED_CYCLE); }

  // Call before the scheduler gets the host; CanAlso and EvaluateHints too.
  v1beta1::PluginInfo* AddPlugin(const std::string& name) {
    v1beta1::PluginInfo* plugin = info_.add_plugins();
    plugin->set_name(name);
    return plugin;
  }
  void CanAlso(v1beta1::Capability capability) { info_.add_capabilities(capability); }
  void EvaluateHints() { info_.add_capabilities(v1beta1::CAPABILITY_QUEUEING_HINTS); }

  // Answers.
  uint32_t num_nodes = 1;
  bool is_usable = true;
  std::function<absl::Status(const v1beta1::PlanRequest&, v1beta1::PlanResponse*)> cycle;
  std::function<absl::StatusOr<v1beta1::PermitResponse>(const v1beta1::PermitRequest&)> permit;
  std::function<absl::StatusOr<v1beta1::PreBindResponse>(const v1beta1::PreBindRequest&)> pre_bind;
  std::function<absl::StatusOr<v1beta1::BindResponse>(const v1beta1::BindRequest&)> bind;
  bool takes_post_bind = true;
  std::function<absl::StatusOr<v1beta1::ReserveResponse>(const v1beta1::ReserveRequest&)> reserve;
  std::function<absl::StatusOr<v1beta1::UnreserveResponse>(const v1beta1::UnreserveRequest&)>
      unreserve;
  std::function<absl::StatusOr<v1beta1::PreEnqueueResponse>(const v1beta1::PreEnqueueRequest&)>
      pre_enqueue;
  std::function<absl::StatusOr<v1beta1::PreFilterResponse>(const v1beta1::PreFilterRequest&)>
      pre_filter;
  std::function<absl::StatusOr<v1beta1::PostFilterResponse>(const v1beta1::PostFilterRequest&)>
      post_filter;
  std::function<absl::StatusOr<v1beta1::FilterResponse>(const v1beta1::FilterRequest&)> filter;
  std::function<absl::StatusOr<v1beta1::PreScoreResponse>(const v1beta1::PreScoreRequest&)>
      pre_score;
  std::function<absl::StatusOr<v1beta1::ScoreResponse>(const v1beta1::ScoreRequest&)> score;
  std::function<absl::StatusOr<v1beta1::SortKeysResponse>(const v1beta1::SortKeysRequest&)>
      sort_keys;
  std::function<absl::StatusOr<v1beta1::GeneratePlacementsResponse>(
      const v1beta1::GeneratePlacementsRequest&)>
      generate_placements;
  std::function<absl::StatusOr<v1beta1::ScorePlacementsResponse>(
      const v1beta1::ScorePlacementsRequest&)>
      score_placements;
  std::vector<v1beta1::SyncResponse> pushes;
  bool is_sending = false;
  int64_t acknowledged = std::numeric_limits<int64_t>::max();
  absl::Time heard_time = absl::InfiniteFuture();

  // Questions received.
  std::vector<v1beta1::SyncRequest> changes;
  std::vector<v1beta1::PlanRequest> cycles;
  std::vector<v1beta1::UnreserveRequest> unreserved;
  std::vector<v1beta1::BindRequest> bind_questions;
  std::vector<v1beta1::PostBindRequest> post_binds;
  std::vector<v1beta1::PushResult> push_results;  // also in `changes`

  // Every node is feasible; with several nodes, plugin "Score" gives each 0.
  void Feasible(v1beta1::PlanResponse* response) const {
    v1beta1::CycleEvaluation* evaluation = response->mutable_evaluation();
    evaluation->mutable_pre_filter();
    v1beta1::FilterResponse* filter = evaluation->mutable_filter();
    filter->set_processed(num_nodes);
    std::string bits((num_nodes + 7) / 8, '\0');
    for (uint32_t i = 0; i < num_nodes; ++i) bits[i / 8] |= static_cast<char>(1 << (i % 8));
    filter->set_feasible(bits);
    if (num_nodes < 2) return;
    v1beta1::PluginScores* scores = evaluation->mutable_score()->add_plugins();
    scores->set_plugin("Score");
    scores->set_scores(std::string(num_nodes, '\0'));
  }
  // No node is feasible.
  void Infeasible(const std::string& plugin, const std::string& reason,
                  v1beta1::PlanResponse* response) const {
    response->mutable_evaluation()->mutable_pre_filter();
    v1beta1::FilterResponse* filter = response->mutable_evaluation()->mutable_filter();
    filter->set_processed(num_nodes);
    filter->set_feasible(std::string((num_nodes + 7) / 8, '\0'));
    v1beta1::PluginStatus* status = filter->add_reasons();
    status->set_plugin(plugin);
    status->set_code(v1beta1::CODE_UNSCHEDULABLE);
    status->add_reasons(reason);
    for (uint32_t i = 0; i < num_nodes; ++i) filter->add_rejected(0);
  }

  const std::string& instance() const override { return instance_; }
  const v1beta1::GetHostInfoResponse& info() const override { return info_; }
  int64_t acknowledged_version() const override { return acknowledged; }
  absl::Time acknowledged_time() const override { return heard_time; }
  bool usable() const override { return is_usable; }
  bool sending() const override { return is_sending; }
  void SendChanges(const v1beta1::SyncRequest& request) override {
    // A real host would end the session.
    CHECK_NE(request.phase(), v1beta1::SyncRequest::PHASE_UNSPECIFIED);
    changes.push_back(request);
    push_results.insert(push_results.end(), request.push_results().begin(),
                        request.push_results().end());
  }
  std::vector<v1beta1::SyncResponse> TakePushes() override { return std::exchange(pushes, {}); }
  absl::Status Cycle(const v1beta1::PlanRequest& request, absl::Time,
                     v1beta1::PlanResponse* response) override {
    cycles.push_back(request);
    response->Clear();
    response->set_attempt_id(request.cycle().header().attempt_id());
    if (cycle) return cycle(request, response);
    Feasible(response);
    return absl::OkStatus();
  }
  absl::StatusOr<v1beta1::ReserveResponse> Reserve(v1beta1::ReserveRequest request,
                                                   absl::Time) override {
    if (reserve) return reserve(request);
    return v1beta1::ReserveResponse();
  }
  absl::StatusOr<v1beta1::UnreserveResponse> Unreserve(v1beta1::UnreserveRequest request,
                                                       absl::Time) override {
    unreserved.push_back(request);
    if (unreserve) return unreserve(request);
    return v1beta1::UnreserveResponse();
  }
  absl::StatusOr<v1beta1::PermitResponse> Permit(v1beta1::PermitRequest request,
                                                 absl::Time) override {
    if (permit) return permit(request);
    return v1beta1::PermitResponse();
  }
  absl::StatusOr<v1beta1::PreBindResponse> PreBind(v1beta1::PreBindRequest request,
                                                   absl::Time) override {
    if (pre_bind) return pre_bind(request);
    return v1beta1::PreBindResponse();
  }
  // By default every plugin skips.
  absl::StatusOr<v1beta1::BindResponse> Bind(v1beta1::BindRequest request, absl::Time) override {
    bind_questions.push_back(request);
    if (bind) return bind(request);
    v1beta1::BindResponse skips;
    skips.mutable_skip();
    return skips;
  }
  bool SendPostBind(v1beta1::PostBindRequest request, absl::Time) override {
    if (takes_post_bind) post_binds.push_back(std::move(request));
    return takes_post_bind;
  }
  absl::StatusOr<v1beta1::PreEnqueueResponse> PreEnqueue(v1beta1::PreEnqueueRequest request,
                                                         absl::Time) override {
    if (pre_enqueue) return pre_enqueue(request);
    return absl::UnimplementedError("not scripted");
  }
  absl::StatusOr<v1beta1::PreFilterResponse> PreFilter(v1beta1::PreFilterRequest request,
                                                       absl::Time) override {
    if (pre_filter) return pre_filter(request);
    return absl::UnimplementedError("not scripted");
  }
  absl::StatusOr<v1beta1::FilterResponse> Filter(v1beta1::FilterRequest request,
                                                 absl::Time) override {
    if (filter) return filter(request);
    return absl::UnimplementedError("not scripted");
  }
  absl::StatusOr<v1beta1::PostFilterResponse> PostFilter(v1beta1::PostFilterRequest request,
                                                         absl::Time) override {
    if (post_filter) return post_filter(request);
    return absl::UnimplementedError("not scripted");
  }
  absl::StatusOr<v1beta1::PreScoreResponse> PreScore(v1beta1::PreScoreRequest request,
                                                     absl::Time) override {
    if (pre_score) return pre_score(request);
    return absl::UnimplementedError("not scripted");
  }
  absl::StatusOr<v1beta1::ScoreResponse> Score(v1beta1::ScoreRequest request, absl::Time) override {
    if (score) return score(request);
    return absl::UnimplementedError("not scripted");
  }
  absl::StatusOr<v1beta1::SortKeysResponse> SortKeys(v1beta1::SortKeysRequest request,
                                                     absl::Time) override {
    if (sort_keys) return sort_keys(request);
    return absl::UnimplementedError("not scripted");
  }
  absl::StatusOr<v1beta1::GeneratePlacementsResponse> GeneratePlacements(
      v1beta1::GeneratePlacementsRequest request, absl::Time) override {
    if (generate_placements) return generate_placements(request);
    return absl::UnimplementedError("not scripted");
  }
  absl::StatusOr<v1beta1::ScorePlacementsResponse> ScorePlacements(
      v1beta1::ScorePlacementsRequest request, absl::Time) override {
    if (score_placements) return score_placements(request);
    return absl::UnimplementedError("not scripted");
  }

 private:
  const std::string instance_ = "scripted-1";
  v1beta1::GetHostInfoResponse info_;
};

}  // namespace outboard::framework

#endif  // OUTBOARD_SHIM_FRAMEWORK_TESTING_SCRIPTED_HOST_H_
