#include "shim/http/unix_socket.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace outboard::http {
namespace {

absl::Status Unavailable(const std::string& path, absl::string_view why) {
  return absl::UnavailableError(absl::StrCat(path, ": ", why));
}

// 0, or the system's error.
int ConnectError(const std::string& path) {
  sockaddr_un name = {};
  name.sun_family = AF_UNIX;
  if (path.size() >= sizeof(name.sun_path)) return ENAMETOOLONG;
  memcpy(name.sun_path, path.c_str(), path.size() + 1);
  const int connection = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (connection < 0) return errno;
  const bool connected =
      connect(connection, reinterpret_cast<const sockaddr*>(&name), sizeof(name)) == 0;
  const int error = connected ? 0 : errno;
  close(connection);
  return error;
}

}  // namespace

std::string SocketPathOf(absl::string_view address) {
  return absl::ConsumePrefix(&address, "unix:") ? std::string(address) : "";
}

absl::Status RemoveStaleSocket(const std::string& path) {
  if (path.size() >= sizeof(sockaddr_un::sun_path))
    return Unavailable(path, strerror(ENAMETOOLONG));
  struct stat status;
  if (lstat(path.c_str(), &status) != 0)
    return errno == ENOENT ? absl::OkStatus() : Unavailable(path, strerror(errno));
  if (!S_ISSOCK(status.st_mode)) return Unavailable(path, "the file is not a socket");
  const int error = ConnectError(path);
  // EAGAIN: the process behind the socket is only too busy to accept.
  if (error == 0 || error == EAGAIN)
    return Unavailable(path, "another process accepts connections there");
  if (error != ECONNREFUSED) return Unavailable(path, strerror(error));
  return unlink(path.c_str()) == 0 ? absl::OkStatus() : Unavailable(path, strerror(errno));
}

absl::Status TryConnect(const std::string& path) {
  const int error = ConnectError(path);
  return error == 0 ? absl::OkStatus() : absl::UnavailableError(strerror(error));
}

bool IsAllowedPeer(int connection) {
  int domain = 0;
  socklen_t size = sizeof(domain);
  if (getsockopt(connection, SOL_SOCKET, SO_DOMAIN, &domain, &size) != 0) return false;
  if (domain != AF_UNIX) return true;
  ucred peer = {};
  size = sizeof(peer);
  return getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
         (peer.uid == geteuid() || peer.uid == 0);
}

}  // namespace outboard::http
