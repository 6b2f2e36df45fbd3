#include "plugin_host/services/listen_address.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace outboard::services {
namespace {

constexpr size_t kMaxPathBytes = sizeof(sockaddr_un::sun_path) - 1;

}  // namespace

absl::StatusOr<ListenAddress> ListenAddress::Parse(absl::string_view text) {
  ListenAddress address;
  address.target = std::string(text);
  if (absl::ConsumePrefix(&text, "unix:")) {
    absl::ConsumePrefix(&text, "//");  // unix:///path, as gRPC allows too.
    address.is_unix = true;
    address.path = std::string(text);
    address.target = absl::StrCat("unix:", text);
    if (text.empty()) return absl::InvalidArgumentError("unix: needs a path");
    if (address.path.size() > kMaxPathBytes) {
      return absl::InvalidArgumentError(absl::StrCat("socket path has ", address.path.size(),
                                                     " bytes; at most ", kMaxPathBytes,
                                                     " are possible"));
    }
    return address;
  }
  const size_t colon = text.rfind(':');
  int port = -1;
  if (colon == absl::string_view::npos || colon == 0 || absl::StartsWith(text, "unix-abstract") ||
      !absl::SimpleAtoi(text.substr(colon + 1), &port) || port < 0 || port > 65535) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", text, "\" is neither unix:PATH nor HOST:PORT"));
  }
  return address;
}

void RemoveStaleSiblings(const std::string& path) {
  const size_t at = path.rfind('@');
  const size_t slash = path.rfind('/');
  if (at == std::string::npos || (slash != std::string::npos && at < slash)) return;
  const std::filesystem::path folder = slash == std::string::npos
                                           ? std::filesystem::path(".")
                                           : std::filesystem::path(path.substr(0, slash));
  const std::string prefix = path.substr(slash + 1, at - slash);
  std::error_code error;
  std::vector<std::string> siblings;
  for (std::filesystem::directory_iterator entries(folder, error), end; !error && entries != end;
       entries.increment(error)) {
    if (absl::StartsWith(entries->path().filename().string(), prefix))
      siblings.push_back(entries->path().string());
  }
  for (const std::string& sibling : siblings) {
    // Removes the socket only if a connection is refused.
    if (sibling != path) PrepareSocketPath(sibling).IgnoreError();
  }
}

absl::Status PrepareSocketPath(const std::string& path) {
  struct stat info;
  if (lstat(path.c_str(), &info) != 0) {
    if (errno == ENOENT) {
      const size_t slash = path.rfind('/');
      const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
      if (access(folder.c_str(), W_OK | X_OK) == 0) return absl::OkStatus();
      return absl::FailedPreconditionError(
          absl::StrCat("cannot create a socket in ", folder, ": ", strerror(errno)));
    }
    return absl::FailedPreconditionError(absl::StrCat(path, ": ", strerror(errno)));
  }
  if (!S_ISSOCK(info.st_mode)) {
    return absl::FailedPreconditionError(absl::StrCat(path, " exists and is not a socket"));
  }
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return absl::FailedPreconditionError(absl::StrCat("socket: ", strerror(errno)));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, kMaxPathBytes);
  const int result = connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address));
  const int error = errno;
  close(fd);
  if (result == 0) {
    return absl::AlreadyExistsError(
        absl::StrCat("another process listens on ", path, "; give each host its own path"));
  }
  if (error != ECONNREFUSED) {
    return absl::FailedPreconditionError(absl::StrCat(path, ": ", strerror(error)));
  }
  if (unlink(path.c_str()) != 0 && errno != ENOENT) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot remove the stale socket ", path, ": ", strerror(errno)));
  }
  return absl::OkStatus();
}

}  // namespace outboard::services
