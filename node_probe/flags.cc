#include "node_probe/flags.h"

#include "absl/strings/str_cat.h"
#include "shim/kube/wire/name_rules.h"

namespace outboard::node_probe {
namespace {

constexpr absl::Duration kShortestPeriod = absl::Seconds(1);

}  // namespace

const char kHelp[] =
    R"help(outboard-node-probe: writes to a Node how its GPUs are connected, and which pods use which of them

Runs on each machine with NVIDIA GPUs, as a DaemonSet. In each period it reads `nvidia-smi -L`, `nvidia-smi topo -m` and
the kubelet's PodResources socket, and patches two annotations of its Node when they have changed:
  accelerator.sched.io/gpu-islands   sets of GPUs of which every pair has NVLink, such as "nvlink 0-3;4-7"
  accelerator.sched.io/pod-gpus      GPUs of pods, such as "team-a/train-0=0-3;team-b/serve-1=4"
TopologyAwareGPUGate reads both, WorkloadStrategyScorer the second. Without a probe they use what they know otherwise.

Usage:
  outboard-node-probe [flags]

Flags:
  --node-name NAME         The Node (default: the environment variable NODE_NAME)
  --nvidia-smi PROGRAM     (default: nvidia-smi, searched in PATH)
  --pod-resources SOCKET   The kubelet's socket, which only root may open; `none`: write islands only
                           (default: /var/lib/kubelet/pod-resources/kubelet.sock)
  --period DURATION        Time between rounds, at least 1s (default: 30s); doubled after failed rounds, up to 5m
  --command-timeout DURATION
                           When nvidia-smi is ended (default: 30s)
  --once                   One round, then exit
  --dry-run                Print patches instead of sending them; needs no cluster
  --kubeconfig FILE        (default: in-cluster, as the pod's ServiceAccount)
  --service-account DIR    In-cluster: directory with token, ca.crt and namespace
                           (default: /var/run/secrets/kubernetes.io/serviceaccount)
  --version                Print the version
  -h, --help               Print this text

What cannot be read stays as it is on the Node, and so does everything when the probe ends.
Signals: SIGTERM and SIGINT end the process.
Exit codes: 0 stopped by a signal, or everything read and written with --once; 1 a failed round with --once, or no
credentials; 2 invalid usage.

Examples:
  outboard-node-probe --once --dry-run --pod-resources none         what would be written, on any machine with GPUs
  kubectl patch node "$NODE" --type merge --patch "$(outboard-node-probe --once --dry-run --pod-resources none)"
)help";

config::FlagTable MakeFlagTable(Flags* flags) {
  config::FlagTable table;
  table.Text("--node-name", &flags->node_name);
  table.Text("--nvidia-smi", &flags->nvidia_smi);
  table.Text("--pod-resources", &flags->pod_resources);
  table.Duration("--period", &flags->period);
  table.Duration("--command-timeout", &flags->command_timeout);
  table.Switch("--once", &flags->once);
  table.Switch("--dry-run", &flags->dry_run);
  table.Text("--kubeconfig", &flags->kubeconfig);
  table.Text("--service-account", &flags->service_account);
  table.Switch("--version", &flags->version);
  return table;
}

absl::StatusOr<Flags> ParseFlags(const std::vector<std::string>& arguments,
                                 const std::string& node_name) {
  Flags flags;
  flags.node_name = node_name;
  config::FlagTable table = MakeFlagTable(&flags);
  if (absl::Status parsed = table.Parse(arguments); !parsed.ok()) return parsed;
  flags.help = table.help();
  if (flags.help || flags.version) return flags;
  if (absl::Status words = table.CheckWordCount(0); !words.ok()) return words;
  if (flags.period < kShortestPeriod)
    return absl::InvalidArgumentError("--period must be at least 1s");
  if (flags.command_timeout <= absl::ZeroDuration())
    return absl::InvalidArgumentError("--command-timeout must be above 0");
  if (flags.nvidia_smi.empty()) return absl::InvalidArgumentError("--nvidia-smi must not be empty");
  if (flags.pod_resources == "none") flags.pod_resources.clear();
  if (flags.node_name.empty() && !flags.dry_run)
    return absl::InvalidArgumentError("--node-name NAME is required");
  if (!flags.node_name.empty()) {
    if (const std::string problem = kube::CheckSubdomain(flags.node_name); !problem.empty())
      return absl::InvalidArgumentError(absl::StrCat("--node-name ", problem));
  }
  return flags;
}

}  // namespace outboard::node_probe
