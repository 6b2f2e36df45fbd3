#include "plugin_host/services/probe.h"

#include <glob.h>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "plugin_host/services/listen_address.h"
#include "proto/outboard/v1alpha1/plugin_host.grpc.pb.h"

namespace outboard::services {
namespace {

// Sockets whose path is `path` with anything in place of {instance}.
std::vector<std::string> SocketsOf(const std::string& path) {
  constexpr char kInstance[] = "{instance}";
  const std::string escaped =
      absl::StrReplaceAll(path, {{"*", "\\*"}, {"?", "\\?"}, {"[", "\\["}, {"\\", "\\\\"}});
  glob_t found{};
  std::vector<std::string> paths;
  if (glob(absl::StrReplaceAll(escaped, {{kInstance, "*"}}).c_str(), 0, nullptr, &found) == 0)
    paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  return paths;
}

absl::Status Ask(const std::string& path, absl::Duration timeout) {
  auto stub = v1alpha1::PluginHostService::NewStub(
      grpc::CreateChannel(absl::StrCat("unix:", path), grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + timeout));
  v1alpha1::ProbeResponse response;
  const grpc::Status status = stub->Probe(&context, v1alpha1::ProbeRequest(), &response);
  if (status.ok()) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(path, ": ", status.error_message()));
}

}  // namespace

absl::Status ProbeListener(const std::string& listen, absl::Duration timeout) {
  const absl::StatusOr<ListenAddress> address = ListenAddress::Parse(listen);
  if (!address.ok()) return address.status();
  if (!address->is_unix)
    return absl::InvalidArgumentError("only a Unix socket can be probed; a port, by connecting");
  absl::Status last = absl::UnavailableError(absl::StrCat("there is no socket ", address->path));
  for (const std::string& path : SocketsOf(address->path)) {
    last = Ask(path, timeout);
    if (last.ok()) return last;
  }
  return last;
}

}  // namespace outboard::services
