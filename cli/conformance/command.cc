#include "cli/conformance/command.h"

#include <errno.h>
#include <string.h>

#include <algorithm>
#include <cstdio>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cli/command_line.h"
#include "cli/conformance/report.h"

namespace outboard::conformance {
namespace {

void Print(const Result& result) {
  fputs(TableLine(result).c_str(), stdout);
  fflush(stdout);
}

bool AnyTls(const config::HostTls& tls) {
  return !tls.ca_file.empty() || !tls.cert_file.empty() || !tls.key_file.empty();
}

bool AllTls(const config::HostTls& tls) {
  return !tls.ca_file.empty() && !tls.cert_file.empty() && !tls.key_file.empty();
}

}  // namespace

const char kConformanceHelp[] =
    R"(outboard conformance: does a plugin host keep the contract?

Acts as a shim for a running host in any language: configures its plugins, sends generated clusters, asks about pods, and
checks every answer against proto/outboard/v1beta1. It cannot know what a plugin should decide. It checks that answers
are complete, consistent, in time and reproducible, that errors are those of the contract, and that no request ends the
host.

Usage:
  outboard conformance --host unix:PATH [flags]
  outboard conformance --host HOST:PORT --tls-ca FILE --tls-cert FILE --tls-key FILE [flags]

Flags:
  --host ADDRESS         The host's address
  --tls-ca FILE          With HOST:PORT: the authority that signed the host's certificate, PEM
  --tls-cert FILE        With HOST:PORT: the client certificate for the host, PEM
  --tls-key FILE         With HOST:PORT: its private key, PEM
  --tls-server-name NAME The name in the host's certificate, if it differs from the address
  --plugin NAME          Configure only this plugin; may be repeated (default: all plugins of the host)
  --args JSON            Arguments of the preceding --plugin. Plugins that need arguments and have none are skipped
  --node-label KEY=VALUE A label for all nodes of the clusters, if plugins reject nodes without it; may be repeated
  --only PATTERN         Run only the cases SERVICE/CASE that match, with * and ?; for example CycleService/*
  --list                 List the cases
  --junit FILE           Also write the results to FILE
  --seed N               Seed of the randomly malformed requests (default: 1)
  --nodes N              Nodes of the large cluster (default: 20000)
  --minutes N            Limit for all cases; what is left then fails (default: 10)
  -h, --help             Print this text

The command does not harm the host: it leaves only sessions of its own, and a host drops sessions. It skips cases of
services that the host does not serve, with the reason. A failure shows the rule, quoted from the contract, and the field.

Exit codes: 0 all cases passed or were skipped; 1 a case failed; 2 invalid usage, or the host cannot be reached or
configured.

Example:
  outboard-host --listen unix:/tmp/host.sock &
  outboard conformance --host unix:/tmp/host.sock
)";

config::FlagTable ConformanceFlags(CommandLine* line) {
  Options& options = line->options;
  config::FlagTable flags;
  flags.Text("--host", &options.endpoint.address);
  flags.Text("--tls-ca", &line->tls.ca_file);
  flags.Text("--tls-cert", &line->tls.cert_file);
  flags.Text("--tls-key", &line->tls.key_file);
  flags.Text("--tls-server-name", &line->tls.server_name);
  flags.Texts("--plugin", &options.plugins);
  flags.Value("--args", "JSON", [line](const std::string& value) {
    Options& options = line->options;
    line->args_before_plugin |= options.plugins.empty();
    if (!options.plugins.empty()) options.args[options.plugins.back()] = value;
    return true;
  });
  flags.Value("--node-label", "KEY=VALUE", [line](const std::string& value) {
    const std::pair<std::string, std::string> label =
        absl::StrSplit(value, absl::MaxSplits('=', 1));
    line->options.node_labels.insert(label);
    return !label.first.empty();
  });
  flags.Text("--only", &options.only);
  flags.Switch("--list", &line->list);
  flags.Text("--junit", &line->junit);
  flags.Number("--seed", "a number", &options.seed);
  flags.Number("--nodes", "a number from 1 to 100000", &options.nodes, 1, 100000);
  flags.Number("--minutes", "a number from 1 to 600", &line->minutes, 1, 600);
  return flags;
}

absl::StatusOr<CommandLine> ParseCommandLine(const std::vector<std::string>& arguments) {
  CommandLine line;
  config::FlagTable flags = ConformanceFlags(&line);
  if (absl::Status parsed = flags.Parse(arguments); !parsed.ok()) return parsed;
  line.help = flags.help();
  if (line.help) return line;
  if (absl::Status words = flags.CheckWordCount(0); !words.ok()) return words;
  if (line.args_before_plugin)
    return absl::InvalidArgumentError("--args must come after the --plugin that it is for");
  hosts::Endpoint& endpoint = line.options.endpoint;
  endpoint.host = "host";
  if (AnyTls(line.tls)) endpoint.tls = line.tls;
  if (line.list) return line;
  if (endpoint.address.empty())
    return absl::InvalidArgumentError("--host is required, for example --host unix:host.sock");
  if (absl::Status known = cli::CheckHostAddress("--host", endpoint.address); !known.ok())
    return known;
  line.options.time_limit = absl::Minutes(line.minutes);
  const bool is_unix = absl::StartsWith(endpoint.address, "unix:");
  if (is_unix && AnyTls(line.tls))
    return absl::InvalidArgumentError(
        "--tls-ca, --tls-cert and --tls-key are for --host HOST:PORT only");
  if (!is_unix && !AllTls(line.tls)) {
    return absl::InvalidArgumentError(
        "--host HOST:PORT requires --tls-ca, --tls-cert and --tls-key: the network mode is mutual "
        "TLS only");
  }
  return line;
}

int RunConformance(const std::vector<std::string>& arguments) {
  const absl::StatusOr<CommandLine> line = ParseCommandLine(arguments);
  if (!line.ok()) return cli::UsageError("conformance", line.status());
  if (line->help) {
    fputs(kConformanceHelp, stdout);
    return 0;
  }
  const std::vector<Case> cases = AllCases();
  if (line->list) {
    for (const Case& one : cases) printf("%s/%s: %s\n", one.service, one.name, one.what);
    return 0;
  }
  const bool any =
      line->options.only.empty() || std::any_of(cases.begin(), cases.end(), [&](const Case& one) {
        return Matches(line->options.only, absl::StrCat(one.service, "/", one.name));
      });
  if (!any) {
    fprintf(stderr, "outboard conformance: --only: no case matches \"%s\"; see --list\n",
            line->options.only.c_str());
    return 2;
  }
  std::ofstream junit;
  if (!line->junit.empty()) {
    junit.open(line->junit, std::ios::binary);
    if (!junit) {
      fprintf(stderr, "outboard conformance: --junit %s: %s\n", line->junit.c_str(),
              strerror(errno));
      return 2;
    }
  }
  const absl::StatusOr<std::unique_ptr<Kit>> kit = Kit::Connect(line->options);
  if (!kit.ok()) {
    fprintf(stderr, "outboard conformance: %s\n", std::string(kit.status().message()).c_str());
    return 2;
  }
  printf("host %s, instance %s, build %s, seed %lu\n", line->options.endpoint.address.c_str(),
         (*kit)->identity().instance().c_str(), (*kit)->identity().build().c_str(),
         static_cast<unsigned long>(line->options.seed));
  fputs(TableHeader().c_str(), stdout);
  const std::vector<Result> results = RunCases(**kit, cases, Print);
  printf("%s\n", Summary(results).c_str());
  if (!line->junit.empty()) {
    junit << JUnit(results, line->options.endpoint.address, line->options.seed);
    junit.close();
    if (!junit) {
      fprintf(stderr, "outboard conformance: cannot write %s\n", line->junit.c_str());
      return 2;
    }
  }
  return std::any_of(
             results.begin(), results.end(),
             [](const Result& result) { return result.outcome == Result::Outcome::kFailed; })
             ? 1
             : 0;
}

}  // namespace outboard::conformance
