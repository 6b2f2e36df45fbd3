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
#include "cli/config/line_diff.h"
#include "shim/config/profiles.h"
#include "shim/hosts/plans.h"

namespace outboard::config_command {
namespace {

constexpr absl::Duration kPageTimeout = absl::Seconds(30);

bool NamesAShim(const http::ShimAddress& shim) {
  return shim.server != http::ShimAddress().server || !shim.token_file.empty() ||
         !shim.certificate_authority.empty() || shim.insecure_skip_tls_verify;
}

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
    R"(outboard config: check a configuration file, and print it with all defaults; or compare it with a running shim's

Usage:
  outboard config FILE [--host ADDRESS] [--without-hosts]
  outboard config diff FILE [--server ADDRESS and its flags]

Flags:
  --host ADDRESS         Check plugins and their arguments with the running plugin host at unix:PATH, or at the network
                         address of one of the file's hosts. May be repeated, in the order of the file's hosts (default:
                         start the outboard-host beside this program, else on PATH)
  --without-hosts        Do not check plugins and their arguments
)" OUTBOARD_SHIM_FLAGS_HELP R"(
  -h, --help             Print this text

FILE contains a KubeSchedulerConfiguration (kubescheduler.config.k8s.io/v1) and optionally, after `---`, a
ShimConfiguration (config.outboard.dev/v1alpha1). Prints every error with file, line and field. Connects to none of the
file's hosts by itself.

diff prints what differs between the configuration in force of a running outboard-shim and FILE, both with all defaults.
Fields of FILE that wait for a restart of the shim differ until then. Standard error says if the shim refused its file.

Exit codes: 0 the file is valid; 1 a host does not answer; 2 the file is not valid, or invalid usage.
Of diff: 0 the same; 1 different; 2 the shim does not answer, the file is not valid, or invalid usage.

Example:
  outboard config scheduler.yaml
  outboard config diff scheduler.yaml
)";

config::FlagTable ConfigFlags(ConfigLine* line) {
  config::FlagTable flags;
  flags.Texts("--host", &line->hosts);
  flags.Switch("--without-hosts", &line->without_hosts);
  cli::AddShimFlags(&flags, &line->shim);
  return flags;
}

absl::StatusOr<ConfigLine> ParseConfigLine(const std::vector<std::string>& arguments) {
  ConfigLine line;
  config::FlagTable flags = ConfigFlags(&line);
  if (absl::Status parsed = flags.Parse(arguments); !parsed.ok()) return parsed;
  line.help = flags.help();
  if (line.help) return line;
  line.diff = !flags.words().empty() && flags.words()[0] == "diff";
  const size_t at = line.diff ? 1 : 0;
  if (absl::Status words = flags.CheckWordCount(at + 1); !words.ok()) return words;
  if (flags.words().size() <= at) return absl::InvalidArgumentError("FILE is missing");
  line.file = flags.words()[at];
  if (line.diff && (line.without_hosts || !line.hosts.empty()))
    return absl::InvalidArgumentError("--host and --without-hosts are not for diff");
  if (!line.diff && NamesAShim(line.shim))
    return absl::InvalidArgumentError("--server and its flags are for outboard config diff");
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

absl::StatusOr<std::string> ConfigDiff(const std::string& page, const config::Config& file) {
  const absl::StatusOr<config::Config> running = config::ParseConfig(page, "/configz");
  if (!running.ok()) {
    return absl::InternalError(absl::StrCat(
        "this version does not understand the shim's configuration: ", running.status().message()));
  }
  return UnifiedDiff("the running configuration", config::EffectiveConfigYaml(*running, nullptr),
                     file.file, config::EffectiveConfigYaml(file, nullptr));
}

namespace {

// What the shim says about its file: the comments at the beginning of the page.
void PrintComments(const std::string& page) {
  for (absl::string_view line : absl::StrSplit(page, '\n')) {
    if (!absl::ConsumePrefix(&line, "# ")) return;
    fprintf(stderr, "shim: %s\n", std::string(line).c_str());
  }
}

int RunDiff(const ConfigLine& line) {
  const auto fail = [](const absl::Status& error) {
    fprintf(stderr, "outboard config: %s\n", std::string(error.message()).c_str());
    return 2;
  };
  config::Config file;
  if (const absl::Status read = config::ReadConfigFile(line.file, &file); !read.ok()) {
    if (!absl::IsInvalidArgument(read)) return fail(read);
    fprintf(stderr, "%s\n", std::string(read.message()).c_str());
    return 2;
  }
  const absl::StatusOr<std::string> page = http::GetPage(line.shim, "/configz", {}, kPageTimeout);
  if (!page.ok()) return fail(page.status());
  PrintComments(*page);
  const absl::StatusOr<std::string> diff = ConfigDiff(*page, file);
  if (!diff.ok()) return fail(diff.status());
  fputs(diff->c_str(), stdout);
  return diff->empty() ? 0 : 1;
}

}  // namespace

int RunConfig(const std::vector<std::string>& arguments) {
  const absl::StatusOr<ConfigLine> line = ParseConfigLine(arguments);
  if (!line.ok()) return cli::UsageError("config", line.status());
  if (line->help) {
    fputs(kConfigHelp, stdout);
    return 0;
  }
  if (line->diff) return RunDiff(*line);
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
