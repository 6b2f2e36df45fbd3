// `outboard-node-probe`: writes facts about this machine's GPUs to its Node.
#include <glog/logging.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "logging/log_to_stderr.h"
#include "node_probe/flags.h"
#include "node_probe/node_patch.h"
#include "node_probe/node_probe.h"
#include "shim/clock.h"
#include "shim/kube/cancel_token.h"
#include "shim/kube/curl_api_client.h"
#include "shim/kube/kubeconfig.h"

namespace outboard::node_probe {
namespace {

absl::StatusOr<kube::ClientConfig> LoadClientConfig(const Flags& flags) {
  if (!flags.kubeconfig.empty()) return kube::LoadKubeconfig(flags.kubeconfig);
  if (!flags.service_account.empty()) return kube::LoadInClusterConfig(flags.service_account);
  return kube::LoadInClusterConfig();
}

int Run(const Flags& flags, const kube::CancelToken& cancel) {
  std::unique_ptr<kube::ApiClient> api;
  WriteAnnotations write = [](const NodeAnnotations& annotations, const kube::CancelToken&) {
    std::cout << PatchText(annotations) << std::endl;
    return absl::OkStatus();
  };
  if (!flags.dry_run) {
    auto config = LoadClientConfig(flags);
    if (!config.ok()) {
      std::cerr << "outboard-node-probe: " << config.status().message() << "\n";
      return 1;
    }
    kube::CurlApiClientOptions options;
    options.user_agent = "outboard-node-probe/" OUTBOARD_VERSION;
    api = std::make_unique<kube::CurlApiClient>(*std::move(config), std::move(options));
    write = [&api, &flags](const NodeAnnotations& annotations, const kube::CancelToken& stop) {
      return PatchNode(api.get(), flags.node_name, annotations, stop);
    };
  }
  NodeProbeOptions options;
  options.nvidia_smi = flags.nvidia_smi;
  options.pod_resources = flags.pod_resources;
  options.period = flags.period;
  options.command.timeout = flags.command_timeout;
  NodeProbe probe(std::move(options), std::move(write));
  if (!flags.once) {
    probe.Run(cancel);
    return 0;
  }
  const absl::Status status = probe.RunOnce(SteadyNow(), cancel);
  if (status.ok() || cancel.cancelled()) return 0;
  std::cerr << "outboard-node-probe: " << status.message() << "\n";
  return 1;
}

int Main(int argc, char** argv) {
  const char* const node_name = getenv("NODE_NAME");
  const absl::StatusOr<Flags> flags = ParseFlags(std::vector<std::string>(argv + 1, argv + argc),
                                                 node_name == nullptr ? "" : node_name);
  if (!flags.ok()) {
    std::cerr << "outboard-node-probe: " << flags.status().message()
              << "\nTry: outboard-node-probe --help\n";
    return 2;
  }
  if (flags->help) {
    std::cout << kHelp;
    return 0;
  }
  if (flags->version) {
    std::cout << "outboard-node-probe " << OUTBOARD_VERSION << "\n";
    return 0;
  }
  logging::LogToStderr(argv[0]);
  // Debian's Abseil checks the order of all locks, under a lock of all threads. Tests keep that.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  // One thread receives the signals. The mask is set before any other thread starts and inherits
  // it.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);
  const kube::CancelToken cancel;
  std::thread([&signals, cancel] {
    int signal_number = 0;
    sigwait(&signals, &signal_number);
    LOG(INFO) << "Signal " << signal_number << ": stopping";
    cancel.Cancel();
    // The second signal ends the process at once.
    sigwait(&signals, &signal_number);
    _exit(1);
  }).detach();
  const int code = Run(*flags, cancel);
  // The thread of the signals refers to this frame.
  fflush(stdout);
  _exit(code);
}

}  // namespace
}  // namespace outboard::node_probe

int main(int argc, char** argv) { return outboard::node_probe::Main(argc, argv); }
