#include "shim/host_report/command.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "shim/http/client.h"
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

struct Line {
  http::ShimAddress shim;
  bool json = false, help = false, forgive = false;
  std::vector<std::string> words;
};

absl::StatusOr<Line> Parse(std::vector<std::string> arguments,
                           const std::vector<std::string>& flags, size_t min_words,
                           size_t max_words) {
  Line line;
  absl::StatusOr<http::ShimAddress> shim = http::TakeShimFlags(line.shim.server, &arguments);
  if (!shim.ok()) return shim.status();
  line.shim = *std::move(shim);
  for (size_t i = 0; i < arguments.size(); ++i) {
    std::string flag = arguments[i];
    if (!absl::StartsWith(flag, "-")) {
      line.words.push_back(flag);
      continue;
    }
    if (flag == "-h" || flag == "--help") {
      line.help = true;
      return line;
    }
    const size_t equals = flag.find('=');
    std::string value;
    if (equals != std::string::npos) {
      value = flag.substr(equals + 1);
      flag.resize(equals);
    }
    if (flag == "--output") flag = "-o";
    if (std::find(flags.begin(), flags.end(), flag) == flags.end())
      return absl::InvalidArgumentError(absl::StrCat("unknown flag ", flag));
    if (flag == "--forgive") {
      line.forgive = true;
      continue;
    }
    if (equals == std::string::npos) {
      if (i + 1 == arguments.size())
        return absl::InvalidArgumentError(absl::StrCat(flag, " needs a value"));
      value = arguments[++i];
    }
    if (value == "table" || value == "json") {
      line.json = value == "json";
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat(flag, " must be table or json, not \"", value, "\""));
    }
  }
  if (line.words.size() < min_words) return absl::InvalidArgumentError("name a host");
  if (line.words.size() > max_words) {
    return absl::InvalidArgumentError(
        absl::StrCat("one word too many: \"", line.words[max_words], "\""));
  }
  return line;
}

// Runs what `act` does with the command line.
template <typename Act>
int Run(const char* name, const char* help, const absl::StatusOr<Line>& line, Act act) {
  if (!line.ok()) {
    fprintf(stderr, "outboard %s: %s\nTry: outboard %s --help\n", name,
            std::string(line.status().message()).c_str(), name);
    return 2;
  }
  if (line->help) {
    fputs(help, stdout);
    return 0;
  }
  const absl::StatusOr<std::string> answer = act(*line);
  if (!answer.ok()) {
    fprintf(stderr, "outboard %s: %s\n", name, std::string(answer.status().message()).c_str());
    return 1;
  }
  fputs(answer->c_str(), stdout);
  return 0;
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
  return Run("hosts", kHostsHelp, Parse(arguments, {"-o"}, 0, 0),
             [](const Line& line) -> absl::StatusOr<std::string> {
               absl::StatusOr<std::string> page = http::GetPage(line.shim, "/hosts", {}, kTimeout);
               if (!page.ok() || line.json) return page;
               return ToTable(*page);
             });
}

int RunSwap(const std::vector<std::string>& arguments) {
  return Run("swap", kSwapHelp, Parse(arguments, {}, 1, 2), [](const Line& line) {
    std::multimap<std::string, std::string> parameters = {{"host", line.words[0]}};
    if (line.words.size() == 2) parameters.emplace("instance", line.words[1]);
    return http::Command(line.shim, "/hosts/swap", parameters, kTimeout);
  });
}

int RunRollback(const std::vector<std::string>& arguments) {
  return Run("rollback", kRollbackHelp, Parse(arguments, {"--forgive"}, 1, 1),
             [](const Line& line) {
               return http::Command(line.shim, line.forgive ? "/hosts/forgive" : "/hosts/rollback",
                                    {{"host", line.words[0]}}, kTimeout);
             });
}

}  // namespace outboard::host_report
