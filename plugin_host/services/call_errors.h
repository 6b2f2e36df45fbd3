// From a call's status to a gRPC status.
#ifndef OUTBOARD_PLUGIN_HOST_SERVICES_CALL_ERRORS_H_
#define OUTBOARD_PLUGIN_HOST_SERVICES_CALL_ERRORS_H_

#include <grpcpp/support/status.h>

#include "plugin_host/runtime/call_status.h"

namespace outboard::services {

// The code that call.proto gives for the reason, with the CallError as binary details.
grpc::Status ToGrpcStatus(const runtime::CallStatus& status);

}  // namespace outboard::services

#endif  // OUTBOARD_PLUGIN_HOST_SERVICES_CALL_ERRORS_H_
