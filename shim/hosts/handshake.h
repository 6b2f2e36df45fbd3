// The first calls on a connection: who answers, which contract it speaks, and what it serves.
#ifndef OUTBOARD_SHIM_HOSTS_HANDSHAKE_H_
#define OUTBOARD_SHIM_HOSTS_HANDSHAKE_H_

#include <grpcpp/channel.h>

#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "outboard/handshake/v1/handshake.pb.h"
#include "outboard/v1beta1/plugin_host.pb.h"

namespace outboard::hosts {

// A connection to one instance of a host, after the handshake.
struct HostConnection {
  // Speaks this shim's version of the contract; to an older host through an adapter.
  std::shared_ptr<grpc::Channel> channel;
  handshake::v1::HandshakeResponse identity;
  v1beta1::GetHostInfoResponse info;
};

// Chooses the version of the contract, and asks the host what it serves.
//
// Threading: any thread; blocks.
// Errors: UNAVAILABLE while nothing answers; FAILED_PRECONDITION without a common version or for a
// malformed answer.
absl::StatusOr<HostConnection> Handshake(std::shared_ptr<grpc::Channel> channel,
                                         absl::Duration timeout);

}  // namespace outboard::hosts

#endif  // OUTBOARD_SHIM_HOSTS_HANDSHAKE_H_
