// Plugin hosts that a command asks about their plugins: running hosts, or a host that it starts.
#ifndef OUTBOARD_CLI_CONFIG_ASKED_HOSTS_H_
#define OUTBOARD_CLI_CONFIG_ASKED_HOSTS_H_

#include <grpcpp/channel.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cli/simulate/host_process.h"
#include "outboard/v1beta1/plugin_host.pb.h"
#include "shim/config/config.h"
#include "shim/hosts/handshake.h"
#include "shim/hosts/plans.h"

namespace outboard::config_command {

// Threading: one thread; the functions that ask block.
// Lifetime: a host that it started ends with the object.
class AskedHosts {
 public:
  // Starts the outboard-host beside this program, or on PATH, and asks it.
  // Errors: NOT_FOUND without this program; UNAVAILABLE if it does not answer.
  static absl::StatusOr<AskedHosts> StartOwn();
  // Asks running hosts. A network address needs the TLS files of the host with this address in
  // `shim`. Errors: INVALID_ARGUMENT without them; UNAVAILABLE naming the address.
  static absl::StatusOr<AskedHosts> At(const std::vector<std::string>& addresses,
                                       const config::ShimConfig& shim);

  // Names for messages, in the order of preference.
  const std::vector<std::string>& names() const { return names_; }
  const hosts::HostInfos& infos() const { return infos_; }
  // The plugins of all hosts, sorted.
  std::vector<std::string> PluginNames() const;
  // Lets the host check the plugins' arguments; changes nothing there.
  // Errors: UNAVAILABLE naming the host.
  absl::StatusOr<v1beta1::ConfigureResponse> Configure(const std::string& name,
                                                       v1beta1::ConfigureRequest request) const;

 private:
  void Add(const std::string& name, hosts::HostConnection connection);

  std::unique_ptr<simulate::HostProcess> own_;
  std::vector<std::string> names_;
  hosts::HostInfos infos_;
  std::map<std::string, hosts::HostConnection> connections_;
};

}  // namespace outboard::config_command

#endif  // OUTBOARD_CLI_CONFIG_ASKED_HOSTS_H_
