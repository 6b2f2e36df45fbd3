#include "cli/simulate/command.h"

#include <glog/logging.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "cli/command_line.h"
#include "cli/inspect/explain_table.h"
#include "cli/simulate/diff.h"
#include "cli/simulate/explain.h"
#include "cli/simulate/host_process.h"
#include "cli/simulate/simulation.h"
#include "cli/simulate/table.h"
#include "cli/simulate/terminal.h"
#include "shim/config/yaml_reader.h"

namespace outboard::simulate {

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

// Adds a flag with addresses of hosts, which may be repeated.
void AddHosts(const char* name, std::vector<std::string>* out, config::FlagTable* flags) {
  flags->Value(name, "unix:PATH", [=](const std::string& value) {
    out->push_back(value);
    return absl::StartsWith(value, "unix:") && value.size() > 5;
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
  const auto with_pods = [line, &flags](const char* name, const char* what,
                                        std::function<void(const std::string&)> store) {
    flags.Value(name, what, [=](const std::string& value) {
      line->pods_flag = name;
      store(value);
      return !value.empty();
    });
  };
  with_pods("--scheduler-name", "the name of a profile",
            [line](const std::string& value) { line->scheduler_name = value; });
  with_pods("--explain", "NAME or NAMESPACE/NAME",
            [line](const std::string& value) { line->explain = value; });
  with_pods("--diff", "a file", [line](const std::string& value) { line->diff_config = value; });
  AddHosts("--diff-host", &line->diff_hosts, &flags);
  flags.Switch("--until-settled", &line->until_settled);
  flags.Output(&line->json);
  AddHosts("--host", &line->host_addresses, &flags);
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
    line.help_output = absl::c_linear_search(arguments, "output");
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
    if (line.until_settled) line.pods_flag = "--until-settled";
    if (!line.diff_hosts.empty()) line.pods_flag = "--diff-host";
    if (!line.pods_flag.empty())
      return absl::InvalidArgumentError(absl::StrCat(line.pods_flag, " requires --pods"));
    return line;
  }
  if (line.pod_files.empty())
    return absl::InvalidArgumentError("--pods FILE or --trace FILE is required");
  if (!line.trace_flag.empty())
    return absl::InvalidArgumentError(absl::StrCat(line.trace_flag, " requires --trace"));
  if (!line.explain.empty() && line.compares())
    return absl::InvalidArgumentError("--explain and --diff exclude each other");
  return line;
}

namespace {

// Nodes with the same verdict that --explain names.
constexpr size_t kNodesExplained = 20;

// What one simulation runs with.
struct Setup {
  config::Config config;
  std::vector<std::string> addresses;  // empty: start a host
  std::string name;                    // for a comparison
};

// What a simulation gave.
struct Result {
  std::vector<AttemptReport> reports;
  SimulationEnd end;
};

// Runs simulations with the hosts that they need.
class Simulator {
 public:
  Simulator(const CommandLine& line, const SimulationInput& scene) : line_(line), scene_(scene) {}

  // Starts the host, if the setup names none, and calls `run` with the addresses.
  template <typename Run>
  auto WithHosts(const Setup& setup, Run run) -> decltype(run(setup.addresses)) {
    if (!setup.addresses.empty()) return run(setup.addresses);
    absl::StatusOr<std::unique_ptr<HostProcess>> host =
        HostProcess::Start(line_.host_binary, line_.verbosity,
                           line_.verbose ? FLAGS_minloglevel : int{google::GLOG_ERROR});
    if (!host.ok()) return host.status();
    auto result = run({(*host)->address()});
    if (result.ok()) return result;
    if (absl::Status alive = (*host)->CheckAlive(); !alive.ok()) return alive;
    // The address of a host that this command started means little to its user.
    return absl::Status(
        result.status().code(),
        absl::StrReplaceAll(result.status().message(),
                            {{(*host)->address(), "outboard-host, started by this command"}}));
  }

  enum class Keep {
    kEssence,  // what the table shows; a large simulation has millions of verdicts and scores
    kAll,
    kNothing,  // prints the JSON of each report at once
  };
  absl::StatusOr<Result> Run(const Setup& setup, Keep keep) {
    Result result;
    ProgressLine progress(ShowsProgress());
    absl::StatusOr<SimulationEnd> end =
        WithHosts(setup, [&](const std::vector<std::string>& addresses) {
          return Simulate(scene_, setup.config, addresses, {.until_settled = line_.until_settled},
                          [&](AttemptReport report) {
                            if (keep == Keep::kNothing) {
                              puts(ToJsonLine(report).c_str());
                              fflush(stdout);
                              return;
                            }
                            if (keep == Keep::kEssence) {
                              report.filter.clear();
                              report.scores.clear();
                            }
                            result.reports.push_back(std::move(report));
                            progress.Show(absl::StrCat(result.reports.size(), " attempts at ",
                                                       CountOf(scene_.pending.size(), "pod")));
                          });
        });
    if (!end.ok()) return end.status();
    result.end = *std::move(end);
    return result;
  }

 private:
  const CommandLine& line_;
  const SimulationInput& scene_;
};

// Virtual time, as in `time` of the JSON.
std::string SecondsOf(absl::Duration time) {
  return absl::StrCat(absl::ToDoubleSeconds(time), " s");
}

// How a simulation with --until-settled ended.
std::string EndText(const SimulationEnd& end) {
  std::string text = absl::StrCat(end.gave_up ? "Not settled" : "Settled", " after ",
                                  CountOf(end.attempts, "attempt"), " in ", SecondsOf(end.time),
                                  " of virtual time");
  if (!end.restless.empty()) {
    constexpr size_t kNamesShown = 3;
    std::vector<std::string> names = end.restless;
    if (names.size() > kNamesShown) {
      names.resize(kNamesShown);
      names.push_back("…");
    }
    absl::StrAppend(&text,
                    "; still tried again, without success: ", CountOf(end.restless.size(), "pod"),
                    " (", absl::StrJoin(names, ", "), ")");
  }
  return absl::StrCat(text, "\n");
}

absl::StatusOr<config::Config> ReadConfig(const std::string& file) {
  return file.empty() ? config::ParseConfig("", "(defaults)") : config::LoadConfigFile(file);
}

absl::Status CheckSchedulerName(const std::string& name, const config::Config& config) {
  std::vector<std::string> profiles;
  for (const config::ProfileSpec& profile : config.scheduler.profiles)
    profiles.push_back(profile.scheduler_name);
  if (name.empty() || absl::c_linear_search(profiles, name)) return absl::OkStatus();
  const std::string near = config::Nearest(name, profiles);
  return absl::InvalidArgumentError(
      absl::StrCat("--scheduler-name ", name, ": ", config.file, " has no such profile",
                   near.empty() ? absl::StrCat("; profiles: ", absl::StrJoin(profiles, ", "))
                                : absl::StrCat("; did you mean ", near, "?")));
}

// The setups of the command: one, or two to compare.
absl::StatusOr<std::vector<Setup>> ReadSetups(const CommandLine& line) {
  std::vector<Setup> setups;
  const auto add = [&](const std::string& file,
                       const std::vector<std::string>& hosts) -> absl::Status {
    absl::StatusOr<config::Config> config = ReadConfig(file);
    if (!config.ok()) return config.status();
    if (absl::Status known = CheckSchedulerName(line.scheduler_name, *config); !known.ok())
      return known;
    std::string name = config->file;
    if (!line.diff_hosts.empty())
      absl::StrAppend(&name, " on ", hosts.empty() ? "outboard-host" : absl::StrJoin(hosts, ", "));
    setups.push_back({*std::move(config), hosts, std::move(name)});
    return absl::OkStatus();
  };
  if (absl::Status added = add(line.config_file, line.host_addresses); !added.ok()) return added;
  if (!line.compares()) return setups;
  const absl::Status added = add(line.diff_config.empty() ? line.config_file : line.diff_config,
                                 line.diff_hosts.empty() ? line.host_addresses : line.diff_hosts);
  if (!added.ok()) return added;
  return setups;
}

// Which custom resources any of the setups uses.
std::vector<config::CustomResourceRule> CustomResourcesOf(const std::vector<Setup>& setups) {
  std::vector<config::CustomResourceRule> rules;
  for (const Setup& setup : setups) {
    for (const config::CustomResourceRule& rule : setup.config.shim.custom_resources) {
      if (absl::c_none_of(rules,
                          [&](const auto& known) { return known.resource == rule.resource; }))
        rules.push_back(rule);
    }
  }
  return rules;
}

absl::StatusOr<int> Compare(const CommandLine& line, const std::vector<Setup>& setups,
                            const SimulationInput& scene) {
  Simulator simulator(line, scene);
  std::vector<std::vector<PodRow>> rows;
  for (const Setup& setup : setups) {
    absl::StatusOr<Result> result =
        simulator.Run(setup, line.json ? Simulator::Keep::kAll : Simulator::Keep::kEssence);
    if (!result.ok()) {
      return absl::Status(result.status().code(),
                          absl::StrCat(setup.name, ": ", result.status().message()));
    }
    rows.push_back(RowsOf(result->reports));
  }
  const std::vector<PodDifference> differences = DifferencesOf(rows[0], rows[1]);
  if (line.json) {
    for (const PodDifference& difference : differences) puts(ToJsonLine(difference).c_str());
  } else {
    const DiffNames names = {setups[0].name, setups[1].name};
    fputs(ToDiff(differences, rows[0].size(), names, StyleOfOutput()).c_str(), stdout);
  }
  return differences.empty() ? 0 : 1;
}

absl::Status Explain(const CommandLine& line, const Setup& setup, const SimulationInput& scene) {
  const absl::StatusOr<std::string> pod = FindPod(scene, line.explain);
  if (!pod.ok()) return pod.status();
  const absl::StatusOr<Result> result = Simulator(line, scene).Run(setup, Simulator::Keep::kAll);
  if (!result.ok()) return result.status();
  const std::string json = ExplainJson(*pod, result->reports);
  if (line.json) {
    fputs(json.c_str(), stdout);
    return absl::OkStatus();
  }
  const absl::StatusOr<std::string> table =
      inspect::ExplainTable(json, /*node=*/"", kNodesExplained);
  if (!table.ok()) return table.status();
  const Style style = StyleOfOutput();
  for (const absl::string_view row : absl::StrSplit(absl::StripSuffix(*table, "\n"), '\n')) {
    // Aligned with what stands behind `  rejected  `.
    const size_t indent = row.find_first_not_of(' ');
    puts(absl::StrCat(row.substr(0, indent),
                      Wrapped(std::string(row.substr(indent)), indent, 12, style))
             .c_str());
  }
  return absl::OkStatus();
}

absl::Status PlacePods(const CommandLine& line, const Setup& setup, const SimulationInput& scene) {
  const absl::StatusOr<Result> result =
      Simulator(line, scene)
          .Run(setup, line.json ? Simulator::Keep::kNothing : Simulator::Keep::kEssence);
  if (!result.ok()) return result.status();
  if (line.json) return absl::OkStatus();
  fputs(ToTable(RowsOf(result->reports), StyleOfOutput()).c_str(), stdout);
  if (line.until_settled) fputs(EndText(result->end).c_str(), stdout);
  return absl::OkStatus();
}

absl::Status PlayTrace(const CommandLine& line, const Setup& setup, const trace::Trace& jobs,
                       const SimulationInput& scene) {
  const absl::StatusOr<std::string> result =
      Simulator(line, scene).WithHosts(setup, [&](const std::vector<std::string>& addresses) {
        return trace::RunTrace(jobs, scene, setup.config, addresses, line.trace_run);
      });
  if (!result.ok()) return result.status();
  fputs(result->c_str(), stdout);
  return absl::OkStatus();
}

// All setups simulate the same objects, which are read once: as any of the setups reads them.
kube::ReadingOptions ReadingOf(const std::vector<Setup>& setups) {
  kube::ReadingOptions all = setups.front().config.shim.reading.Options();
  for (const Setup& setup : setups) {
    const kube::ReadingOptions its = setup.config.shim.reading.Options();
    all.environment_variables.insert(its.environment_variables.begin(),
                                     its.environment_variables.end());
    all.comparison_operators |= its.comparison_operators;
  }
  return all;
}

// Returns the exit code.
absl::StatusOr<int> Run(const CommandLine& line) {
  // Ignores the configurations' own warnings: they concern a real cluster.
  absl::StatusOr<std::vector<Setup>> setups = ReadSetups(line);
  if (!setups.ok()) return setups.status();
  kube::SetReading(ReadingOf(*setups));
  std::vector<std::string> warnings;
  absl::StatusOr<SimulationInput> scene = ReadScene(
      line.cluster_files, line.pod_files, CustomResourcesOf(*setups), line.strict, &warnings);
  absl::StatusOr<trace::Trace> jobs = trace::ReadTraces(
      line.trace_files, scene.ok() ? scene->priority_classes : manifests::PriorityClasses());
  if (jobs.ok()) warnings.insert(warnings.end(), jobs->warnings.begin(), jobs->warnings.end());
  for (const std::string& warning : warnings) fprintf(stderr, "warning: %s\n", warning.c_str());
  if (!scene.ok()) return scene.status();
  if (!jobs.ok()) return jobs.status();
  if (!line.scheduler_name.empty()) SetSchedulerName(line.scheduler_name, &*scene);

  if (line.compares()) return Compare(line, *setups, *scene);
  const Setup& setup = setups->front();
  absl::Status done = !line.trace_files.empty() ? PlayTrace(line, setup, *jobs, *scene)
                      : !line.explain.empty()   ? Explain(line, setup, *scene)
                                                : PlacePods(line, setup, *scene);
  if (!done.ok()) return done;
  return 0;
}

}  // namespace

int RunSimulate(const std::vector<std::string>& arguments) {
  absl::StatusOr<CommandLine> line = ParseCommandLine(arguments);
  if (!line.ok()) return cli::UsageError("simulate", line.status());
  if (line->help) {
    fputs(line->help_trace    ? trace::kTraceHelp
          : line->help_output ? kOutputHelp
                              : kSimulateHelp,
          stdout);
    return 0;
  }
  FLAGS_v = line->verbosity;
  // The reports have all errors.
  if (!line->verbose) FLAGS_minloglevel = std::max(FLAGS_minloglevel, int{google::GLOG_FATAL});
  const absl::StatusOr<int> code = Run(*line);
  if (code.ok()) return *code;
  fprintf(stderr, "outboard simulate: %s\n", std::string(code.status().message()).c_str());
  const bool is_input =
      absl::IsInvalidArgument(code.status()) || absl::IsNotFound(code.status()) || line->compares();
  return is_input ? 2 : 1;
}

}  // namespace outboard::simulate
