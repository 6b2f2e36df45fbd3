#include "shim/explain/command.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "shim/explain/table.h"
#include "shim/http/client.h"
#include "shim/http/command_line.h"

namespace outboard::explain {
namespace {

// A report at 20,000 nodes takes some seconds to be written.
constexpr absl::Duration kTimeout = absl::Seconds(60);

absl::Status Usage(std::string message) { return absl::InvalidArgumentError(std::move(message)); }

}  // namespace

const char kExplainHelp[] = R"(outboard explain: why did this pod go there, or nowhere?

Shows what the last attempts at a pod saw, node by node: who rejected it and why, and the weighted scores. Asks a running
outboard-shim, which keeps the last three attempts of each pod within 64 MiB.

Usage:
  outboard explain pod NAMESPACE/NAME [flags]

Flags:
  --server ADDRESS       HOST:PORT of the shim's servingAddress (default: 127.0.0.1:10269), or https://HOST:PORT of its secureServing
  --token-file FILE      With https://: a bearer token whose owner may see the page
  --certificate-authority FILE, --insecure-skip-tls-verify
                         With https://: who has signed the shim's certificate (default: the system's), or not to ask
  --node NAME            This node only
  -o, --output FORMAT    table (default; nodes with the same reason in one line) or json (every node)
  -h, --help             This text

Exit codes: 0 explained; 1 nothing is on record of the pod, or the shim cannot be reached; 2 wrong usage.

Example:
  outboard explain pod default/trainer-0 --node gpu-7
)";

absl::StatusOr<CommandLine> ParseExplain(std::vector<std::string> arguments) {
  const auto parsed = http::ParseCommandLine({.flags = {"--node"}}, std::move(arguments));
  if (!parsed.ok()) return parsed.status();
  CommandLine line;
  line.shim = parsed->shim;
  line.json = parsed->json;
  line.help = parsed->help;
  if (line.help) return line;
  if (const auto node = parsed->flags.find("--node"); node != parsed->flags.end())
    line.node = node->second;
  const std::vector<std::string>& words = parsed->words;
  if (words.size() == 1) {  // As kubectl takes it: pod/NAME would lack the namespace.
    return Usage("say what: outboard explain pod NAMESPACE/NAME");
  }
  if (words.size() != 2 || words[0] != "pod") return Usage("only \"pod NAMESPACE/NAME\" is known");
  const absl::Status is_pod = http::CheckPodName(words[1]);
  if (!is_pod.ok()) return is_pod;
  line.pod = words[1];
  return line;
}

int RunExplain(const std::vector<std::string>& arguments) {
  return http::RunCommand("explain", kExplainHelp, ParseExplain(arguments),
                          [](const CommandLine& line) -> absl::StatusOr<std::string> {
                            const absl::StatusOr<std::string> page =
                                http::GetPage(line.shim, "/explain", {{"pod", line.pod}}, kTimeout);
                            if (!page.ok()) return page;
                            return line.json ? OnlyNode(*page, line.node)
                                             : ToTable(*page, line.node);
                          });
}

}  // namespace outboard::explain
