// Deadlines and errors of calls to hosts, in gRPC's form and in the shim's.
#ifndef OUTBOARD_SHIM_HOSTS_GRPC_CALLS_H_
#define OUTBOARD_SHIM_HOSTS_GRPC_CALLS_H_

#include <grpcpp/support/status.h>

#include <chrono>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace outboard::hosts {

// gRPC wants a wall time; `deadline` is on the clock of SteadyNow().
std::chrono::system_clock::time_point ToGrpcDeadline(absl::Time deadline);

// With the host's CallError, if it sent one. Long messages are cut.
absl::Status ToAbslStatus(const grpc::Status& status);

}  // namespace outboard::hosts

#endif  // OUTBOARD_SHIM_HOSTS_GRPC_CALLS_H_
