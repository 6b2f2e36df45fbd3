// Where instances of hosts are, and how they are reached.
#ifndef OUTBOARD_SHIM_HOSTS_ENDPOINT_H_
#define OUTBOARD_SHIM_HOSTS_ENDPOINT_H_

#include <grpcpp/channel.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "shim/config/config.h"

namespace outboard::hosts {

// A place where one instance of a host may answer. The address tells endpoints apart.
struct Endpoint {
  std::string host;     // its name in the configuration
  std::string address;  // unix:PATH or HOST:PORT
  std::optional<config::HostTls> tls;
  // Of a socket that was found in the directory: another file there is another endpoint.
  uint64_t inode = 0;
};

// A channel to `address` that shares nothing with channels to other instances, so that a host that
// starts anew is never reached through a predecessor's connection or backoff. For tests, and for
// hosts that this process started itself: who answers is not checked.
std::shared_ptr<grpc::Channel> NewHostChannel(const std::string& address);

// A channel to whoever answers at the endpoint now. Behind a Unix socket it must be a process of
// one of `allowed_uids` (empty: this process's user and root), and the channel is that one
// connection; it does not come back when that breaks. Over the network both sides show certificates
// (files are read anew each time). Blocks for at most a second; any thread.
// Errors: UNAVAILABLE if nobody answers; PERMISSION_DENIED for another user's process; NOT_FOUND
// for files of certificates.
absl::StatusOr<std::shared_ptr<grpc::Channel>> Dial(const Endpoint& endpoint,
                                                    const std::vector<int64_t>& allowed_uids);

// Sockets `NAME.sock` and `NAME@ANYTHING.sock` in a directory, as endpoints of host NAME, by name.
// What else is there is left alone; names that cannot be those of hosts are named in `complaints`.
// Errors: NOT_FOUND or UNKNOWN if the directory cannot be read.
absl::StatusOr<std::vector<Endpoint>> ListSockets(const std::string& directory,
                                                  std::vector<std::string>* complaints);

}  // namespace outboard::hosts

#endif  // OUTBOARD_SHIM_HOSTS_ENDPOINT_H_
