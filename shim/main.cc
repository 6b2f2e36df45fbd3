// `outboard-shim`: the scheduler process.
#include <glog/logging.h>
#include <pthread.h>
#include <signal.h>

#include <cstdio>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "shim/config/config.h"
#include "shim/http/client.h"
#include "shim/shim.h"

namespace {

constexpr char kHelp[] =
    R"(outboard-shim: a Kubernetes scheduler whose plugins run in another process

Usage:
  outboard-shim --config FILE [flags]

Flags:
  --config FILE            A KubeSchedulerConfiguration (kubescheduler.config.k8s.io/v1), then after `---` a ShimConfiguration
                           (config.outboard.dev/v1alpha1) that names the plugin hosts. `outboard config FILE` checks it
  --kubeconfig FILE        Instead of the configuration's clientConnection.kubeconfig; with neither: in-cluster
  --allow-insecure-api-server
                           Accept insecure-skip-tls-verify in the kubeconfig. For tests only
  --service-account DIR    In a cluster: where token, ca.crt and namespace are (default: /var/run/secrets/kubernetes.io/serviceaccount)
  --v LEVEL                Log level, 0 to 10; 2 tells of every bind
  --probe ADDRESS/PATH     Instead of scheduling: exit 0 if the shim that serves ADDRESS answers "ok" at PATH (livez, readyz) within
                           5 s, else 1 with what it says. For those who watch over containers without a web client in them.
                           ADDRESS is its servingAddress, or https:// and its secureServing's; then there may be, too:
                           --token-file FILE, --certificate-authority FILE, --insecure-skip-tls-verify
  --version, -h, --help

Signals: SIGTERM and SIGINT finish binds under way, give the lease up and end the process. SIGHUP reads FILE again, which also happens by
itself when it changes; one that cannot be used is reported and leaves everything as it is.
Exit codes: 0 stopped by a signal; 1 the lease was lost or something failed; 2 wrong usage or configuration.

Example:
  outboard-host --listen unix:/run/outboard/host.sock &
  outboard-shim --config scheduler.yaml
)";

int Usage(const std::string& problem) {
  fprintf(stderr, "outboard-shim: %s\nTry: outboard-shim --help\n", problem.c_str());
  return 2;
}

// `page` is ADDRESS/PATH.
int Probe(const std::string& page, outboard::http::ShimAddress shim) {
  constexpr absl::Duration kTimeout = absl::Seconds(5);
  const size_t scheme = page.find("://");
  const size_t slash = page.find('/', scheme == std::string::npos ? 0 : scheme + 3);
  if (slash == std::string::npos || slash == 0 || slash + 1 == page.size())
    return Usage(absl::StrCat("--probe wants ADDRESS/PATH, not \"", page, "\""));
  shim.server = page.substr(0, slash);
  const absl::StatusOr<std::string> answer =
      outboard::http::GetPage(shim, page.substr(slash), {}, kTimeout);
  if (answer.ok()) return 0;
  fprintf(stderr, "outboard-shim: %s\n", std::string(answer.status().message()).c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  FLAGS_logtostderr = true;
  google::InitGoogleLogging(argv[0]);
  std::string config_file;
  std::string probed;
  int verbosity = -1;
  outboard::shim::ShimOptions options;
  std::vector<std::string> arguments(argv + 1, argv + argc);
  absl::StatusOr<outboard::http::ShimAddress> shim_address =
      outboard::http::TakeShimFlags("", &arguments);
  if (!shim_address.ok()) return Usage(std::string(shim_address.status().message()));
  for (size_t i = 0; i < arguments.size(); ++i) {
    std::string flag = arguments[i];
    std::string value;
    bool has_value = false;
    if (const size_t equals = flag.find('='); equals != std::string::npos) {
      value = flag.substr(equals + 1);
      flag.resize(equals);
      has_value = true;
    }
    if (flag == "-h" || flag == "--help") {
      fputs(kHelp, stdout);
      return 0;
    }
    if (flag == "--version") {
      puts("outboard-shim " OUTBOARD_VERSION);
      return 0;
    }
    if (flag == "--allow-insecure-api-server") {
      options.allow_insecure_api_server = true;
      continue;
    }
    if (flag != "--config" && flag != "--kubeconfig" && flag != "--service-account" &&
        flag != "--probe" && flag != "--v" && flag != "-v") {
      return Usage(absl::StrCat("unknown flag ", flag));
    }
    if (!has_value && i + 1 == arguments.size()) return Usage(absl::StrCat(flag, " needs a value"));
    if (!has_value) value = arguments[++i];
    if (flag == "--probe") probed = value;
    if (flag == "--service-account") options.service_account = value;
    if (flag == "--config") config_file = value;
    if (flag == "--kubeconfig") options.kubeconfig = value;
    if ((flag == "--v" || flag == "-v") &&
        (!absl::SimpleAtoi(value, &verbosity) || verbosity < 0 || verbosity > 10)) {
      return Usage(absl::StrCat(flag, " must be a number from 0 to 10, not \"", value, "\""));
    }
  }
  if (!probed.empty()) return Probe(probed, *std::move(shim_address));
  if (config_file.empty()) return Usage("--config FILE is required");

  auto config = outboard::config::LoadConfigFile(config_file);
  if (!config.ok()) {
    fprintf(stderr, "%s\n", std::string(config.status().message()).c_str());
    return 2;
  }
  for (const std::string& warning : config->warnings) LOG(WARNING) << warning;
  FLAGS_v = verbosity >= 0 ? verbosity : config->shim.verbosity;

  // Signals are taken by one thread, before any other starts and inherits the mask.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);

  auto shim = outboard::shim::Shim::Create(*std::move(config), options);
  if (!shim.ok()) {
    fprintf(stderr, "outboard-shim: %s\n", std::string(shim.status().message()).c_str());
    return absl::IsInvalidArgument(shim.status()) ? 2 : 1;
  }
  std::thread([&signals, &shim] {
    bool stopping = false;
    while (true) {
      int signal_number = 0;
      sigwait(&signals, &signal_number);
      if (signal_number == SIGHUP) {
        if (!stopping) (*shim)->Reload();
        continue;
      }
      // A second one ends it at once.
      if (std::exchange(stopping, true)) _exit(1);
      LOG(INFO) << "Signal " << signal_number << ": stopping";
      (*shim)->Stop();
    }
  }).detach();
  const absl::Status ended = (*shim)->Run();
  if (!ended.ok()) {
    LOG(ERROR) << ended.message();
    // The lease is another's or the configuration is useless: nothing is worth waiting for.
    fflush(stderr);
    _exit(absl::IsInvalidArgument(ended) ? 2 : 1);
  }
  return 0;
}
