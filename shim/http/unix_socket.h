// The pages' Unix socket, and who may use it.
#ifndef OUTBOARD_SHIM_HTTP_UNIX_SOCKET_H_
#define OUTBOARD_SHIM_HTTP_UNIX_SOCKET_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace outboard::http {

// Where an installation has the socket, and the commands of `outboard` look first (deploy/).
inline constexpr char kDefaultSocket[] = "/run/outboard/shim/shim.sock";

// PATH of an address unix:PATH; "" if the address has another form. Pure.
std::string SocketPathOf(absl::string_view address);

// Removes the socket that a process left there when it ended without removing it.
// Errors: UNAVAILABLE if a process still accepts connections there, or another kind of file is
// there, or the path is too long for a socket.
absl::Status RemoveStaleSocket(const std::string& path);

// Connects once.
// Errors: UNAVAILABLE with the system's reason.
absl::Status TryConnect(const std::string& path);

// Whether a connection may ask for pages: false for one over a Unix socket of another user's
// process. This process's user and root may.
bool IsAllowedPeer(int connection);

}  // namespace outboard::http

#endif  // OUTBOARD_SHIM_HTTP_UNIX_SOCKET_H_
