#include "cli/inspect/explain_command.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "cli/command_line.h"
#include "cli/inspect/explain_table.h"

namespace outboard::inspect {
namespace {

// The shim takes some seconds to write a report about 20,000 nodes.
constexpr absl::Duration kExplainTimeout = absl::Seconds(60);

}  // namespace

const char kExplainHelp[] = R"(outboard explain: why does this pod have its node, or none?

Shows the last attempts at a pod, node by node: which plugin rejected the node and why, and the weighted scores.
Asks a running outboard-shim, which keeps the last three attempts of each pod, in at most 64 MiB.

Usage:
  outboard explain [pod] NAMESPACE/NAME [flags]

Flags:
)" OUTBOARD_SHIM_FLAGS_HELP R"(
  --node NAME            Show only this node
  -o, --output FORMAT    table (default; one line for all nodes with the same reason) or json (every node)
  -h, --help             Print this text

Exit codes: 0 shown; 1 no attempt at the pod is on record, or the shim cannot be reached; 2 invalid usage.

Example:
  outboard explain default/trainer-0 --node gpu-7
)";

config::FlagTable ExplainFlags(ExplainLine* line) {
  config::FlagTable flags;
  cli::AddShimFlags(&flags, &line->shim);
  flags.Text("--node", &line->node);
  flags.Output(&line->json);
  return flags;
}

absl::StatusOr<ExplainLine> ParseExplain(const std::vector<std::string>& arguments) {
  ExplainLine line;
  config::FlagTable flags = ExplainFlags(&line);
  if (absl::Status parsed = flags.Parse(arguments); !parsed.ok()) return parsed;
  line.help = flags.help();
  if (line.help) return line;
  std::vector<std::string> words = flags.words();
  // As kubectl calls it.
  if (!words.empty() && (words[0] == "pod" || words[0] == "pods" || words[0] == "po"))
    words.erase(words.begin());
  if (words.empty()) return absl::InvalidArgumentError("the pod is missing, as NAMESPACE/NAME");
  if (words.size() > 1)
    return absl::InvalidArgumentError(
        absl::StrCat("unexpected argument \"", words[1], "\"; give one pod, as NAMESPACE/NAME"));
  if (absl::Status is_pod = cli::CheckPodName(words[0]); !is_pod.ok()) return is_pod;
  line.pod = words[0];
  return line;
}

int RunExplain(const std::vector<std::string>& arguments) {
  return cli::RunCommand(
      "explain", kExplainHelp, ParseExplain(arguments),
      [](const ExplainLine& line) -> absl::StatusOr<std::string> {
        const absl::StatusOr<std::string> page =
            http::GetPage(line.shim, "/explain", {{"pod", line.pod}}, kExplainTimeout);
        if (!page.ok()) return page;
        return line.json ? OnlyNode(*page, line.node) : ExplainTable(*page, line.node);
      });
}

}  // namespace outboard::inspect
