#include "shim/hosts/grpc_calls.h"

#include "absl/time/clock.h"
#include "proto/call_errors/call_errors.h"
#include "shim/clock.h"
#include "shim/framework/answer_check.h"
#include "shim/framework/host_client.h"

namespace outboard::hosts {

std::chrono::system_clock::time_point ToGrpcDeadline(absl::Time deadline) {
  return absl::ToChronoTime(absl::Now() + (deadline - SteadyNow()));
}

absl::Status ToAbslStatus(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  const auto error = call_errors::CallErrorOf(status);
  if (error.has_value() && error->reason() != v1beta1::CallError::REASON_UNSPECIFIED)
    return framework::CallErrorStatus(*error);
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                      framework::CutText(status.error_message()));
}

}  // namespace outboard::hosts
