#include "cli/inspect/hosts_command.h"

#include <map>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "cli/command_line.h"
#include "shim/http/page_text.h"

namespace outboard::inspect {
namespace {

using Json = nlohmann::ordered_json;

constexpr absl::Duration kHostsTimeout = absl::Seconds(30);

// Parses with the table that `make_flags` fills. Errors: INVALID_ARGUMENT, also for a wrong number
// of words.
absl::StatusOr<HostsLine> ParseHosts(const std::vector<std::string>& arguments,
                                     config::FlagTable (*make_flags)(HostsLine*), size_t min_words,
                                     size_t max_words) {
  HostsLine line;
  config::FlagTable flags = make_flags(&line);
  if (absl::Status parsed = flags.Parse(arguments); !parsed.ok()) return parsed;
  line.help = flags.help();
  line.words = flags.words();
  if (line.help) return line;
  if (line.words.size() < min_words) return absl::InvalidArgumentError("HOST is missing");
  if (absl::Status words = flags.CheckWordCount(max_words); !words.ok()) return words;
  return line;
}

std::string ShadowText(const Json& instance) {
  if (!instance.contains("shadow")) return "";
  const Json& shadow = instance["shadow"];
  const int64_t told = shadow.value("placementsTold", int64_t{0});
  if (told > 0) {
    return absl::StrCat(" (shadow: ", shadow.value("placements", int64_t{0}), " of ", told,
                        " pods got another node)");
  }
  // If several hosts decide, one host's answers do not determine the node.
  const Json plugins = shadow.value("plugins", Json::object());
  std::vector<std::string> differ;
  for (const auto& [plugin, differences] : plugins.items()) differ.push_back(plugin);
  return absl::StrCat(" (shadow: in ", shadow.value("cycles", int64_t{0}), " cycles ",
                      differ.empty() ? "nothing" : absl::StrJoin(differ, ", "), " differed)");
}

// The pod that the instance was found by.
std::string PodText(const Json& instance) {
  const std::string pod = instance.value("pod", "");
  return pod.empty() ? "" : absl::StrCat("pod ", pod, ": ");
}

std::string WarningText(const Json& instance) {
  const std::string warning = instance.value("warning", "");
  return warning.empty() ? "" : absl::StrCat("; warning: ", warning);
}

}  // namespace

const char kHostsHelp[] =
    R"(outboard hosts: which plugin hosts exist, and which instance of each serves?

Asks a running outboard-shim. An instance is in one of these states:
  serving      the shim schedules pods with it
  standby      ready, while another instance serves
  shadow       answers beside the serving instance; the shim compares the answers
  syncing      receives the state of the cluster
  waiting      waits for other hosts, or for its next session
  draining     finishes its calls
  refused      the shim cannot use its plugins or their configuration
  quarantined  its build failed while it served, or as a shadow

Usage:
  outboard hosts [flags]

Flags:
)" OUTBOARD_SHIM_FLAGS_HELP R"(
  -o, --output FORMAT    table (default) or json (all details, and what would change if an instance served)
  -h, --help             Print this text

Exit codes: 0 shown; 1 the shim cannot be reached; 2 invalid usage.
)";

const char kSwapHelp[] = R"(outboard swap: let another instance of a plugin host serve

By default the instance that started last serves. This command switches among the instances that are ready; see
`outboard hosts`.

Usage:
  outboard swap HOST [INSTANCE] [flags]      default INSTANCE: the newest standby

Flags:
)" OUTBOARD_SHIM_FLAGS_HELP R"(
  -h, --help             Print this text

Exit codes: 0 the instance serves; 1 it cannot serve, with the reason; 2 invalid usage.

Example:
  outboard swap main
)";

const char kRollbackHelp[] =
    R"(outboard rollback: let the previous instance of a plugin host serve again

The shim quarantines the build that served: it uses no instance of this build until a user lifts the quarantine (with
the flag --clear-quarantine). Instances of another build can serve.

Usage:
  outboard rollback HOST [flags]

