// Where the instances of hosts are, and how to connect to them.
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

// A host with larger answers and pushes is broken; see answer_size_test.cc. Parsed messages are up
// to ninety times as large as their bytes.
inline constexpr int kMaxAnswerBytes = 6 << 20;

// A place where one instance of a host may answer. The address identifies the endpoint.
struct Endpoint {
  std::string host;     // its name in the configuration
  std::string address;  // unix:PATH or HOST:PORT
  std::optional<config::HostTls> tls;
  // Of a socket found in the directory: another file there is another endpoint.
  uint64_t inode = 0;
  // Of an instance found by its pod: NAMESPACE/NAME, uid. Another pod there is another endpoint.
  std::string pod{}, pod_uid{};
};

// A channel to `address` that shares nothing with channels to other instances, so that a restarted
// host is never reached through its predecessor's connection or backoff. For tests, and for hosts
// that this process started: the peer is not checked.
std::shared_ptr<grpc::Channel> NewHostChannel(const std::string& address);

// A channel to the process that answers at the endpoint now.
//
// - Unix socket: the peer must run as one of `allowed_uids` (empty: this process's user and root).
//   The channel is this one connection; it does not reconnect.
// - Network: both sides show certificates; the files are read each time.
//
// Threading: any thread; blocks for at most a second.
// Errors: UNAVAILABLE if nothing answers; RESOURCE_EXHAUSTED if the process behind a Unix socket
// accepts no connections; PERMISSION_DENIED for another user's process; NOT_FOUND
// for certificate files.
absl::StatusOr<std::shared_ptr<grpc::Channel>> Dial(const Endpoint& endpoint,
                                                    const std::vector<int64_t>& allowed_uids);

// Sockets `NAME.sock` and `NAME@ANYTHING.sock` in a directory, as endpoints of host NAME, by name.
// Other files are ignored; sockets with an invalid host name go to `problems`.
// Errors: NOT_FOUND or UNKNOWN if the directory cannot be read.
absl::StatusOr<std::vector<Endpoint>> ListSockets(const std::string& directory,
                                                  std::vector<std::string>* problems);

}  // namespace outboard::hosts

#endif  // OUTBOARD_SHIM_HOSTS_ENDPOINT_H_
