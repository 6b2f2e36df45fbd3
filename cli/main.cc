// `outboard`: the command for users. One table of verbs; the help text is made from it.
#include <glog/logging.h>

#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/command_line.h"
#include "cli/conformance/command.h"
#include "cli/inspect/explain_command.h"
#include "cli/inspect/hosts_command.h"
#include "cli/inspect/queue_command.h"
#include "cli/plugin/commands.h"
#include "cli/simulate/command.h"
#include "cli/simulate/trace/commands.h"
#include "shim/config/config.h"
#include "shim/config/profiles.h"

namespace outboard::cli {
namespace {

using Arguments = std::vector<std::string>;

constexpr char kConfigHelp[] =
    R"(outboard config: check a configuration file, and print it with all defaults

Usage:
  outboard config FILE

Flags:
  -h, --help             Print this text

FILE contains a KubeSchedulerConfiguration (kubescheduler.config.k8s.io/v1) and optionally, after `---`, a
ShimConfiguration (config.outboard.dev/v1alpha1). Prints every error with file, line and field. The shim makes the checks
that depend on the plugins of a host when it connects to its hosts.

Exit codes: 0 the file is valid; 2 it is not valid.
)";

int RunConfig(const Arguments& arguments) {
  config::FlagTable flags;
  absl::Status usage = flags.Parse(arguments);
  if (usage.ok() && flags.help()) {
    fputs(kConfigHelp, stdout);
    return 0;
  }
  if (usage.ok() && flags.words().size() != 1)
    usage = absl::InvalidArgumentError("the argument must be one FILE");
  if (!usage.ok()) return UsageError("config", usage);
  const auto config = config::LoadConfigFile(flags.words()[0]);
  if (!config.ok()) {
    fprintf(stderr, "%s\n", std::string(config.status().message()).c_str());
    return 2;
  }
  for (const std::string& warning : config->warnings)
    fprintf(stderr, "warning: %s\n", warning.c_str());
  fputs(config::EffectiveConfigYaml(*config, nullptr).c_str(), stdout);
  return 0;
}

int RunVersion(const Arguments&) {
  puts("outboard " OUTBOARD_VERSION);
  return 0;
}

int RunHelp(const Arguments&);

struct Verb {
  const char* name;
  const char* line;
  int (*run)(const Arguments& arguments);  // returns the exit code
};

constexpr Verb kVerbs[] = {
    {"simulate", "Where would these pods go, and why? Needs no cluster", simulate::RunSimulate},
    {"generate-workload", "Generate a GPU cluster and some hours of jobs, for simulate --trace",
     simulate::trace::RunGenerateWorkload},
    {"explain", "Why does this pod have its node, or none? Asks a running shim",
     inspect::RunExplain},
    {"queue", "Which pods wait, where in the queue, and why? Asks a running shim",
     inspect::RunQueue},
    {"hosts", "Which plugin hosts exist, and which instance of each serves? Asks a running shim",
     inspect::RunHosts},
    {"swap", "Let another instance of a plugin host serve", inspect::RunSwap},
    {"rollback", "Let the previous instance of a plugin host serve again", inspect::RunRollback},
    {"new", "Start a plugin, in C++ or Python", plugin_command::RunNew},
    {"plugin", "Change the plugins of a host while it serves", plugin_command::RunPlugin},
    {"conformance", "Does a plugin host keep the contract? Asks a running host",
     conformance::RunConformance},
    {"config", "Check a configuration file, and print it with all defaults", RunConfig},
    {"version", "Print the version", RunVersion},
    {"help", "Print this text", RunHelp},
};

std::string Help() {
  std::string text =
      "outboard: a Kubernetes scheduler whose plugins run in another process\n\n"
      "Usage:\n  outboard COMMAND [arguments]\n\nCommands:\n";
  for (const Verb& verb : kVerbs)
    absl::StrAppendFormat(&text, "  %-18s %s\n", verb.name, verb.line);
  absl::StrAppend(&text,
                  "\n`outboard COMMAND --help` describes a command. The scheduler is the program "
                  "outboard-shim, the plugin host outboard-host.\n");
  return text;
}

int RunHelp(const Arguments&) {
  fputs(Help().c_str(), stdout);
  return 0;
}

int Main(int argc, char** argv) {
  FLAGS_logtostderr = true;
  google::InitGoogleLogging(argv[0]);
  std::string name = argc > 1 ? argv[1] : "";
  if (name == "--version") name = "version";
  if (name == "--help" || name == "-h") name = "help";
  const Arguments arguments(argv + (argc > 1 ? 2 : 1), argv + argc);
  for (const Verb& verb : kVerbs) {
    if (name == verb.name) return verb.run(arguments);
  }
  if (!name.empty()) fprintf(stderr, "outboard: unknown command \"%s\"\n\n", name.c_str());
  fputs(Help().c_str(), stderr);
  return 2;
}

}  // namespace
}  // namespace outboard::cli

int main(int argc, char** argv) { return outboard::cli::Main(argc, argv); }