Flags:
  --clear-quarantine     Do not roll back; lift the quarantine of the host's builds
)" OUTBOARD_SHIM_FLAGS_HELP R"(
  -h, --help             Print this text

Exit codes: 0 done; 1 failed, with the reason; 2 invalid usage.

Example:
  outboard rollback main
)";

config::FlagTable HostsFlags(HostsLine* line) {
  config::FlagTable flags;
  cli::AddShimFlags(&flags, &line->shim);
  flags.Output(&line->json);
  return flags;
}

config::FlagTable SwapFlags(HostsLine* line) {
  config::FlagTable flags;
  cli::AddShimFlags(&flags, &line->shim);
  return flags;
}

config::FlagTable RollbackFlags(HostsLine* line) {
  config::FlagTable flags;
  cli::AddShimFlags(&flags, &line->shim);
  flags.Switch("--clear-quarantine", &line->clear_quarantine);
  flags.Renamed("--forgive", "--clear-quarantine");
  return flags;
}

absl::StatusOr<std::string> HostsTable(const std::string& json) {
  const Json parsed = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!parsed.is_object() || !parsed.contains("instances") || !parsed["instances"].is_array())
    return absl::InternalError("this version does not understand the shim's answer");
  const absl::Time now = http::TimeOf(parsed.value("time", ""));
  std::vector<std::vector<std::string>> rows = {
      {"HOST", "INSTANCE", "STATE", "FOR", "BUILD", "BEHIND", "FAILED", "WHY"}};
  for (const Json& instance : parsed["instances"]) {
    const int64_t behind = instance.value("sentVersion", int64_t{0}) -
                           instance.value("acknowledgedVersion", int64_t{0});
    rows.push_back({instance.value("host", ""), instance.value("instance", ""),
                    absl::StrCat(instance.value("state", ""),
                                 instance.value("heldBack", false) ? " (held back)" : ""),
                    http::Age(now - http::TimeOf(instance.value("since", ""))),
                    instance.value("build", ""), absl::StrCat(behind),
                    absl::StrCat(instance.value("failures", int64_t{0})),
                    absl::StrCat(PodText(instance), instance.value("why", ""), ShadowText(instance),
                                 WarningText(instance))});
  }
  const std::string follower =
      parsed.contains("leader") ? http::FollowerNote(parsed.value("leader", "")) : "";
  return absl::StrCat(
      http::Notice(parsed.value("apiServer", "")),
      follower.empty() ? "" : absl::StrCat(follower, ". The hosts of this one:\n"),
      rows.size() == 1 ? "no plugin host has answered yet\n" : http::AlignedRows(rows));
}

int RunHosts(const std::vector<std::string>& arguments) {
  return cli::RunCommand("hosts", kHostsHelp, ParseHosts(arguments, HostsFlags, 0, 0),
                         [](const HostsLine& line) -> absl::StatusOr<std::string> {
                           const absl::StatusOr<std::string> page =
                               http::GetPage(line.shim, "/hosts", {}, kHostsTimeout);
                           return !page.ok() || line.json ? page : HostsTable(*page);
                         });
}

int RunSwap(const std::vector<std::string>& arguments) {
  return cli::RunCommand(
      "swap", kSwapHelp, ParseHosts(arguments, SwapFlags, 1, 2), [](const HostsLine& line) {
        std::multimap<std::string, std::string> parameters = {{"host", line.words[0]}};
        if (line.words.size() == 2) parameters.emplace("instance", line.words[1]);
        return http::Command(line.shim, "/hosts/swap", parameters, kHostsTimeout);
      });
}

int RunRollback(const std::vector<std::string>& arguments) {
  return cli::RunCommand(
      "rollback", kRollbackHelp, ParseHosts(arguments, RollbackFlags, 1, 1),
      [](const HostsLine& line) {
        return http::Command(line.shim,
                             line.clear_quarantine ? "/hosts/clear-quarantine" : "/hosts/rollback",
                             {{"host", line.words[0]}}, kHostsTimeout);
      });
}

}  // namespace outboard::inspect
