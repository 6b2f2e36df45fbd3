// `outboard`: the command for users. One table of verbs; help and completion are made from it.
#include <glog/logging.h>

#include <cstdio>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "cli/command_line.h"
#include "cli/completion.h"
#include "cli/config/command.h"
#include "cli/conformance/command.h"
#include "cli/inspect/explain_command.h"
#include "cli/inspect/hosts_command.h"
#include "cli/inspect/queue_command.h"
#include "cli/plugin/commands.h"
#include "cli/simulate/command.h"
#include "cli/simulate/trace/commands.h"
#include "shim/config/flag_table.h"
#include "shim/config/nearest.h"

namespace outboard::cli {
namespace {

using Arguments = std::vector<std::string>;

constexpr char kCompletionHelp[] =
    R"(outboard completion: let the shell complete commands, flags and values

Usage:
  outboard completion bash|zsh|fish

Flags:
  -h, --help             Print this text

Prints a script. For the current shell:
  source <(outboard completion bash)
  source <(outboard completion zsh)
  outboard completion fish | source
The script says where to write it for all shells.

Exit codes: 0 printed; 2 invalid usage.
)";

int RunVersion(const Arguments& arguments) {
  if (!arguments.empty()) {
    return UsageError("version", absl::InvalidArgumentError(
                                     absl::StrCat("unexpected argument \"", arguments[0], "\"")));
  }
  puts("outboard " OUTBOARD_VERSION);
  return 0;
}

int RunHelp(const Arguments& arguments);
int RunCompletion(const Arguments& arguments);

using Flags = std::vector<config::FlagTable::Flag>;

Flags NoFlags() { return config::FlagTable().flags(); }

// The flags of a command whose table is filled by MakeTable.
template <typename Line, config::FlagTable (*MakeTable)(Line*)>
Flags FlagsOf() {
  Line line;
  return MakeTable(&line).flags();
}

struct Verb {
  const char* name;
  const char* line;
  int (*run)(const Arguments& arguments);  // returns the exit code
  Flags (*flags)();
  const char* words = "";  // separated by spaces: the possible first arguments
};

constexpr Verb kVerbs[] = {
    {"simulate", "Where would these pods go, and why? Needs no cluster", simulate::RunSimulate,
     FlagsOf<simulate::CommandLine, simulate::SimulateFlags>},
    {"generate-workload", "Generate a GPU cluster and some hours of jobs, for simulate --trace",
     simulate::trace::RunGenerateWorkload,
     FlagsOf<simulate::trace::GenerateLine, simulate::trace::GenerateFlags>},
    {"explain", "Why does this pod have its node, or none? What is known of a node?",
     inspect::RunExplain, FlagsOf<inspect::ExplainLine, inspect::ExplainFlags>},
    {"queue", "Which pods wait, where in the queue, and why? Asks a running shim",
     inspect::RunQueue, FlagsOf<inspect::QueueLine, inspect::QueueFlags>},
    {"hosts", "Which plugin hosts exist, and which instance of each serves? Asks a running shim",
     inspect::RunHosts, FlagsOf<inspect::HostsLine, inspect::HostsFlags>},
    {"swap", "Let another instance of a plugin host serve", inspect::RunSwap,
     FlagsOf<inspect::HostsLine, inspect::SwapFlags>},
    {"rollback", "Let the previous instance of a plugin host serve again", inspect::RunRollback,
     FlagsOf<inspect::HostsLine, inspect::RollbackFlags>},
    {"new", "Start a plugin, in C++ or Python", plugin_command::RunNew,
     FlagsOf<plugin_command::NewLine, plugin_command::NewFlags>, "plugin"},
    {"plugin", "Change the plugins of a host while it serves", plugin_command::RunPlugin,
     FlagsOf<plugin_command::PluginLine, plugin_command::PluginFlags>, "install remove"},
    {"conformance", "Does a plugin host keep the contract? Asks a running host",
     conformance::RunConformance, FlagsOf<conformance::CommandLine, conformance::ConformanceFlags>},
    {"config", "Check a configuration file, or compare it with the running one",
     config_command::RunConfig, FlagsOf<config_command::ConfigLine, config_command::ConfigFlags>},
    {"completion", "Let bash, zsh or fish complete commands and flags", RunCompletion, NoFlags,
     "bash zsh fish"},
    {"version", "Print the version", RunVersion, NoFlags},
    {"help", "Print this text, or the help of a command", RunHelp, NoFlags},
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

const Verb* FindVerb(const std::string& name) {
  for (const Verb& verb : kVerbs) {
    if (name == verb.name) return &verb;
  }
  return nullptr;
}

int UnknownCommand(const std::string& name) {
  std::vector<std::string> known = {"--help", "--version"};
  for (const Verb& verb : kVerbs) known.push_back(verb.name);
  fprintf(stderr, "outboard: unknown %s \"%s\"%s\nTry: outboard --help\n",
          name[0] == '-' ? "flag" : "command", name.c_str(),
          config::DidYouMean(name, known).c_str());
  return 2;
}

int RunHelp(const Arguments& arguments) {
  if (arguments.empty() || arguments[0] == "--help" || arguments[0] == "-h") {
    fputs(Help().c_str(), stdout);
    return 0;
  }
  const Verb* const verb = FindVerb(arguments[0]);
  if (verb == nullptr) return UnknownCommand(arguments[0]);
  Arguments rest(arguments.begin() + 1, arguments.end());
  rest.push_back("--help");
  return verb->run(rest);
}

int RunCompletion(const Arguments& arguments) {
  config::FlagTable flags;
  absl::Status usage = flags.Parse(arguments);
  if (usage.ok() && flags.help()) {
    fputs(kCompletionHelp, stdout);
    return 0;
  }
  const std::vector<std::string>& words = flags.words();
  const std::vector<std::string>& shells = CompletedShells();
  if (usage.ok() && words.empty())
    usage = absl::InvalidArgumentError("SHELL is missing: bash, zsh or fish");
  if (usage.ok()) usage = flags.CheckWordCount(1);
  if (usage.ok() && !absl::c_linear_search(shells, words[0])) {
    usage = absl::InvalidArgumentError(
        absl::StrCat("unknown shell \"", words[0], "\"; known: ", absl::StrJoin(shells, ", ")));
  }
  if (!usage.ok()) return UsageError("completion", usage);
  std::vector<CompletedCommand> commands;
  for (const Verb& verb : kVerbs) {
    CompletedCommand& command = commands.emplace_back();
    command.name = verb.name;
    command.line = verb.line;
    command.words = absl::StrSplit(verb.words, ' ', absl::SkipEmpty());
    command.flags = verb.flags();
  }
  for (CompletedCommand& command : commands) {
    if (command.name != "help") continue;
    for (const Verb& verb : kVerbs) command.words.push_back(verb.name);
  }
  fputs(CompletionScript(words[0], commands).c_str(), stdout);
  return 0;
}

int Main(int argc, char** argv) {
  FLAGS_logtostderr = true;
  google::InitGoogleLogging(argv[0]);
  std::string name = argc > 1 ? argv[1] : "";
  if (name == "--version") name = "version";
  if (name == "--help" || name == "-h") name = "help";
  if (name.empty()) {
    fputs(Help().c_str(), stderr);
    return 2;
  }
  const Verb* const verb = FindVerb(name);
  if (verb == nullptr) return UnknownCommand(name);
  return verb->run(Arguments(argv + 2, argv + argc));
}

}  // namespace
}  // namespace outboard::cli

int main(int argc, char** argv) { return outboard::cli::Main(argc, argv); }
