// `outboard`: the command line for people.
#include <glog/logging.h>

#include <cstdio>
#include <string>
#include <vector>

#include "shim/author/commands.h"
#include "shim/config/config.h"
#include "shim/config/profiles.h"
#include "shim/conformance/command.h"
#include "shim/explain/command.h"
#include "shim/host_report/command.h"
#include "shim/queue_report/command.h"
#include "shim/simulate/command.h"
#include "shim/simulate/trace/commands.h"

namespace {

constexpr char kHelp[] = R"(outboard: a Kubernetes scheduler whose plugins run in another process

Usage:
  outboard COMMAND [arguments]

Commands:
  simulate    Where would these pods go, and why? Needs no cluster
  generate-workload
              Make up a GPU cluster and the jobs of some hours on it, for simulate --trace
  explain     Why did this pod go there, or nowhere? Asks a running shim
  queue       Which pods wait, where in the queue, and why? Asks a running shim
  hosts       Which plugin hosts are there, and which instance of each serves? Asks a running shim
  swap        Have another instance of a plugin host serve
  rollback    Have a plugin host's predecessor serve again
  new         Begin a plugin, in C++ or Python
  plugin      Change the plugins of a host while pods are scheduled
  conformance Does a plugin host keep the contract? Asks a running host
  config      Check a configuration file and show it with all defaults
  version     Print the version
  help        This text

`outboard COMMAND --help` tells more. The scheduler itself is outboard-shim, the plugin host outboard-host.
)";

constexpr char kConfigHelp[] =
    R"(outboard config: check a configuration file and show it with all defaults

Usage:
  outboard config FILE

FILE holds a KubeSchedulerConfiguration (kubescheduler.config.k8s.io/v1) and, optionally, after `---`, a ShimConfiguration
(config.outboard.dev/v1alpha1). Every fault is shown with file, line and field. What depends on the plugins that a host serves is
checked when the shim has reached its hosts.

Exit codes: 0 the file is good, 2 it is not.
)";

int RunConfig(const std::vector<std::string>& arguments) {
  if (arguments.size() != 1 || arguments[0] == "-h" || arguments[0] == "--help") {
    const bool asked = arguments.size() == 1;
    fputs(kConfigHelp, asked ? stdout : stderr);
    return asked ? 0 : 2;
  }
  auto config = outboard::config::LoadConfigFile(arguments[0]);
  if (!config.ok()) {
    fprintf(stderr, "%s\n", std::string(config.status().message()).c_str());
    return 2;
  }
  for (const std::string& warning : config->warnings)
    fprintf(stderr, "warning: %s\n", warning.c_str());
  fputs(outboard::config::EffectiveConfigYaml(*config, nullptr).c_str(), stdout);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  FLAGS_logtostderr = true;
  google::InitGoogleLogging(argv[0]);
  const std::string command = argc > 1 ? argv[1] : "";
  const std::vector<std::string> arguments(argv + (argc > 1 ? 2 : 1), argv + argc);
  if (command == "simulate") return outboard::simulate::RunSimulate(arguments);
  if (command == "generate-workload")
    return outboard::simulate::trace::RunGenerateWorkload(arguments);
  if (command == "explain") return outboard::explain::RunExplain(arguments);
  if (command == "queue") return outboard::queue_report::RunQueue(arguments);
  if (command == "hosts") return outboard::host_report::RunHosts(arguments);
  if (command == "swap") return outboard::host_report::RunSwap(arguments);
  if (command == "rollback") return outboard::host_report::RunRollback(arguments);
  if (command == "new") return outboard::author::RunNew(arguments);
  if (command == "plugin") return outboard::author::RunPlugin(arguments);
  if (command == "conformance") return outboard::conformance::RunConformance(arguments);
  if (command == "config") return RunConfig(arguments);
  if (command == "version" || command == "--version") {
    puts("outboard " OUTBOARD_VERSION);
    return 0;
  }
  if (command == "help" || command == "--help" || command == "-h") {
    fputs(kHelp, stdout);
    return 0;
  }
  if (!command.empty()) fprintf(stderr, "outboard: unknown command \"%s\"\n\n", command.c_str());
  fputs(kHelp, stderr);
  return 2;
}
