#include "shim/explain/command.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "shim/explain/table.h"
#include "shim/http/client.h"

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
  CommandLine line;
  absl::StatusOr<http::ShimAddress> shim = http::TakeShimFlags(line.shim.server, &arguments);
  if (!shim.ok()) return shim.status();
  line.shim = *std::move(shim);
  std::vector<std::string> words;
  for (size_t i = 0; i < arguments.size(); ++i) {
    std::string flag = arguments[i];
    if (!absl::StartsWith(flag, "-")) {
      words.push_back(flag);
      continue;
    }
    if (flag == "-h" || flag == "--help") {
      line.help = true;
      return line;
    }
    std::string value;
    const size_t equals = flag.find('=');
    if (equals != std::string::npos) {
      value = flag.substr(equals + 1);
      flag.resize(equals);
    }
    if (flag != "--node" && flag != "-o" && flag != "--output")
      return Usage(absl::StrCat("unknown flag ", flag));
    if (equals == std::string::npos) {
      if (i + 1 == arguments.size()) return Usage(absl::StrCat(flag, " needs a value"));
      value = arguments[++i];
    }
    if (flag == "--node") {
      line.node = value;
    } else if (value == "table" || value == "json") {
      line.json = value == "json";
    } else {
      return Usage(absl::StrCat(flag, " must be table or json, not \"", value, "\""));
    }
  }
  if (words.size() == 1) {  // As kubectl takes it: pod/NAME would lack the namespace.
    return Usage("say what: outboard explain pod NAMESPACE/NAME");
  }
  if (words.size() != 2 || words[0] != "pod") return Usage("only \"pod NAMESPACE/NAME\" is known");
  const std::vector<std::string> parts = absl::StrSplit(words[1], '/');
  if (parts.size() != 2 || parts[0].empty() || parts[1].empty())
    return Usage(absl::StrCat("\"", words[1], "\" is not NAMESPACE/NAME"));
  line.pod = words[1];
  return line;
}

int RunExplain(const std::vector<std::string>& arguments) {
  absl::StatusOr<CommandLine> line = ParseExplain(arguments);
  if (!line.ok()) {
    fprintf(stderr, "outboard explain: %s\nTry: outboard explain --help\n",
            std::string(line.status().message()).c_str());
    return 2;
  }
  if (line->help) {
    fputs(kExplainHelp, stdout);
    return 0;
  }
  absl::StatusOr<std::string> answer =
      http::GetPage(line->shim, "/explain", {{"pod", line->pod}}, kTimeout);
  if (answer.ok())
    answer = line->json ? OnlyNode(*answer, line->node) : ToTable(*answer, line->node);
  if (!answer.ok()) {
    fprintf(stderr, "outboard explain: %s\n", std::string(answer.status().message()).c_str());
    return 1;
  }
  fputs(answer->c_str(), stdout);
  return 0;
}

}  // namespace outboard::explain
