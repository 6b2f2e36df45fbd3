// Where the host listens.
#ifndef OUTBOARD_PLUGIN_HOST_SERVICES_LISTEN_ADDRESS_H_
#define OUTBOARD_PLUGIN_HOST_SERVICES_LISTEN_ADDRESS_H_

#include <sys/types.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace outboard::services {

// `unix:PATH` or `HOST:PORT`.
struct ListenAddress {
  bool is_unix = false;
  std::string path;    // Of a Unix socket.
  std::string target;  // As gRPC takes it.

  // INVALID_ARGUMENT for anything else, an abstract socket, or a path that is too long for a socket
  // (107 bytes).
  static absl::StatusOr<ListenAddress> Parse(absl::string_view text);
};

// Makes way for a Unix socket. A socket that nobody listens on is removed; gRPC would also remove a
// live one.
// Errors: ALREADY_EXISTS if a process answers there, FAILED_PRECONDITION if the path is something
//         else than a socket, or its folder
// cannot be written.
absl::Status PrepareSocketPath(const std::string& path);

// Removes sockets that nobody listens on any more and that are called like this one up to the `@`:
// what a killed instance of the same host left behind. What cannot be removed stays.
void RemoveStaleSiblings(const std::string& path);

}  // namespace outboard::services

#endif  // OUTBOARD_PLUGIN_HOST_SERVICES_LISTEN_ADDRESS_H_
