#include "integration/simulator/points/in_process_host.h"

#include "plugin_host/runtime/host.h"

namespace outboard::points {
namespace {

// As it arrives in another process. INTERNAL: it cannot be read there.
template <typename Message>
absl::Status Transmit(Message* message) {
  Message received;
  if (!received.ParseFromString(message->SerializeAsString()))
    return absl::InternalError("the message cannot be parsed");
  message->Swap(&received);
  return absl::OkStatus();
}

// Calls `call` with the answer to fill.
template <typename Response, typename Call>
absl::StatusOr<Response> Answer(Call call) {
  Response response;
  if (const runtime::CallStatus status = call(&response); !status.ok())
    return framework::CallErrorStatus(status.ToProto());
  if (absl::Status read = Transmit(&response); !read.ok()) return read;
  return response;
}

}  // namespace

InProcessHost::InProcessHost(const sdk::PluginRegistry* registry) : session_("s", registry) {
  runtime::Host({instance_, "", "", absl::UnixEpoch()}, registry).GetHostInfo(&info_);
  session_.SetPush([this](const v1beta1::SyncResponse& push) {
    pushes_.push_back(push);
    if (absl::Status read = Transmit(&pushes_.back()); !read.ok()) sync_error_.Update(read);
  });
  session_.BeginSync();
}

v1beta1::ConfigureResponse InProcessHost::Configure(const v1beta1::ConfigureRequest& request) {
  v1beta1::ConfigureResponse response;
  session_.Configure(request, &response);
  return response;
}

void InProcessHost::SetTime(absl::Time now) {
  now_ = now;
  session_.Tick(now);
}

void InProcessHost::SendChanges(const v1beta1::SyncRequest& request) {
  sync_error_.Update(session_.Apply(request, now_));
}

absl::Status InProcessHost::Cycle(const v1beta1::PlanRequest& request, absl::Time,
                                  v1beta1::PlanResponse* response) {
  response->Clear();
  if (const runtime::CallStatus status = session_.Plan(request, now_, response); !status.ok())
    return framework::CallErrorStatus(status.ToProto());
  return Transmit(response);
}

absl::StatusOr<v1beta1::PreFilterResponse> InProcessHost::PreFilter(
    v1beta1::PreFilterRequest request, absl::Time) {
  return Answer<v1beta1::PreFilterResponse>([&](auto* response) {
    return session_.PreFilter(request.header(), request.pod_uid(), now_, response);
  });
}

absl::StatusOr<v1beta1::FilterResponse> InProcessHost::Filter(v1beta1::FilterRequest request,
                                                              absl::Time) {
  return Answer<v1beta1::FilterResponse>(
      [&](auto* response) { return session_.Filter(request.header(), request, now_, response); });
}

absl::StatusOr<v1beta1::PostFilterResponse> InProcessHost::PostFilter(
    v1beta1::PostFilterRequest request, absl::Time) {
  return Answer<v1beta1::PostFilterResponse>(
      [&](auto* response) { return session_.PostFilter(request, now_, response); });
}

absl::StatusOr<v1beta1::PreScoreResponse> InProcessHost::PreScore(v1beta1::PreScoreRequest request,
                                                                  absl::Time) {
  return Answer<v1beta1::PreScoreResponse>(
      [&](auto* response) { return session_.PreScore(request.header(), request, now_, response); });
}

absl::StatusOr<v1beta1::ScoreResponse> InProcessHost::Score(v1beta1::ScoreRequest request,
                                                            absl::Time) {
  return Answer<v1beta1::ScoreResponse>(
      [&](auto* response) { return session_.Score(request.header(), request, now_, response); });
}

absl::StatusOr<v1beta1::SortKeysResponse> InProcessHost::SortKeys(v1beta1::SortKeysRequest request,
                                                                  absl::Time) {
  return Answer<v1beta1::SortKeysResponse>(
      [&](auto* response) { return session_.SortKeys(request, response); });
}

absl::StatusOr<v1beta1::PreEnqueueResponse> InProcessHost::PreEnqueue(
    v1beta1::PreEnqueueRequest request, absl::Time) {
  return Answer<v1beta1::PreEnqueueResponse>(
      [&](auto* response) { return session_.PreEnqueue(request, now_, response); });
}

absl::StatusOr<v1beta1::ReserveResponse> InProcessHost::Reserve(v1beta1::ReserveRequest request,
                                                                absl::Time) {
  return Answer<v1beta1::ReserveResponse>(
      [&](auto* response) { return session_.Reserve(request, now_, response); });
}

absl::StatusOr<v1beta1::UnreserveResponse> InProcessHost::Unreserve(
    v1beta1::UnreserveRequest request, absl::Time) {
  return Answer<v1beta1::UnreserveResponse>(
      [&](auto* response) { return session_.Unreserve(request, now_, response); });
}

absl::StatusOr<v1beta1::PermitResponse> InProcessHost::Permit(v1beta1::PermitRequest request,
                                                              absl::Time) {
  return Answer<v1beta1::PermitResponse>(
      [&](auto* response) { return session_.Permit(request, now_, response); });
}

absl::StatusOr<v1beta1::PreBindResponse> InProcessHost::PreBind(v1beta1::PreBindRequest request,
                                                                absl::Time) {
  return Answer<v1beta1::PreBindResponse>(
      [&](auto* response) { return session_.PreBind(request, now_, response); });
}

absl::StatusOr<v1beta1::BindResponse> InProcessHost::Bind(v1beta1::BindRequest request,
                                                          absl::Time) {
  return Answer<v1beta1::BindResponse>(
      [&](auto* response) { return session_.Bind(request, now_, response); });
}

bool InProcessHost::SendPostBind(v1beta1::PostBindRequest request, absl::Time) {
  // Without an answer: an error has no consequence for the pod.
  return session_.PostBind(request, now_).ok();
}

}  // namespace outboard::points
