#include "plugin_host/services/call_errors.h"

namespace outboard::services {
namespace {

grpc::StatusCode CodeOf(v1alpha1::CallError::Reason reason) {
  using v1alpha1::CallError;
  switch (reason) {
    case CallError::STALE:
    case CallError::SESSION_UNKNOWN:
    case CallError::WRONG_INSTANCE:
    case CallError::NOT_CONFIGURED:
      return grpc::StatusCode::FAILED_PRECONDITION;
    case CallError::ATTEMPT_UNKNOWN:
    case CallError::OBJECT_UNKNOWN:
      return grpc::StatusCode::NOT_FOUND;
    case CallError::INVALID:
      return grpc::StatusCode::INVALID_ARGUMENT;
    case CallError::DRAINING:
      return grpc::StatusCode::UNAVAILABLE;
    default:
      return grpc::StatusCode::INTERNAL;
  }
}

}  // namespace

grpc::Status ToGrpcStatus(const runtime::CallStatus& status) {
  if (status.ok()) return grpc::Status::OK;
  return grpc::Status(CodeOf(status.reason()), status.message(),
                      status.ToProto().SerializeAsString());
}

}  // namespace outboard::services
