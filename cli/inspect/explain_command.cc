#include "cli/inspect/explain_command.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "cli/command_line.h"
#include "cli/inspect/explain_node.h"
#include "cli/inspect/explain_table.h"

namespace outboard::inspect {
namespace {

// The shim takes some seconds to write a report about 20,000 nodes.
constexpr absl::Duration kExplainTimeout = absl::Seconds(60);

}  // namespace

const char kExplainHelp[] =
    R"(outboard explain: why does this pod have its node, or none? What is known of this node?

A pod: shows the last attempts at it, node by node: which plugin rejected the node and why, and the weighted scores.
Asks a running outboard-shim, which keeps the last three attempts of each pod, in at most 64 MiB.

A node: shows what plugins know of its GPUs, network and price, who published it, and what is unknown. Reads the node,
its ResourceSlices and its NodeResourceTopology from the API server, as kubectl would; or from manifests, without a
cluster.

Usage:
  outboard explain [pod] NAMESPACE/NAME [flags]
  outboard explain node NAME [--kubeconfig FILE]
  outboard explain node [NAME] -f FILE

Flags:
)" OUTBOARD_SHIM_FLAGS_HELP R"(
  --node NAME            Show only this node
  -f, --filename FILE    Of a node: a file or directory with its manifest, or - for standard input; may be repeated
  --price-list FILE      Of a node: also a price list, as of CostOptimized
  --kubeconfig FILE      Of a node: how to reach the API server (default: the first file in $KUBECONFIG, else
                         ~/.kube/config)
  --context NAME         Of a node: the context of that file (default: its current-context)
  --host-binary PATH     Of a node: the plugin host that answers (default: outboard-host beside this program, else on
                         PATH)
  -o, --output FORMAT    table (default; one line for all nodes with the same reason) or json (every node)
  -h, --help             Print this text

Attempts are on record where they were made: a replica that does not lead names the leader.

Exit codes: 0 shown; 1 no attempt at the pod is on record, the node does not exist, or the shim or the API server cannot
be reached; 2 invalid usage.

Examples:
  outboard explain default/trainer-0 --node gpu-7
  outboard explain node gpu-7
  kubectl get node gpu-7 -o yaml | outboard explain node -f -
)";

config::FlagTable ExplainFlags(ExplainLine* line) {
  config::FlagTable flags;
  cli::AddShimFlags(&flags, &line->shim);
  flags.Text("--node", &line->node);
  flags.Texts("-f,--filename", &line->files);
  flags.Text("--price-list", &line->price_list);
  flags.Text("--kubeconfig", &line->cluster.kubeconfig);
  flags.Text("--context", &line->cluster.context);
  flags.Text("--host-binary", &line->host_binary);
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
  if (!words.empty() && (words[0] == "node" || words[0] == "nodes" || words[0] == "no")) {
    line.of_node = true;
    if (words.size() > 1) line.node = words[1];
    if (absl::Status count = flags.CheckWordCount(2); !count.ok()) return count;
    if (line.files.empty() && line.node.empty())
      return absl::InvalidArgumentError(
          "explain node needs the NAME of a node of the cluster, or -f FILE with manifests");
    const bool names_cluster = !line.cluster.kubeconfig.empty() || !line.cluster.context.empty();
    if (!line.files.empty() && names_cluster)
      return absl::InvalidArgumentError(
          "--filename reads files in place of the cluster of --kubeconfig and --context");
    return line;
  }
  if (!line.files.empty() || !line.host_binary.empty() || !line.price_list.empty() ||
      !line.cluster.kubeconfig.empty() || !line.cluster.context.empty())
    return absl::InvalidArgumentError(
        "--filename, --price-list, --kubeconfig, --context and --host-binary are for outboard "
        "explain node");
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
        if (line.of_node) {
          return ExplainNode(
              {line.node, line.files, line.price_list, line.cluster, line.host_binary, line.json});
        }
        const absl::StatusOr<std::string> page =
            http::GetPage(line.shim, "/explain", {{"pod", line.pod}}, kExplainTimeout);
        if (!page.ok()) return page;
        return line.json ? OnlyNode(*page, line.node) : ExplainTable(*page, line.node);
      });
}

}  // namespace outboard::inspect
