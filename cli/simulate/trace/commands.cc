#include "cli/simulate/trace/commands.h"

#include <cstdio>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "cli/command_line.h"
#include "cli/simulate/trace/records.h"
#include "cli/simulate/trace/scheduler_cluster.h"

namespace outboard::simulate::trace {
namespace {

absl::StatusOr<GenerateLine> ParseGenerateLine(const std::vector<std::string>& arguments) {
  GenerateLine line;
  config::FlagTable flags = GenerateFlags(&line);
  if (absl::Status parsed = flags.Parse(arguments); !parsed.ok()) return parsed;
  line.help = flags.help();
  if (line.help) return line;
  if (absl::Status words = flags.CheckWordCount(0); !words.ok()) return words;
  if (line.cluster_file.empty()) return absl::InvalidArgumentError("--cluster FILE is required");
  if (line.trace_file.empty()) return absl::InvalidArgumentError("--trace FILE is required");
  if (absl::Status good = CheckWorkloadOptions(line.options); !good.ok()) return good;
  return line;
}

bool WriteFile(const std::string& file, const std::string& text) {
  std::ofstream stream(file);
  stream << text;
  stream.close();
  if (stream) return true;
  fprintf(stderr, "outboard generate-workload: %s: cannot be written\n", file.c_str());
  return false;
}

}  // namespace

absl::StatusOr<std::string> RunTrace(const Trace& trace, const SimulationInput& scene,
                                     const config::Config& config,
                                     const std::vector<std::string>& addresses,
                                     const TraceRun& run) {
  if (!scene.pending.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("pod ", scene.pending.front()->key(),
                     " has no node; with --trace, pending pods come from the trace"));
  }
  // Matters only to plugins that use the time of day. A Monday, 0:00 UTC.
  const absl::Time begin = absl::FromUnixSeconds(1704067200);
  SchedulerCluster cluster(config, scene, begin, run.equivalence_cache);
  for (const Job& job : trace.jobs) {
    if (cluster.HandlesScheduler(job.pod->pod.scheduler_name())) continue;
    return absl::InvalidArgumentError(absl::StrCat("job ", job.key(), " names scheduler \"",
                                                   job.pod->pod.scheduler_name(),
                                                   "\", which no profile has"));
  }
  Amounts capacity;
  for (const kube::NodePtr& node : scene.nodes) {
    const Amounts its = AmountsOf(node->node);
    capacity.cpu_millis += its.cpu_millis;
    capacity.gpus += its.gpus;
  }
  if (absl::Status open = cluster.Open(scene, addresses, begin); !open.ok()) return open;
  Records records(trace.jobs.size(), capacity, begin);
  Replay replay(trace.jobs, scene.running, &cluster, &records, begin);
  if (absl::Status ran = replay.Run(run.replay); !ran.ok()) return ran;
  return run.json ? ToJsonLines(trace.jobs, records, run.window)
                  : ToTable(trace.jobs, records, run.window);
}

const char kGenerateHelp[] =
    R"(outboard generate-workload: generate a GPU cluster and some hours of jobs for it

Writes a cluster file and a trace for `outboard simulate --cluster FILE --trace FILE`. The same flags give the same
files, byte for byte.

Training jobs request 1 to 32 GPUs, in single pods and in gangs. Run times are log-normal: the median is 124 s for one
GPU and longer for more GPUs. Inference services request 1 or 2 GPUs, run for hours, arrive mostly during the day, and
have a higher priority than training.

Usage:
  outboard generate-workload --cluster FILE --trace FILE [flags]

Flags:
  --cluster FILE         Output: the nodes
  --trace FILE           Output: the jobs
  --nodes N              Number of nodes (default: 100)
  --gpus-per-node N      GPUs of a node (default: 8)
  --load X               Requested GPU-seconds, as a multiple of the cluster's GPU-seconds in these hours (default: 0.9)
  --hours X              Jobs arrive during these hours (default: 24)
  --training X           Training's share of the load, 0 to 1 (default: 0.7); the rest is inference
  --small-gangs X        Share of gangs of smaller pods in training on 2 to 8 GPUs (default: 0.25)
  --checkpoint SECONDS   Interval at which training saves its work; -1: never (default: 600)
  --declared X           Jobs declare X times their run time (annotation outboard/run-seconds); X is at least 1, the
                         result is rounded up to seconds; 0: jobs declare nothing (default: 0)
  --scheduler-name NAME  spec.schedulerName of all pods (default: default-scheduler)
  --seed N               Seed of the random numbers (default: 1)
  -h, --help             Print this text

Exit codes: 0 written; 1 a file cannot be written; 2 invalid usage.

Example:
  outboard generate-workload --nodes 20 --hours 8 --cluster cluster.yaml --trace trace.jsonl
  outboard simulate --cluster cluster.yaml --trace trace.jsonl --interval 3600
)";

config::FlagTable GenerateFlags(GenerateLine* line) {
  WorkloadOptions& options = line->options;
  config::FlagTable flags;
  flags.Text("--cluster", &line->cluster_file);
  flags.Text("--trace", &line->trace_file);
  flags.Text("--scheduler-name", &options.scheduler_name);
  flags.Number("--nodes", "a number", &options.nodes);
  flags.Number("--gpus-per-node", "a number", &options.gpus_per_node);
  flags.Number("--load", "a number", &options.load);
  flags.Number("--hours", "a number", &options.hours);
  flags.Number("--training", "a number", &options.training_share);
  flags.Number("--small-gangs", "a number", &options.small_gang_share);
  flags.Number("--checkpoint", "a number", &options.checkpoint_seconds);
  flags.Number("--declared", "a number", &options.declared);
  flags.Number("--seed", "a number", &options.seed);
  return flags;
}

int RunGenerateWorkload(const std::vector<std::string>& arguments) {
  const absl::StatusOr<GenerateLine> line = ParseGenerateLine(arguments);
  if (!line.ok()) return cli::UsageError("generate-workload", line.status());
  if (line->help) {
    fputs(kGenerateHelp, stdout);
    return 0;
  }
  const Workload workload = MakeWorkload(line->options);
  return WriteFile(line->cluster_file, workload.cluster_yaml) &&
                 WriteFile(line->trace_file, workload.trace)
             ? 0
             : 1;
}

}  // namespace outboard::simulate::trace
