#include "shim/conformance/command.h"

#include <algorithm>
#include <cstdio>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "shim/conformance/report.h"

namespace outboard::conformance {
namespace {

constexpr char kHelp[] =
    R"(outboard conformance: does a plugin host keep the contract?

Plays a shim to a running host, in any language: configures its plugins, sends clusters that it made up, asks about pods, and checks
what proto/outboard/v1alpha1 promises of every answer. It cannot know what a plugin should decide; it knows that answers are complete,
consistent, in time and the same each time, that errors are those of the contract, and that nothing it sends ends the host.

Usage:
  outboard conformance --host unix:PATH [flags]
  outboard conformance --host HOST:PORT --tls-ca FILE --tls-cert FILE --tls-key FILE [flags]

Flags:
  --host ADDRESS         Where the host listens
  --tls-ca FILE          The authority that signed the host's certificate, PEM; with HOST:PORT
  --tls-cert FILE        The certificate to show the host, PEM
  --tls-key FILE         Its private key, PEM
  --tls-server-name NAME The name in the host's certificate, if it is not that of the address
  --plugin NAME          Configure only this plugin; may be repeated (default: all that the host serves)
  --args JSON            Arguments of the --plugin before it; a plugin that cannot be configured without is left out
  --node-label KEY=VALUE A label for all nodes of the clusters, where plugins reject nodes without; may be repeated
  --only PATTERN         Only cases SERVICE/CASE that match, with * and ?; `CycleService/*`
  --list                 Say which cases there are
  --junit FILE           Write the results there, too
  --seed N               Of the requests that are made wrong at random (default: 1)
  --nodes N              Of the large cluster (default: 20000)
  -h, --help             This text

The host is not harmed: sessions of its own are all that the command leaves behind, and a host forgets them. Cases of services that the
host does not serve are skipped, with the reason. What failed is told with the rule, quoted from the contract, and the field.

Exit codes: 0 all cases passed or were skipped; 1 a case failed; 2 wrong usage, or the host cannot be reached or configured.

Example:
  outboard-host --listen unix:/tmp/host.sock &
  outboard conformance --host unix:/tmp/host.sock
)";

void Print(const Result& result) {
  fputs(TableLine(result).c_str(), stdout);
  fflush(stdout);
}

// Sets what a flag says; false: there is no such flag.
absl::StatusOr<bool> SetFlag(const std::string& flag, const std::string& value, CommandLine* line) {
  Options& options = line->options;
  config::HostTls& tls =
      options.endpoint.tls.has_value() ? *options.endpoint.tls : options.endpoint.tls.emplace();
  if (flag == "--host") {
    options.endpoint.address = value;
  } else if (flag == "--tls-ca") {
    tls.ca_file = value;
  } else if (flag == "--tls-cert") {
    tls.cert_file = value;
  } else if (flag == "--tls-key") {
    tls.key_file = value;
  } else if (flag == "--tls-server-name") {
    tls.server_name = value;
  } else if (flag == "--plugin") {
    options.plugins.push_back(value);
  } else if (flag == "--args") {
    if (options.plugins.empty())
      return absl::InvalidArgumentError("--args belongs after the --plugin that it is for");
    options.args[options.plugins.back()] = value;
  } else if (flag == "--node-label") {
    const std::pair<std::string, std::string> label =
        absl::StrSplit(value, absl::MaxSplits('=', 1));
    if (label.first.empty()) return absl::InvalidArgumentError("--node-label must be KEY=VALUE");
    options.node_labels.insert(label);
  } else if (flag == "--only") {
    options.only = value;
  } else if (flag == "--junit") {
    line->junit = value;
  } else if (flag == "--seed") {
    if (!absl::SimpleAtoi(value, &options.seed))
      return absl::InvalidArgumentError(absl::StrCat("\"", value, "\" is no seed"));
  } else if (flag == "--nodes") {
    if (!absl::SimpleAtoi(value, &options.nodes) || options.nodes < 1 || options.nodes > 100000)
      return absl::InvalidArgumentError("--nodes must be from 1 to 100000");
  } else {
    return false;
  }
  return true;
}

}  // namespace

absl::StatusOr<CommandLine> ParseCommandLine(const std::vector<std::string>& arguments) {
  CommandLine line;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const size_t equals = arguments[i].find('=');
    const std::string flag = arguments[i].substr(0, equals);
    if (flag == "-h" || flag == "--help") {
      line.help = true;
      return line;
    }
    if (flag == "--list") {
      line.list = true;
      continue;
    }
    std::string value;
    if (equals != std::string::npos) {
      value = arguments[i].substr(equals + 1);
    } else if (i + 1 < arguments.size()) {
      value = arguments[i + 1];
    }
    const absl::StatusOr<bool> known = SetFlag(flag, value, &line);
    if (!known.ok()) return known.status();
    if (!*known) return absl::InvalidArgumentError(absl::StrCat("unknown argument ", arguments[i]));
    if (equals == std::string::npos && ++i == arguments.size())
      return absl::InvalidArgumentError(absl::StrCat(flag, " needs a value"));
  }
  hosts::Endpoint& endpoint = line.options.endpoint;
  endpoint.host = "host";
  const bool is_unix = absl::StartsWith(endpoint.address, "unix:");
  const bool any_tls = endpoint.tls.has_value() &&
                       !(endpoint.tls->ca_file.empty() && endpoint.tls->cert_file.empty() &&
                         endpoint.tls->key_file.empty());
  if (!any_tls) endpoint.tls.reset();
  if (line.list) return line;
  if (endpoint.address.empty())
    return absl::InvalidArgumentError("--host is required, for example --host unix:host.sock");
  if (is_unix && any_tls)
    return absl::InvalidArgumentError("TLS files are for --host HOST:PORT only");
  if (!is_unix && (!any_tls || endpoint.tls->ca_file.empty() || endpoint.tls->cert_file.empty() ||
                   endpoint.tls->key_file.empty())) {
    return absl::InvalidArgumentError(
        "--host HOST:PORT needs --tls-ca, --tls-cert and --tls-key: the network mode is mutual TLS "
        "only");
  }
  return line;
}

int RunConformance(const std::vector<std::string>& arguments) {
  const absl::StatusOr<CommandLine> line = ParseCommandLine(arguments);
  if (!line.ok()) {
    fprintf(stderr, "outboard conformance: %s\nTry: outboard conformance --help\n",
            std::string(line.status().message()).c_str());
    return 2;
  }
  if (line->help) {
    fputs(kHelp, stdout);
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
    fprintf(stderr, "outboard conformance: no case matches \"%s\"; see --list\n",
            line->options.only.c_str());
    return 2;
  }
  const absl::StatusOr<std::unique_ptr<Kit>> kit = Kit::Connect(line->options);
  if (!kit.ok()) {
    fprintf(stderr, "outboard conformance: %s\n", std::string(kit.status().message()).c_str());
    return 2;
  }
  printf("host %s, instance %s, build %s, seed %lu\n", line->options.endpoint.address.c_str(),
         (*kit)->info().host_instance().c_str(), (*kit)->info().build().c_str(),
         static_cast<unsigned long>(line->options.seed));
  fputs(TableHeader().c_str(), stdout);
  const std::vector<Result> results = RunCases(**kit, cases, Print);
  printf("%s\n", Summary(results).c_str());
  if (!line->junit.empty()) {
    std::ofstream file(line->junit, std::ios::binary);
    file << JUnit(results, line->options.endpoint.address, line->options.seed);
    file.close();
    if (!file) {
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
