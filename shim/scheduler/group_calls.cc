#include "shim/scheduler/group_calls.h"

#include <glog/logging.h>

#include <functional>
#include <utility>

#include "shim/clock.h"
#include "shim/framework/group_check.h"

namespace outboard::scheduler {

template <typename Response>
struct GroupCalls::Point {
  v1beta1::ExtensionPoint point;
  framework::HostCall call;
  std::function<absl::Status(const Response&)> check;
  std::function<v1beta1::Code(const Response&)> code;
};

namespace {

absl::StatusOr<v1beta1::GeneratePlacementsResponse> Ask(framework::HostClient* client,
                                                        v1beta1::GeneratePlacementsRequest request,
                                                        absl::Time deadline) {
  return client->GeneratePlacements(std::move(request), deadline);
}

absl::StatusOr<v1beta1::ScorePlacementsResponse> Ask(framework::HostClient* client,
                                                     v1beta1::ScorePlacementsRequest request,
                                                     absl::Time deadline) {
  return client->ScorePlacements(std::move(request), deadline);
}

}  // namespace

template <typename Request, typename Response>
absl::StatusOr<std::optional<Response>> GroupCalls::Call(const framework::HostExtensionPoint& point,
                                                         const Point<Response>& what,
                                                         Request request, absl::Time deadline) {
  const framework::ProfilePlan& plan = *attempt_.plan;
  HostRecord* const host = host_calls_.UsableHost(point.host_name);
  const absl::Time began = SteadyNow();
  absl::StatusOr<Response> answer = absl::UnavailableError("the host is unavailable");
  if (host != nullptr) {
    // The host of the algorithm gets no change during an attempt; there is none either.
    if (point.host_name != plan.host_names.front()) host_calls_.SendChanges(host, now_);
    v1beta1::CallHeader* const header = request.mutable_header();
    header->set_attempt_id(attempt_.id);
    header->set_exact_version(state_.cluster.VersionOf(host->cursor));
    header->set_profile(plan.algorithm.name);
    HostCalls::NoteCall(&attempt_, *host->client);
    answer = Ask(host->client, std::move(request), deadline);
    if (answer.ok()) {
      if (absl::Status bad = what.check(*answer); !bad.ok()) {
        state_.observer->OnProtocolError(point.host_name, host->client->instance(), bad);
        answer = bad;
      }
    }
    host_calls_.OnHostCallEnded(point.host_name, what.call, answer.status(), now_);
  }
  state_.observer->OnCall(what.point, plan.algorithm.name,
                          answer.ok() ? what.code(*answer) : v1beta1::CODE_ERROR,
                          SteadyNow() - began);
  if (answer.ok()) return std::optional<Response>(*std::move(answer));
  if (host_calls_.IsFailureIgnored(point, what.point)) {
    VLOG(2) << "Pod " << attempt_.pod->key() << " continues without host \"" << point.host_name
            << "\": " << answer.status();
    return std::optional<Response>();
  }
  failed_host_ = point.host_name;
  return answer.status();
}

absl::StatusOr<std::optional<v1beta1::GeneratePlacementsResponse>> GroupCalls::Generate(
    const v1beta1::PendingGroup& group, absl::Time deadline) {
  using Response = v1beta1::GeneratePlacementsResponse;
  const framework::HostExtensionPoint& point = attempt_.plan->placement_generate.front();
  v1beta1::GeneratePlacementsRequest request;
  *request.mutable_group() = group;
  const Point<Response> what = {
      v1beta1::EXTENSION_POINT_PLACEMENT_GENERATE, framework::HostCall::kGeneratePlacements,
      [&](const Response& answer) {
        return framework::CheckGeneratedPlacements(answer, point.plugins.front().name,
                                                   state_.cluster);
      },
      [](const Response& answer) { return framework::CodeOfAnswer(answer); }};
  return Call(point, what, std::move(request), deadline);
}

absl::StatusOr<std::vector<v1beta1::ScorePlacementsResponse>> GroupCalls::Score(
    const v1beta1::ScorePlacementsRequest& request, absl::Time deadline) {
  using Response = v1beta1::ScorePlacementsResponse;
  std::vector<Response> answers;
  for (const framework::HostExtensionPoint& point : attempt_.plan->placement_score) {
    std::vector<std::string> plugins;
    for (const framework::InterestedPlugin& plugin : point.plugins) plugins.push_back(plugin.name);
    const Point<Response> what = {
        v1beta1::EXTENSION_POINT_PLACEMENT_SCORE, framework::HostCall::kScorePlacements,
        [&](const Response& answer) {
          return framework::CheckPlacementScores(answer, plugins,
                                                 static_cast<size_t>(request.placements_size()));
        },
        [](const Response& answer) {
          return answer.has_error() ? answer.error().code() : v1beta1::CODE_SUCCESS;
        }};
    absl::StatusOr<std::optional<Response>> answer = Call(point, what, request, deadline);
    if (!answer.ok()) return answer.status();
    if (answer->has_value()) answers.push_back(**std::move(answer));
  }
  return answers;
}

}  // namespace outboard::scheduler
