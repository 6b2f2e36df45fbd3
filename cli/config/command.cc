#include "cli/config/command.h"

#include <glog/logging.h>

#include <algorithm>
#include <cstdio>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "cli/command_line.h"
#include "shim/config/profiles.h"
#include "shim/hosts/plans.h"

namespace outboard::config_command {
namespace {

// The configuration without the plugins that no host serves, so that the others can be checked.
config::Config OnlyServed(config::Config config, const AskedHosts& hosts) {
  const std::vector<std::string> served = hosts.PluginNames();
  const auto is_unserved = [&](const std::string& plugin) {
    return !absl::c_binary_search(served, plugin);
  };
  const auto remove = [&](std::vector<config::PluginEntry>* entries) {
    std::erase_if(*entries, [&](const auto& entry) { return is_unserved(entry.name); });
  };
  for (config::ProfileSpec& profile : config.scheduler.profiles) {
    std::erase_if(profile.plugin_config, [&](const config::PluginArgs& args) {
      const auto is_it = [&](const config::PluginEntry& entry) { return entry.name == args.name; };
      return is_unserved(args.name) && (absl::c_any_of(profile.multi_point.enabled, is_it) ||
                                        absl::c_any_of(profile.points, [&](const auto& at) {
                                          return absl::c_any_of(at.second.enabled, is_it);
                                        }));
    });
    remove(&profile.multi_point.enabled);
    for (auto& [point, set] : profile.points) remove(&set.enabled);
  }
  std::erase_if(config.shim.failure_policies,
                [&](const auto& rule) { return is_unserved(rule.plugin); });
  return config;
}

// A host tells profiles apart by their names.
bool AreProfilesNamed(const config::Config& config) {
  std::set<std::string> names;
  return absl::c_all_of(config.scheduler.profiles, [&](const config::ProfileSpec& profile) {
    return !profile.scheduler_name.empty() && names.insert(profile.scheduler_name).second;
  });
}

// The position in a line that begins with "FILE:LINE:COLUMN: "; without it 0.
std::pair<int, int> PositionOf(absl::string_view file, absl::string_view line) {
  std::pair<int, int> position;
  if (!absl::ConsumePrefix(&line, file) || !absl::ConsumePrefix(&line, ":")) return position;
  const std::vector<absl::string_view> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
  if (parts.size() < 3 || !absl::SimpleAtoi(parts[0], &position.first) ||
      !absl::SimpleAtoi(parts[1], &position.second))
    return {};
  return position;
}

// What RunConfig knows after the plugins were checked.
struct Checked {
  absl::Status usage;     // INVALID_ARGUMENT: an address on the command line
  absl::Status problems;  // INVALID_ARGUMENT: those of the file
  std::string note;       // why plugins were not checked, or which host was asked
};

Checked Check(const ConfigLine& line, const config::Config& config,
              std::vector<std::string>* warnings) {
  if (line.without_hosts) return {};
  const absl::StatusOr<AskedHosts> hosts =
      line.hosts.empty() ? AskedHosts::StartOwn() : AskedHosts::At(line.hosts, config.shim);
  if (absl::IsNotFound(hosts.status()) && line.hosts.empty()) {
    return {absl::OkStatus(), absl::OkStatus(),
            "note: plugins and their arguments were not checked: outboard-host is neither beside "
            "this program nor on PATH; name running hosts with --host ADDRESS"};
  }
  if (absl::IsInvalidArgument(hosts.status())) return {hosts.status(), absl::OkStatus(), ""};
  if (!hosts.ok()) return {absl::OkStatus(), hosts.status(), ""};
  Checked checked{absl::OkStatus(), CheckPlugins(config, *hosts, warnings), ""};
  if (line.hosts.empty() &&
      absl::StrContains(checked.problems.message(), "no host serves plugin")) {
    checked.note =
        "note: checked with the outboard-host beside this program; if other hosts serve plugins, "
        "name all hosts with --host ADDRESS";
  }
  return checked;
}

}  // namespace

const char kConfigHelp[] =
    R"(outboard config: check a configuration file, and print it with all defaults

Usage:
  outboard config FILE [flags]

Flags:
  --host ADDRESS         Check plugins and their arguments with the running plugin host at unix:PATH, or at the network
                         address of one of the file's hosts. May be repeated, in the order of the file's hosts (default:
                         start the outboard-host beside this program, else on PATH)
  --without-hosts        Do not check plugins and their arguments
  -h, --help             Print this text

FILE contains a KubeSchedulerConfiguration (kubescheduler.config.k8s.io/v1) and optionally, after `---`, a
ShimConfiguration (config.outboard.dev/v1alpha1). Prints every error with file, line and field. Connects to none of the
file's hosts by itself.

Exit codes: 0 the file is valid; 1 a host does not answer; 2 the file is not valid, or invalid usage.

Example:
  outboard config scheduler.yaml
)";

