// A CallError as the error of a gRPC call, and back.
#ifndef OUTBOARD_PROTO_CALL_ERRORS_CALL_ERRORS_H_
#define OUTBOARD_PROTO_CALL_ERRORS_CALL_ERRORS_H_

#include <grpcpp/support/status.h>

#include <optional>

#include "outboard/v1beta1/call.pb.h"

namespace outboard::call_errors {

// All functions are pure.

// The code that call.proto gives for the reason; INTERNAL for an unknown one.
grpc::StatusCode CodeOf(v1beta1::CallError::Reason reason);

// `error` as the one detail of a google.rpc.Status.
grpc::Status ToGrpcStatus(const v1beta1::CallError& error, grpc::StatusCode code);
inline grpc::Status ToGrpcStatus(const v1beta1::CallError& error) {
  return ToGrpcStatus(error, CodeOf(error.reason()));
}

// The first CallError in the status' details. Absent if there is none, or the details are not a
// google.rpc.Status.
std::optional<v1beta1::CallError> CallErrorOf(const grpc::Status& status);

}  // namespace outboard::call_errors

#endif  // OUTBOARD_PROTO_CALL_ERRORS_CALL_ERRORS_H_
