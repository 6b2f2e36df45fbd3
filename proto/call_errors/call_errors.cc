#include "proto/call_errors/call_errors.h"

#include <string>

#include "absl/strings/match.h"
#include "proto/call_errors/rpc_status.pb.h"

namespace outboard::call_errors {

using v1beta1::CallError;

grpc::StatusCode CodeOf(CallError::Reason reason) {
  switch (reason) {
    case CallError::REASON_STALE:
    case CallError::REASON_SESSION_UNKNOWN:
    case CallError::REASON_WRONG_INSTANCE:
    case CallError::REASON_NOT_CONFIGURED:
      return grpc::StatusCode::FAILED_PRECONDITION;
    case CallError::REASON_ATTEMPT_UNKNOWN:
    case CallError::REASON_OBJECT_UNKNOWN:
      return grpc::StatusCode::NOT_FOUND;
    case CallError::REASON_INVALID:
      return grpc::StatusCode::INVALID_ARGUMENT;
    case CallError::REASON_DRAINING:
      return grpc::StatusCode::UNAVAILABLE;
    default:
      return grpc::StatusCode::INTERNAL;
  }
}

grpc::Status ToGrpcStatus(const CallError& error, grpc::StatusCode code) {
  RpcStatus details;
  details.set_code(code);
  details.set_message(error.message());
  RpcStatus::Detail* detail = details.add_details();
  detail->set_type_url("type.googleapis.com/" + error.GetTypeName());
  detail->set_value(error.SerializeAsString());
  return grpc::Status(code, error.message(), details.SerializeAsString());
}

std::optional<CallError> CallErrorOf(const grpc::Status& status) {
  RpcStatus details;
  CallError error;
  if (status.error_details().empty() || !details.ParseFromString(status.error_details()))
    return std::nullopt;
  const std::string type = "/" + error.GetTypeName();
  for (const RpcStatus::Detail& detail : details.details()) {
    if (absl::EndsWith(detail.type_url(), type) && error.ParseFromString(detail.value()))
      return error;
  }
  return std::nullopt;
}

}  // namespace outboard::call_errors
