#include "shim/simulate/command.h"

#include <glog/logging.h>

#include <cstdio>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "shim/simulate/host_process.h"
#include "shim/simulate/simulation.h"
#include "shim/simulate/table.h"

namespace outboard::simulate {

const char kSimulateHelp[] = R"(outboard simulate: where would these pods go, and why?

Schedules pods from manifests on nodes from manifests, with the scheduler's own queue and cycle and a plugin host over a Unix
socket. Needs no cluster. Waits at Permit run on virtual time.

With --trace, hours or days of a cluster: jobs come, run, end and are preempted on a virtual clock that jumps from one event to the next,
plugins included. Prints how long jobs waited, what was in use and what was lost. `outboard generate-workload` makes traces up.

Usage:
  outboard simulate --cluster FILE... --pods FILE... [flags]
  outboard simulate --cluster FILE... --trace FILE... [flags]

Flags:
  --cluster FILE...      Nodes, running pods (with spec.nodeName), namespaces, services, controllers, budgets, volumes and their classes;
                         YAML or JSON, lists and several documents too
  --pods FILE...         Pods to schedule; queued in this order, then by priority
  --trace FILE...        Jobs with their arrivals and run times; `--help trace` describes the format
  --from SECONDS, --to SECONDS
                         With --trace: the summary is about jobs that arrive and what is in use between these; default: from 0 to the end
  --until SECONDS        With --trace: ends there, whatever still runs; pods wait until then (default: ten minutes after the last event, where
                         pods wait)
  --most-waiting N       With --trace: ends once more pods than these wait: they come faster than they can run, or hold each other up
  --spare-attempts       With --trace: pods that are like one which has just found no node are not tried, and go on when it does; several times as
                         fast where many wait
  --interval SECONDS     With --trace: also what is in use in each stretch so long
  --config FILE          KubeSchedulerConfiguration with profiles and plugin arguments (default: kube-scheduler's defaults)
  -o, --output FORMAT    table (default) or json: one object a line, printed when a pod's first attempt ends; with --trace one a job, then one
                         a stretch, then the summary
  --host ADDRESS         Use the plugin host that listens at unix:PATH (default: start one). Several times: each plugin runs on the first that
                         serves it, as with several hosts in a ShimConfiguration
  --host-binary PATH     The plugin host to start (default: outboard-host beside this program, else on PATH)
  -v, --v LEVEL          Log level, 0 to 10; 4 shows every score term (on standard error)
  -h, --help             This text

Exit codes: 0 simulated, whatever became of the pods; 1 the simulation failed; 2 wrong usage or input.

Example:
  outboard simulate --cluster cluster.yaml --pods pods.yaml -o json
  outboard simulate --cluster cluster.yaml --trace trace.jsonl --interval 3600
)";

namespace {

// What a flag of --trace sets; null: it is none.
absl::Duration* SecondsOf(const std::string& flag, trace::TraceRun* run) {
  return flag == "--from"       ? &run->window.from
         : flag == "--to"       ? &run->window.to
         : flag == "--until"    ? &run->replay.until
         : flag == "--interval" ? &run->window.interval
                                : nullptr;
}

}  // namespace

absl::StatusOr<CommandLine> ParseCommandLine(const std::vector<std::string>& arguments) {
  CommandLine line;
  std::vector<std::string>* files = nullptr;
  std::string trace_flag;
  for (size_t i = 0; i < arguments.size(); ++i) {
    std::string flag = arguments[i];
    if (!absl::StartsWith(flag, "-") || flag == "-") {
      if (files == nullptr)
        return absl::InvalidArgumentError(absl::StrCat("unexpected argument \"", flag, "\""));
      files->push_back(flag);
      continue;
    }
    std::string value;
    bool has_value = false;
    if (const size_t equals = flag.find('='); equals != std::string::npos) {
      value = flag.substr(equals + 1);
      flag.resize(equals);
      has_value = true;
    }
    if (flag == "-h" || flag == "--help") {
      line.help = true;
      line.help_trace = i + 1 < arguments.size() && arguments[i + 1] == "trace";
      return line;
    }
    files = flag == "--cluster" ? &line.cluster_files
            : flag == "--pods"  ? &line.pod_files
            : flag == "--trace" ? &line.trace_files
                                : nullptr;
    if (files != nullptr) {
      if (has_value) files->push_back(value);
      continue;
    }
    if (flag == "--spare-attempts") {
      if (has_value) return absl::InvalidArgumentError(absl::StrCat(flag, " has no value"));
      trace_flag = flag;
      line.trace_run.spare_attempts = true;
      continue;
    }
    absl::Duration* const seconds = SecondsOf(flag, &line.trace_run);
    const bool known = seconds != nullptr || flag == "--most-waiting" || flag == "--config" ||
                       flag == "-o" || flag == "--output" || flag == "--host" ||
                       flag == "--host-binary" || flag == "-v" || flag == "--v";
    if (!known) return absl::InvalidArgumentError(absl::StrCat("unknown flag ", flag));
    if (!has_value) {
      if (i + 1 == arguments.size())
        return absl::InvalidArgumentError(absl::StrCat(flag, " needs a value"));
      value = arguments[++i];
    }
    if (seconds != nullptr) {
      // Beside --pods they would be without effect.
      trace_flag = flag;
      double number = 0;
      if (!absl::SimpleAtod(value, &number) || !(number >= 0 && number <= 1e9)) {
        return absl::InvalidArgumentError(
            absl::StrCat(flag, " must be a number of seconds, not \"", value, "\""));
      }
      *seconds = absl::Seconds(number);
    }
    if (flag == "--most-waiting") {
      trace_flag = flag;
      if (!absl::SimpleAtoi(value, &line.trace_run.replay.most_waiting)) {
        return absl::InvalidArgumentError(
            absl::StrCat(flag, " must be a number of pods, not \"", value, "\""));
      }
    }
    if (flag == "--config") line.config_file = value;
    if (flag == "--host") line.host_addresses.push_back(value);
    if (flag == "--host-binary") line.host_binary = value;
    if (flag == "-o" || flag == "--output") {
      if (value != "table" && value != "json") {
        return absl::InvalidArgumentError(
            absl::StrCat(flag, " must be table or json, not \"", value, "\""));
      }
      line.output = value == "json" ? Output::kJson : Output::kTable;
    }
    if ((flag == "-v" || flag == "--v") &&
        (!absl::SimpleAtoi(value, &line.verbosity) || line.verbosity < 0 || line.verbosity > 10)) {
      return absl::InvalidArgumentError(
          absl::StrCat(flag, " must be a number from 0 to 10, not \"", value, "\""));
    }
  }
  if (line.cluster_files.empty()) return absl::InvalidArgumentError("--cluster FILE is required");
  line.trace_run.json = line.output == Output::kJson;
  // Whoever says when it ends wants pods to wait until then.
  if (line.trace_run.replay.until != absl::InfiniteDuration())
    line.trace_run.replay.patience = absl::InfiniteDuration();
  if (!line.trace_files.empty()) {
    if (!line.pod_files.empty())
      return absl::InvalidArgumentError("--pods cannot be there beside --trace");
    return line;
  }
  if (line.pod_files.empty())
    return absl::InvalidArgumentError("--pods FILE or --trace FILE is required");
  if (!trace_flag.empty())
    return absl::InvalidArgumentError(absl::StrCat(trace_flag, " is only for --trace"));
  return line;
}

int RunSimulate(const std::vector<std::string>& arguments) {
  absl::StatusOr<CommandLine> line = ParseCommandLine(arguments);
  if (!line.ok()) {
    fprintf(stderr, "outboard simulate: %s\nTry: outboard simulate --help\n",
            std::string(line.status().message()).c_str());
    return 2;
  }
  if (line->help) {
    fputs(line->help_trace ? trace::kTraceHelp : kSimulateHelp, stdout);
    return 0;
  }
  FLAGS_v = line->verbosity;
  const auto fail = [](const absl::Status& status) {
    fprintf(stderr, "outboard simulate: %s\n", std::string(status.message()).c_str());
    return absl::IsInvalidArgument(status) || absl::IsNotFound(status) ? 2 : 1;
  };
  absl::StatusOr<config::Config> config = line->config_file.empty()
                                              ? config::ParseConfig("", "(defaults)")
                                              : config::LoadConfigFile(line->config_file);
  if (!config.ok()) return fail(config.status());
  // The configuration's own warnings are about running on a cluster.
  std::vector<std::string> warnings;
  absl::StatusOr<Scene> scene =
      ReadScene(line->cluster_files, line->pod_files, config->shim.custom_resources, &warnings);
  absl::StatusOr<trace::Trace> jobs = trace::ReadTraces(line->trace_files);
  if (jobs.ok()) warnings.insert(warnings.end(), jobs->warnings.begin(), jobs->warnings.end());
  for (const std::string& warning : warnings) fprintf(stderr, "warning: %s\n", warning.c_str());
  if (!scene.ok()) return fail(scene.status());
  if (!jobs.ok()) return fail(jobs.status());

  std::unique_ptr<HostProcess> host;
  std::vector<std::string> addresses = line->host_addresses;
  if (addresses.empty()) {
    absl::StatusOr<std::unique_ptr<HostProcess>> started =
        HostProcess::Start(line->host_binary, line->verbosity);
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
    const absl::StatusOr<std::string> told =
        trace::RunTrace(*jobs, *scene, *config, addresses, line->trace_run);
    if (!told.ok()) return fail_with_host(told.status());
    fputs(told->c_str(), stdout);
    return 0;
  }
  std::vector<PodReport> reports;
  const absl::Status simulated = Simulate(*scene, *config, addresses, [&](const PodReport& report) {
    if (line->output == Output::kTable) {
      reports.push_back(report);
      return;
    }
    puts(ToJsonLine(report).c_str());
    fflush(stdout);
  });
  if (!simulated.ok()) return fail_with_host(simulated);
  if (line->output == Output::kTable) fputs(ToTable(reports).c_str(), stdout);
  return 0;
}

}  // namespace outboard::simulate
