#include "cli/simulate/command.h"

#include <glog/logging.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "cli/command_line.h"
#include "cli/simulate/host_process.h"
#include "cli/simulate/simulation.h"
#include "cli/simulate/table.h"

namespace outboard::simulate {

const char kSimulateHelp[] = R"(outboard simulate: where would these pods go, and why?

Schedules pods from manifests on nodes from manifests. Uses the scheduler's own queue and scheduling cycle, and a plugin
host over a Unix socket. Needs no cluster. Waits at Permit run on virtual time.

With --trace, simulates hours or days of a cluster: jobs arrive, run, end and are preempted on a virtual clock that jumps
from event to event, also for plugins. Prints how long jobs waited, what was in use, and what was lost.
`outboard generate-workload` generates traces.

Usage:
  outboard simulate --cluster FILE... --pods FILE... [flags]
  outboard simulate --cluster FILE... --trace FILE... [flags]

Flags:
  --cluster FILE...      Nodes, running pods (with spec.nodeName) and the other kinds below, in YAML or JSON; lists and
                         several documents are allowed. FILE may be a directory (its *.yaml, *.yml and *.json) or -
                         (standard input)
  --pods FILE...         Pods to schedule; queued in this order, then by priority. FILE as for --cluster
  --strict               Unknown fields in manifests are errors, not warnings
  --trace FILE...        Jobs with arrival and run times; `outboard simulate --help trace` describes the format
  --from SECONDS, --to SECONDS
                         With --trace: limits the summary to jobs that arrive between these times, and to the use of
                         the cluster between them (default: from 0 to the end)
  --until SECONDS        With --trace: ends the simulation at this time; pods wait until then (default: ten minutes after
                         the last event, if pods wait)
  --most-waiting N       With --trace: ends the simulation once more than N pods wait, because they arrive faster than
                         they can run, or block each other
  --equivalence-cache    With --trace: skips attempts at pods that are equivalent to a pod which has just found no node,
                         until that pod finds one. Several times as fast if many pods wait
  --interval SECONDS     With --trace: also prints the use of the cluster for each interval of this length
  --config FILE          KubeSchedulerConfiguration with profiles and plugin arguments (default: kube-scheduler's
                         defaults)
  -o, --output FORMAT    table (default) or json: one object per line, printed when a pod's first attempt ends; with
                         --trace one per job, then one per interval, then the summary
  --host ADDRESS         Use the plugin host at unix:PATH (default: start one). May be repeated: each plugin runs on the
                         first host that serves it, as with several hosts in a ShimConfiguration
  --host-binary PATH     The plugin host to start (default: outboard-host beside this program, else on PATH)
  -v, --v, --verbose [LEVEL]
                         Show the log on standard error, at LEVEL 0 to 10 (default: 0); 4 shows every score term.
                         Without this flag only errors are logged
  -h, --help             Print this text

Kinds that are read: Pod, Node, Namespace, PriorityClass, Service, ReplicationController, ReplicaSet, StatefulSet,
PodDisruptionBudget, PersistentVolume, PersistentVolumeClaim, StorageClass, CSINode, CSIDriver, CSIStorageCapacity,
VolumeAttachment, DeviceClass; for plugins also ResourceClaim, ResourceSlice, PodGroup and custom resources that
customResources of the configuration name. Other kinds of Kubernetes are skipped with a warning. No pods are created from
Deployments, Jobs and other workloads: give Pods.

Exit codes: 0 simulated, with any result for the pods; 1 the simulation failed; 2 invalid usage or input.

Example:
  outboard simulate --cluster cluster.yaml --pods pods.yaml -o json
  kubectl get nodes,pods -A -o yaml | outboard simulate --cluster - --pods mine.yaml
  outboard simulate --cluster cluster.yaml --trace trace.jsonl --interval 3600
)";

namespace {

// Adds a flag in seconds that only --trace has.
void AddSeconds(const char* name, absl::Duration* out, CommandLine* line,
                config::FlagTable* flags) {
  flags->Value(name, "a number of seconds", [=](const std::string& value) {
    double number = 0;
    line->trace_flag = name;
    if (!absl::SimpleAtod(value, &number) || !(number >= 0 && number <= 1e9)) return false;
    *out = absl::Seconds(number);
    return true;
  });
}

}  // namespace

config::FlagTable SimulateFlags(CommandLine* line) {
  trace::TraceRun& run = line->trace_run;
  config::FlagTable flags;
  flags.List("--cluster", &line->cluster_files);
  flags.List("--pods", &line->pod_files);
  flags.Switch("--strict", &line->strict);
  flags.List("--trace", &line->trace_files);
  AddSeconds("--from", &run.window.from, line, &flags);
  AddSeconds("--to", &run.window.to, line, &flags);
  AddSeconds("--until", &run.replay.until, line, &flags);
  AddSeconds("--interval", &run.window.interval, line, &flags);
  flags.Value("--most-waiting", "a number of pods", [line](const std::string& value) {
    line->trace_flag = "--most-waiting";
    return absl::SimpleAtoi(value, &line->trace_run.replay.most_waiting);
  });
  flags.Switch("--equivalence-cache", &run.equivalence_cache);
  flags.Renamed("--spare-attempts", "--equivalence-cache");
  flags.Text("--config", &line->config_file);
  flags.Output(&line->json);
  flags.Texts("--host", &line->host_addresses);
  flags.Text("--host-binary", &line->host_binary);
  flags.OptionalValue("-v,--v,--verbose", "a number from 0 to 10",
                      [line](const std::string& value) {
                        line->verbose = true;
                        return value.empty() || (absl::SimpleAtoi(value, &line->verbosity) &&
                                                 line->verbosity >= 0 && line->verbosity <= 10);
                      });
  return flags;
}

