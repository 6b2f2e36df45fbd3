#include "shim/framework/host_client.h"

#include "absl/strings/cord.h"
#include "shim/framework/answer_check.h"

namespace outboard::framework {
namespace {

constexpr char kPayload[] = "outboard.v1beta1.CallError";

absl::StatusCode CodeOf(v1beta1::CallError::Reason reason) {
  using v1beta1::CallError;
  switch (reason) {
    case CallError::REASON_STALE:
    case CallError::REASON_SESSION_UNKNOWN:
    case CallError::REASON_WRONG_INSTANCE:
    case CallError::REASON_NOT_CONFIGURED:
      return absl::StatusCode::kFailedPrecondition;
    case CallError::REASON_ATTEMPT_UNKNOWN:
    case CallError::REASON_OBJECT_UNKNOWN:
      return absl::StatusCode::kNotFound;
    case CallError::REASON_INVALID:
      return absl::StatusCode::kInvalidArgument;
    case CallError::REASON_DRAINING:
      return absl::StatusCode::kUnavailable;
    default:
      return absl::StatusCode::kInternal;
  }
}

}  // namespace

absl::Status CallCycle(HostClient* client, const v1beta1::PlanRequest& request, absl::Time deadline,
                       v1beta1::PlanResponse* response) {
  const absl::Status called = client->Cycle(request, deadline, response);
  if (!called.ok()) return called;
  const bool is_step =
      request.group_step().has_describe() || request.group_step().has_try_placements();
  if (response->has_group() && !is_step) return WrongAnswer("Plan describes a group unasked");
  return CheckCycle(*response);
}

v1beta1::CallError::Reason CallErrorReason(const absl::Status& status) {
  const auto payload = status.GetPayload(kPayload);
  v1beta1::CallError error;
  if (!payload.has_value() || !error.ParseFromString(std::string(*payload))) {
    return v1beta1::CallError::REASON_UNSPECIFIED;
  }
  return error.reason();
}

absl::Status CallErrorStatus(const v1beta1::CallError& error) {
  v1beta1::CallError cut = error;
  cut.set_message(CutText(error.message()));
  absl::Status status(CodeOf(cut.reason()), cut.message());
  status.SetPayload(kPayload, absl::Cord(cut.SerializeAsString()));
  return status;
}

}  // namespace outboard::framework
