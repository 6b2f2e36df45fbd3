#include "plugin_host/services/probe.h"

#include <glob.h>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "outboard/v1beta1/plugin_host.grpc.pb.h"
#include "plugin_host/services/listen_address.h"

namespace outboard::services {
namespace {

constexpr char kInstance[] = "{instance}";

// Sockets whose path is `path` with any text in place of {instance}.
std::vector<std::string> SocketsOf(const std::string& path) {
  const std::string escaped =
      absl::StrReplaceAll(path, {{"*", "\\*"}, {"?", "\\?"}, {"[", "\\["}, {"\\", "\\\\"}});
  glob_t found{};
  std::vector<std::string> paths;
  if (glob(absl::StrReplaceAll(escaped, {{kInstance, "*"}}).c_str(), 0, nullptr, &found) == 0)
    paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  return paths;
}

// Whether a process of another container, which shares the folder, listens there. The kernel
// reports no process id for it here.
bool IsOfAnotherContainer(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) return false;
  path.copy(address.sun_path, path.size());
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return false;
  ucred listener = {};
  socklen_t size = sizeof(listener);
  const bool is_invisible =
      connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 &&
      getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &listener, &size) == 0 && listener.pid == 0;
  close(fd);
  return is_invisible;
}

absl::Status Ask(const std::string& path, absl::Duration timeout) {
  auto stub = v1beta1::PluginHostService::NewStub(
      grpc::CreateChannel(absl::StrCat("unix:", path), grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + timeout));
  v1beta1::ProbeResponse response;
  const grpc::Status status = stub->Probe(&context, v1beta1::ProbeRequest(), &response);
  if (status.ok()) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(path, ": ", status.error_message()));
}

}  // namespace

absl::Status ProbeListener(const std::string& listen, absl::Duration timeout) {
  const absl::StatusOr<ListenAddress> address = ListenAddress::Parse(listen);
  if (!address.ok()) return address.status();
  if (!address->is_unix)
    return absl::InvalidArgumentError(
        "--probe supports only a Unix socket; check a port by connecting to it");
  const bool is_one_socket = !absl::StrContains(address->path, kInstance);
  int of_others = 0;
  absl::Status last;
  for (const std::string& path : SocketsOf(address->path)) {
    if (!is_one_socket && IsOfAnotherContainer(path)) {
      ++of_others;
      continue;
    }
    last = Ask(path, timeout);
    if (last.ok()) return last;
  }
  if (!last.ok()) return last;
  std::string none = absl::StrCat("no socket ", address->path);
  if (of_others > 0) absl::StrAppend(&none, ", but ", of_others, " of other containers");
  return absl::UnavailableError(none);
}

}  // namespace outboard::services
