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
  std::string target;  // In gRPC's syntax.

  // Errors: INVALID_ARGUMENT for anything else, an abstract socket, or a path over 107 bytes.
  static absl::StatusOr<ListenAddress> Parse(absl::string_view text);
};

// Prepares the path of a Unix socket: removes a stale socket. gRPC would also remove a live one.
// Errors: ALREADY_EXISTS if a process listens there, FAILED_PRECONDITION if the path is not a
//         socket, or its folder is not writable.
absl::Status PrepareSocketPath(const std::string& path);

// Removes stale sockets with the same name up to the `@`, left behind by killed instances of this
// host. Ignores failures.
void RemoveStaleSiblings(const std::string& path);

}  // namespace outboard::services

#endif  // OUTBOARD_PLUGIN_HOST_SERVICES_LISTEN_ADDRESS_H_