config::FlagTable ConfigFlags(ConfigLine* line) {
  config::FlagTable flags;
  flags.Texts("--host", &line->hosts);
  flags.Switch("--without-hosts", &line->without_hosts);
  return flags;
}

absl::StatusOr<ConfigLine> ParseConfigLine(const std::vector<std::string>& arguments) {
  ConfigLine line;
  config::FlagTable flags = ConfigFlags(&line);
  if (absl::Status parsed = flags.Parse(arguments); !parsed.ok()) return parsed;
  line.help = flags.help();
  if (line.help) return line;
  if (absl::Status words = flags.CheckWordCount(1); !words.ok()) return words;
  if (flags.words().empty()) return absl::InvalidArgumentError("FILE is missing");
  line.file = flags.words()[0];
  if (line.without_hosts && !line.hosts.empty())
    return absl::InvalidArgumentError("--host and --without-hosts exclude each other");
  for (const std::string& host : line.hosts) {
    if (absl::Status known = cli::CheckHostAddress("--host", host); !known.ok()) return known;
  }
  return line;
}

absl::Status CheckPlugins(const config::Config& config, const AskedHosts& hosts,
                          std::vector<std::string>* warnings) {
  std::string problems;
  absl::StatusOr<hosts::Plans> plans = hosts::MakePlans(config, hosts.names(), hosts.infos());
  if (!plans.ok()) {
    problems = std::string(plans.status().message());
    plans = hosts::MakePlans(OnlyServed(config, hosts), hosts.names(), hosts.infos());
  }
  if (plans.ok() && AreProfilesNamed(config)) {
    *warnings = plans->resolved.warnings;
    for (const auto& [host, request] : plans->configure) {
      const absl::StatusOr<v1beta1::ConfigureResponse> response = hosts.Configure(host, request);
      if (!response.ok()) return response.status();
      for (std::string& warning : hosts::ConfigureWarnings(config, plans->resolved, *response))
        warnings->push_back(std::move(warning));
      problems = MergeProblems(config.file, problems,
                               hosts::ConfigureError(config, plans->resolved, *response).message());
    }
  }
  return problems.empty() ? absl::OkStatus() : absl::InvalidArgumentError(problems);
}

std::string MergeProblems(const std::string& file, absl::string_view first,
                          absl::string_view second) {
  std::vector<std::string> lines;
  for (absl::string_view text : {first, second}) {
    for (absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
      if (!absl::c_linear_search(lines, line)) lines.emplace_back(line);
    }
  }
  absl::c_stable_sort(lines, [&](const std::string& a, const std::string& b) {
    return PositionOf(file, a) < PositionOf(file, b);
  });
  return absl::StrJoin(lines, "\n");
}

int RunConfig(const std::vector<std::string>& arguments) {
  const absl::StatusOr<ConfigLine> line = ParseConfigLine(arguments);
  if (!line.ok()) return cli::UsageError("config", line.status());
  if (line->help) {
    fputs(kConfigHelp, stdout);
    return 0;
  }
  // The plans' warnings are for a shim's log.
  FLAGS_minloglevel = std::max(FLAGS_minloglevel, int{google::GLOG_ERROR});
  config::Config config;
  const absl::Status read = config::ReadConfigFile(line->file, &config);
  if (!read.ok() && !absl::IsInvalidArgument(read)) {
    fprintf(stderr, "outboard config: %s\n", std::string(read.message()).c_str());
    return 2;
  }
  std::vector<std::string> warnings;
  const Checked checked = Check(*line, config, &warnings);
  if (!checked.usage.ok()) return cli::UsageError("config", checked.usage);
  if (!checked.problems.ok() && !absl::IsInvalidArgument(checked.problems)) {
    fprintf(stderr, "outboard config: %s\n", std::string(checked.problems.message()).c_str());
    return 1;
  }
  warnings.insert(warnings.begin(), config.warnings.begin(), config.warnings.end());
  for (const std::string& warning : warnings) fprintf(stderr, "warning: %s\n", warning.c_str());
  const std::string problems =
      MergeProblems(line->file, read.message(), checked.problems.message());
  if (!problems.empty()) fprintf(stderr, "%s\n", problems.c_str());
  if (!checked.note.empty()) fprintf(stderr, "%s\n", checked.note.c_str());
  if (!problems.empty()) return 2;
  fputs(config::EffectiveConfigYaml(config, nullptr).c_str(), stdout);
  return 0;
}

}  // namespace outboard::config_command