absl::StatusOr<CommandLine> ParseCommandLine(const std::vector<std::string>& arguments) {
  CommandLine line;
  config::FlagTable flags = SimulateFlags(&line);
  if (absl::Status parsed = flags.Parse(arguments); !parsed.ok()) return parsed;
  line.help = flags.help();
  if (line.help) {
    line.help_trace = absl::c_linear_search(arguments, "trace");
    return line;
  }
  if (absl::Status words = flags.CheckWordCount(0); !words.ok()) return words;
  if (line.trace_run.equivalence_cache) line.trace_flag = "--equivalence-cache";
  if (line.cluster_files.empty()) return absl::InvalidArgumentError("--cluster FILE is required");
  line.trace_run.json = line.json;
  // With an explicit end, pods wait until then.
  if (line.trace_run.replay.until != absl::InfiniteDuration())
    line.trace_run.replay.patience = absl::InfiniteDuration();
  if (!line.trace_files.empty()) {
    if (!line.pod_files.empty())
      return absl::InvalidArgumentError("--pods and --trace exclude each other");
    return line;
  }
  if (line.pod_files.empty())
    return absl::InvalidArgumentError("--pods FILE or --trace FILE is required");
  if (!line.trace_flag.empty())
    return absl::InvalidArgumentError(absl::StrCat(line.trace_flag, " requires --trace"));
  return line;
}

int RunSimulate(const std::vector<std::string>& arguments) {
  absl::StatusOr<CommandLine> line = ParseCommandLine(arguments);
  if (!line.ok()) return cli::UsageError("simulate", line.status());
  if (line->help) {
    fputs(line->help_trace ? trace::kTraceHelp : kSimulateHelp, stdout);
    return 0;
  }
  FLAGS_v = line->verbosity;
  if (!line->verbose) FLAGS_minloglevel = std::max(FLAGS_minloglevel, int{google::GLOG_ERROR});
  const auto fail = [](const absl::Status& status) {
    fprintf(stderr, "outboard simulate: %s\n", std::string(status.message()).c_str());
    return absl::IsInvalidArgument(status) || absl::IsNotFound(status) ? 2 : 1;
  };
  absl::StatusOr<config::Config> config = line->config_file.empty()
                                              ? config::ParseConfig("", "(defaults)")
                                              : config::LoadConfigFile(line->config_file);
  if (!config.ok()) return fail(config.status());
  // Ignores the configuration's own warnings: they concern a real cluster.
  std::vector<std::string> warnings;
  absl::StatusOr<SimulationInput> scene = ReadScene(
      line->cluster_files, line->pod_files, config->shim.custom_resources, line->strict, &warnings);
  absl::StatusOr<trace::Trace> jobs = trace::ReadTraces(
      line->trace_files, scene.ok() ? scene->priority_classes : manifests::PriorityClasses());
  if (jobs.ok()) warnings.insert(warnings.end(), jobs->warnings.begin(), jobs->warnings.end());
  for (const std::string& warning : warnings) fprintf(stderr, "warning: %s\n", warning.c_str());
  if (!scene.ok()) return fail(scene.status());
  if (!jobs.ok()) return fail(jobs.status());

  std::unique_ptr<HostProcess> host;
  std::vector<std::string> addresses = line->host_addresses;
  if (addresses.empty()) {
    absl::StatusOr<std::unique_ptr<HostProcess>> started =
        HostProcess::Start(line->host_binary, line->verbosity, FLAGS_minloglevel);
    if (!started.ok()) return fail(started.status());
    host = *std::move(started);
    addresses = {host->address()};
  }
  const auto fail_with_host = [&](const absl::Status& status) {
    if (host != nullptr) {
      if (absl::Status alive = host->CheckAlive(); !alive.ok()) fail(alive);
    }
    return fail(status);
  };
  if (!line->trace_files.empty()) {
    const absl::StatusOr<std::string> result =
        trace::RunTrace(*jobs, *scene, *config, addresses, line->trace_run);
    if (!result.ok()) return fail_with_host(result.status());
    fputs(result->c_str(), stdout);
    return 0;
  }
  std::vector<PodReport> reports;
  const absl::Status simulated = Simulate(*scene, *config, addresses, [&](const PodReport& report) {
    if (!line->json) {
      reports.push_back(report);
      return;
    }
    puts(ToJsonLine(report).c_str());
    fflush(stdout);
  });
  if (!simulated.ok()) return fail_with_host(simulated);
  if (!line->json) fputs(ToTable(reports).c_str(), stdout);
  return 0;
}

}  // namespace outboard::simulate
