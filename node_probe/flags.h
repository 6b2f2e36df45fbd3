// The command line of outboard-node-probe.
#ifndef OUTBOARD_NODE_PROBE_FLAGS_H_
#define OUTBOARD_NODE_PROBE_FLAGS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "shim/config/flag_table.h"

namespace outboard::node_probe {

struct Flags {
  std::string node_name;  // empty: --dry-run only
  std::string nvidia_smi = "nvidia-smi";
  std::string pod_resources = "/var/lib/kubelet/pod-resources/kubelet.sock";  // empty: none
  absl::Duration period = absl::Seconds(30);
  absl::Duration command_timeout = absl::Seconds(30);
  std::string kubeconfig;       // empty: in-cluster
  std::string service_account;  // empty: the default directory
  bool once = false;
  bool dry_run = false;
  bool help = false;
  bool version = false;
};

extern const char kHelp[];

config::FlagTable MakeFlagTable(Flags* flags);

// `node_name` is used without --node-name: the value of the environment variable NODE_NAME.
// Errors: INVALID_ARGUMENT naming the flag.
absl::StatusOr<Flags> ParseFlags(const std::vector<std::string>& arguments,
                                 const std::string& node_name);

}  // namespace outboard::node_probe

#endif  // OUTBOARD_NODE_PROBE_FLAGS_H_
