#include "shim/simulate/trace/commands.h"

#include <cstdio>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "shim/simulate/trace/records.h"
#include "shim/simulate/trace/scheduler_cluster.h"
#include "shim/simulate/trace/workload.h"

namespace outboard::simulate::trace {
namespace {

constexpr char kGenerateHelp[] =
    R"(outboard generate-workload: make up a GPU cluster and the jobs of some hours on it

Writes a cluster file and a trace for `outboard simulate --cluster FILE --trace FILE`. The same flags give the same files, to the byte.

Training asks for 1 to 32 GPUs, in single pods and gangs; run times are log-normal, 124 s in the middle for one GPU, more for more.
Inference services ask for 1 or 2 GPUs, live for hours, come by day rather than by night, and have priority over training.

Usage:
  outboard generate-workload --cluster FILE --trace FILE [flags]

Flags:
  --cluster FILE         Where nodes are written
  --trace FILE           Where jobs are written
  --nodes N              Default 100
  --gpus-per-node N      Default 8
  --load X               GPU-seconds that jobs ask for, over those that there are in these hours; default 0.9
  --hours X              Jobs arrive during these; default 24
  --training X           Share of training in the load, 0 to 1; default 0.7; the rest is inference
  --small-gangs X        Of training on 2 to 8 GPUs, the share that is gangs of smaller pods; default 0.25
  --checkpoint SECONDS   How often training saves its work; -1: never; default 600
  --declared X           Jobs say how long they run (annotation outboard/run-seconds): X times as long as they do, at least 1, rounded up
                         to seconds; 0: they do not say; default 0
  --scheduler-name NAME  Of all pods; default default-scheduler
  --seed N               Default 1
  -h, --help             This text

Exit codes: 0 written; 1 a file cannot be written; 2 wrong usage.

Example:
  outboard generate-workload --nodes 20 --hours 8 --cluster cluster.yaml --trace trace.jsonl
  outboard simulate --cluster cluster.yaml --trace trace.jsonl --interval 3600
)";

struct GenerateLine {
  WorkloadOptions options;
  std::string cluster_file, trace_file;
  bool help = false;
};

absl::StatusOr<GenerateLine> ParseGenerateLine(const std::vector<std::string>& arguments) {
  GenerateLine line;
  for (size_t i = 0; i < arguments.size(); ++i) {
    std::string flag = arguments[i];
    if (flag == "-h" || flag == "--help") {
      line.help = true;
      return line;
    }
    if (!absl::StartsWith(flag, "--"))
      return absl::InvalidArgumentError(absl::StrCat("unexpected argument \"", flag, "\""));
    std::string value;
    const size_t equals = flag.find('=');
    const bool has_value = equals != std::string::npos;
    if (has_value) {
      value = flag.substr(equals + 1);
      flag.resize(equals);
    }
    WorkloadOptions& options = line.options;
    std::string* const text = flag == "--cluster"          ? &line.cluster_file
                              : flag == "--trace"          ? &line.trace_file
                              : flag == "--scheduler-name" ? &options.scheduler_name
                                                           : nullptr;
    int* const integer = flag == "--nodes"           ? &options.nodes
                         : flag == "--gpus-per-node" ? &options.gpus_per_node
                                                     : nullptr;
    double* const real = flag == "--load"          ? &options.load
                         : flag == "--hours"       ? &options.hours
                         : flag == "--training"    ? &options.training_share
                         : flag == "--small-gangs" ? &options.small_gang_share
                         : flag == "--checkpoint"  ? &options.checkpoint_seconds
                         : flag == "--declared"    ? &options.declared
                                                   : nullptr;
    if (text == nullptr && integer == nullptr && real == nullptr && flag != "--seed")
      return absl::InvalidArgumentError(absl::StrCat("unknown flag ", flag));
    if (!has_value) {
      if (i + 1 == arguments.size())
        return absl::InvalidArgumentError(absl::StrCat(flag, " needs a value"));
      value = arguments[++i];
    }
    bool good = true;
    if (text != nullptr) *text = value;
    if (integer != nullptr) good = absl::SimpleAtoi(value, integer);
    if (real != nullptr) good = absl::SimpleAtod(value, real);
    if (flag == "--seed") good = absl::SimpleAtoi(value, &options.seed);
    if (!good) {
      return absl::InvalidArgumentError(
          absl::StrCat(flag, " must be a number, not \"", value, "\""));
    }
  }
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

absl::StatusOr<std::string> RunTrace(const Trace& trace, const Scene& scene,
                                     const config::Config& config,
                                     const std::vector<std::string>& addresses,
                                     const TraceRun& run) {
  if (!scene.pending.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("pod ", scene.pending.front()->key(),
                     " has no node; beside --trace pods that wait come from the trace"));
  }
  // Any moment does where plugins do not ask for the time of day; this is a Monday, 0:00 UTC.
  const absl::Time begin = absl::FromUnixSeconds(1704067200);
  SchedulerCluster cluster(config, scene, begin, run.spare_attempts);
  for (const Job& job : trace.jobs) {
    if (cluster.HandlesScheduler(job.pod->pod.scheduler_name())) continue;
    return absl::InvalidArgumentError(absl::StrCat("job ", job.key(), " asks for scheduler \"",
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

int RunGenerateWorkload(const std::vector<std::string>& arguments) {
  const absl::StatusOr<GenerateLine> line = ParseGenerateLine(arguments);
  if (!line.ok()) {
    fprintf(stderr, "outboard generate-workload: %s\nTry: outboard generate-workload --help\n",
            std::string(line.status().message()).c_str());
    return 2;
  }
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
