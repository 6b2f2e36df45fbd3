#include "cli/config/asked_hosts.h"

#include <glog/logging.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "shim/clock.h"
#include "shim/hosts/endpoint.h"
#include "shim/hosts/grpc_host_client.h"
#include "shim/hosts/host_loop.h"

namespace outboard::config_command {
namespace {

constexpr char kOwnHost[] = "outboard-host";
constexpr absl::Duration kStartTimeout = absl::Seconds(10);
constexpr absl::Duration kAnswerTimeout = absl::Seconds(5);

absl::StatusOr<std::shared_ptr<grpc::Channel>> ChannelTo(const std::string& address,
                                                         const config::ShimConfig& shim) {
  if (absl::StartsWith(address, "unix:")) return hosts::NewHostChannel(address);
  for (const config::HostSpec& host : shim.hosts) {
    if (host.address == address ||
        std::find(host.other_addresses.begin(), host.other_addresses.end(), address) !=
            host.other_addresses.end())
      return hosts::Dial({host.name, address, host.tls, 0}, shim.allowed_uids);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--host ", address,
                   " needs TLS files: the configuration's hosts do not have "
                   "this address"));
}

}  // namespace

absl::StatusOr<AskedHosts> AskedHosts::StartOwn() {
  absl::StatusOr<std::unique_ptr<simulate::HostProcess>> started =
      simulate::HostProcess::Start("", 0, google::GLOG_ERROR);
  if (!started.ok()) return started.status();
  AskedHosts hosts;
  hosts.own_ = *std::move(started);
  const absl::Time give_up = SteadyNow() + kStartTimeout;
  while (true) {
    absl::StatusOr<hosts::HostConnection> connection =
        hosts::Handshake(hosts::NewHostChannel(hosts.own_->address()), give_up - SteadyNow());
    if (connection.ok()) {
      hosts.Add(kOwnHost, *std::move(connection));
      return hosts;
    }
    if (absl::Status alive = hosts.own_->CheckAlive(); !alive.ok()) return alive;
    if (SteadyNow() >= give_up) {
      return absl::UnavailableError(
          absl::StrCat(kOwnHost, " does not answer: ", connection.status().message()));
    }
    absl::SleepFor(absl::Milliseconds(5));
  }
}

absl::StatusOr<AskedHosts> AskedHosts::At(const std::vector<std::string>& addresses,
                                          const config::ShimConfig& shim) {
  AskedHosts hosts;
  for (const std::string& address : addresses) {
    absl::StatusOr<std::shared_ptr<grpc::Channel>> channel = ChannelTo(address, shim);
    if (absl::IsInvalidArgument(channel.status())) return channel.status();
    absl::StatusOr<hosts::HostConnection> connection =
        channel.ok() ? hosts::Handshake(*std::move(channel), kAnswerTimeout) : channel.status();
    if (!connection.ok()) {
      return absl::UnavailableError(
          absl::StrCat("host at ", address, " does not answer: ", connection.status().message()));
    }
    hosts.Add(address, *std::move(connection));
  }
  return hosts;
}

void AskedHosts::Add(const std::string& name, hosts::HostConnection connection) {
  names_.push_back(name);
  infos_[name] = connection.info;
  connections_[name] = std::move(connection);
}

std::vector<std::string> AskedHosts::PluginNames() const {
  std::set<std::string> plugins;
  for (const auto& [name, info] : infos_) {
    for (const v1beta1::PluginInfo& plugin : info.plugins()) plugins.insert(plugin.name());
  }
  return {plugins.begin(), plugins.end()};
}

absl::StatusOr<v1beta1::ConfigureResponse> AskedHosts::Configure(
    const std::string& name, v1beta1::ConfigureRequest request) const {
  hosts::HostLoop loop;
  hosts::GrpcHostClient client(&loop, absl::StrCat("outboard-config-", getpid()),
                               connections_.at(name));
  request.set_validate_only(true);
  absl::StatusOr<v1beta1::ConfigureResponse> response =
      client.Configure(request, SteadyNow() + kAnswerTimeout);
  if (absl::IsUnimplemented(response.status())) {
    // A host of v1alpha1 checks what it configures: a session of this process only.
    request.set_validate_only(false);
    response = client.Configure(std::move(request), SteadyNow() + kAnswerTimeout);
  }
  if (!response.ok()) {
    return absl::UnavailableError(
        absl::StrCat(name, " did not check the configuration: ", response.status().message()));
  }
  return response;
}

}  // namespace outboard::config_command
