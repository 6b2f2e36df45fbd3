#include "shim/flags.h"

#include "absl/strings/str_cat.h"

namespace outboard::shim {

const char kHelp[] =
    R"(outboard-shim: a Kubernetes scheduler whose plugins run in another process

Usage:
  outboard-shim --config FILE [flags]

Flags:
  --config FILE            A KubeSchedulerConfiguration (kubescheduler.config.k8s.io/v1), followed after `---` by a
                           ShimConfiguration (config.outboard.dev/v1alpha1) that lists the plugin hosts.
                           `outboard config FILE` validates it
  --kubeconfig FILE        Overrides the configuration's clientConnection.kubeconfig; without both: in-cluster
  --allow-insecure-api-server
                           Accept insecure-skip-tls-verify in the kubeconfig. For tests only
  --service-account DIR    In-cluster: directory with token, ca.crt and namespace
                           (default: /var/run/secrets/kubernetes.io/serviceaccount)
  --last-good-config FILE  Keep each configuration that has served pods in FILE. If the one of --config cannot be used
                           at the start, log what is wrong with it and run on FILE
  -v, --v LEVEL            Log level, 0 to 10; level 2 logs every bind
  --probe ADDRESS/PATH     Do not schedule. Exit 0 if the shim at ADDRESS answers "ok" at PATH (livez, readyz) within 5 s,
                           otherwise print its answer and exit 1. For container health checks without an HTTP client.
                           ADDRESS is the shim's servingAddress, or https:// and its secureServing address
  --token-file FILE        With --probe https://…: a bearer token whose owner may read the page
  --certificate-authority FILE
                           With --probe https://…: the authority of the shim's certificate (default: the system's
                           authorities)
  --insecure-skip-tls-verify
                           With --probe https://…: do not verify the shim's certificate
  --version                Print the version
  -h, --help               Print this text

Signals: SIGTERM and SIGINT finish binds in flight, release the lease and end the process. SIGHUP reloads the
configuration file; a change of the file does the same. An invalid file is reported, and the current configuration stays
in force. Fields that only a restart can change keep their values; the log names them.
Environment: POD_NAME and POD_NAMESPACE name the shim's own pod, which then has events about the configuration.
Exit codes: 0 stopped by a signal; 1 lease lost or other failure; 2 invalid usage or configuration.

Example:
  outboard-host --listen unix:/run/outboard/host.sock &
  outboard-shim --config scheduler.yaml
)";

config::FlagTable MakeFlagTable(Flags* flags) {
  config::FlagTable table;
  table.Text("--config", &flags->config);
  table.Text("--kubeconfig", &flags->kubeconfig);
  table.Switch("--allow-insecure-api-server", &flags->allow_insecure_api_server);
  table.Text("--service-account", &flags->service_account);
  table.Text("--last-good-config", &flags->last_good_config);
  table.Number("-v,--v", "a number from 0 to 10", &flags->verbosity, 0, 10);
  table.Text("--probe", &flags->probe);
  http::AddCredentialFlags(&table, &flags->credentials);
  table.Switch("--version", &flags->version);
  return table;
}

absl::StatusOr<Flags> ParseFlags(const std::vector<std::string>& arguments) {
  Flags flags;
  config::FlagTable table = MakeFlagTable(&flags);
  if (absl::Status parsed = table.Parse(arguments); !parsed.ok()) return parsed;
  flags.help = table.help();
  if (flags.help || flags.version) return flags;
  if (absl::Status words = table.CheckWordCount(0); !words.ok()) return words;
  if (flags.probe.empty()) {
    const http::ShimAddress& its = flags.credentials;
    const char* const flag = !its.token_file.empty()              ? "--token-file"
                             : !its.certificate_authority.empty() ? "--certificate-authority"
                             : its.insecure_skip_tls_verify       ? "--insecure-skip-tls-verify"
                                                                  : nullptr;
    if (flag != nullptr) return absl::InvalidArgumentError(absl::StrCat(flag, " requires --probe"));
  }
  if (flags.probe.empty() && flags.config.empty())
    return absl::InvalidArgumentError("--config FILE is required");
  if (!flags.config.empty() && flags.config == flags.last_good_config)
    return absl::InvalidArgumentError("--last-good-config must name another file than --config");
  return flags;
}

}  // namespace outboard::shim
