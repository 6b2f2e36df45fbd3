#include "shim/host_report/command.h"

#include <map>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "shim/http/client.h"
#include "shim/http/command_line.h"
#include "shim/http/page_text.h"

namespace outboard::host_report {
namespace {

using Json = nlohmann::ordered_json;

constexpr absl::Duration kTimeout = absl::Seconds(30);

constexpr char kHostsHelp[] =
    R"(outboard hosts: which plugin hosts are there, and which instance of each serves?

Asks a running outboard-shim. States: serving (pods are scheduled by it), standby (ready, while another one serves), shadow (answers
beside the serving one, and is compared with it), syncing (its mirror is being filled), waiting (for other hosts), draining, refused
(its plugins or their configuration are of no use), quarantined (its build failed while it served, or in the shadow).

Usage:
  outboard hosts [flags]

Flags:
  --server ADDRESS       HOST:PORT of the shim's servingAddress (default: 127.0.0.1:10269), or https://HOST:PORT of its secureServing
  --token-file FILE      With https://: a bearer token whose owner may see the page
  --certificate-authority FILE, --insecure-skip-tls-verify
                         With https://: who has signed the shim's certificate (default: the system's), or not to ask
  -o, --output FORMAT    table (default) or json (all that is known, and what would change by an instance's serving)
  -h, --help             This text

Exit codes: 0 shown; 1 the shim cannot be reached; 2 wrong usage.
)";

constexpr char kSwapHelp[] = R"(outboard swap: have another instance of a plugin host serve

By itself the instance that started last serves. This is for going back and forth among those that are ready (`outboard hosts`).

Usage:
  outboard swap HOST [INSTANCE] [flags]      without INSTANCE: the newest on standby

Flags:
  --server ADDRESS       HOST:PORT of the shim's servingAddress (default: 127.0.0.1:10269), or https://HOST:PORT of its secureServing
  --token-file FILE      With https://: a bearer token whose owner may see the page
  --certificate-authority FILE, --insecure-skip-tls-verify
                         With https://: who has signed the shim's certificate (default: the system's), or not to ask
  -h, --help             This text

Exit codes: 0 it serves; 1 it cannot, with the reason; 2 wrong usage.

Example:
  outboard swap main
)";

constexpr char kRollbackHelp[] = R"(outboard rollback: have a plugin host's predecessor serve again

The build that served is quarantined: instances of it are not used until a person allows it (--forgive) or another build comes.

Usage:
  outboard rollback HOST [flags]

Flags:
  --forgive              Only lift the quarantine of the host's builds
  --server ADDRESS       HOST:PORT of the shim's servingAddress (default: 127.0.0.1:10269), or https://HOST:PORT of its secureServing
  --token-file FILE      With https://: a bearer token whose owner may see the page
  --certificate-authority FILE, --insecure-skip-tls-verify
                         With https://: who has signed the shim's certificate (default: the system's), or not to ask
  -h, --help             This text

Exit codes: 0 done; 1 it cannot be done, with the reason; 2 wrong usage.

Example:
  outboard rollback main
)";

// Errors: INVALID_ARGUMENT, too, if there are not as many words as there have to be.
absl::StatusOr<http::CommandLine> Parse(std::vector<std::string> arguments,
                                        const http::CommandShape& shape, size_t min_words,
                                        size_t max_words) {
  absl::StatusOr<http::CommandLine> line = http::ParseCommandLine(shape, std::move(arguments));
  if (!line.ok() || line->help) return line;
  if (line->words.size() < min_words) return absl::InvalidArgumentError("name a host");
  if (line->words.size() > max_words) {
    return absl::InvalidArgumentError(
        absl::StrCat("one word too many: \"", line->words[max_words], "\""));
  }
  return line;
}

std::string ShadowText(const Json& instance) {
  if (!instance.contains("shadow")) return "";
  const Json& shadow = instance["shadow"];
  const int64_t told = shadow.value("placementsTold", int64_t{0});
  if (told > 0) {
    return absl::StrCat(" (shadow: ", shadow.value("placements", int64_t{0}), " of ", told,
                        " pods went elsewhere)");
  }
  // Where other hosts decide, too, places cannot be told.
  const Json plugins = shadow.value("plugins", Json::object());
  std::vector<std::string> differ;
  for (const auto& [plugin, differences] : plugins.items()) differ.push_back(plugin);
  return absl::StrCat(" (shadow: in ", shadow.value("cycles", int64_t{0}), " cycles ",
                      differ.empty() ? "nothing" : absl::StrJoin(differ, ", "), " differed)");
}

std::string WarningText(const Json& instance) {
  const std::string warning = instance.value("warning", "");
  return warning.empty() ? "" : absl::StrCat("; it warns: ", warning);
}

}  // namespace

absl::StatusOr<std::string> ToTable(const std::string& json) {
  const Json parsed = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!parsed.is_object() || !parsed.contains("instances") || !parsed["instances"].is_array())
    return absl::InternalError("the shim's answer is not what this version understands");
  const absl::Time now = http::TimeOf(parsed.value("time", ""));
  std::vector<std::vector<std::string>> rows = {
      {"HOST", "INSTANCE", "STATE", "FOR", "BUILD", "BEHIND", "FAILED", "WHY"}};
  for (const Json& instance : parsed["instances"]) {
    const int64_t behind = instance.value("sentVersion", int64_t{0}) -
                           instance.value("acknowledgedVersion", int64_t{0});
    rows.push_back(
        {instance.value("host", ""), instance.value("instance", ""),
         absl::StrCat(instance.value("state", ""),
                      instance.value("heldBack", false) ? " (held back)" : ""),
         http::Age(now - http::TimeOf(instance.value("since", ""))), instance.value("build", ""),
         absl::StrCat(behind), absl::StrCat(instance.value("failures", int64_t{0})),
         absl::StrCat(instance.value("why", ""), ShadowText(instance), WarningText(instance))});
  }
  if (rows.size() == 1) return std::string("no plugin host has answered yet\n");
  return http::AlignedRows(rows);
}

int RunHosts(const std::vector<std::string>& arguments) {
  return http::RunCommand("hosts", kHostsHelp, Parse(arguments, {}, 0, 0),
                          [](const http::CommandLine& line) -> absl::StatusOr<std::string> {
                            const absl::StatusOr<std::string> page =
                                http::GetPage(line.shim, "/hosts", {}, kTimeout);
                            return !page.ok() || line.json ? page : ToTable(*page);
                          });
}

int RunSwap(const std::vector<std::string>& arguments) {
  return http::RunCommand(
      "swap", kSwapHelp, Parse(arguments, {.takes_output = false}, 1, 2),
      [](const http::CommandLine& line) {
        std::multimap<std::string, std::string> parameters = {{"host", line.words[0]}};
        if (line.words.size() == 2) parameters.emplace("instance", line.words[1]);
        return http::Command(line.shim, "/hosts/swap", parameters, kTimeout);
      });
}

int RunRollback(const std::vector<std::string>& arguments) {
  return http::RunCommand(
      "rollback", kRollbackHelp,
      Parse(arguments, {.switches = {"--forgive"}, .takes_output = false}, 1, 1),
      [](const http::CommandLine& line) {
        const bool forgive = line.flags.count("--forgive") > 0;
        return http::Command(line.shim, forgive ? "/hosts/forgive" : "/hosts/rollback",
                             {{"host", line.words[0]}}, kTimeout);
      });
}

}  // namespace outboard::host_report
