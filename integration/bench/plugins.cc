// `./dev bench plugins`: the cost of one more profile's plugins, filter and score, beside the
// default profile.
//
// The configuration's first profile is measured. The default profile scores the same share of nodes
// and has the same queueSort plugin. Three arrangements, each with its own host on a
// Unix socket and the same nodes and pods:
//   alone     only the default profile
//   beside    the default profile, while the host also serves the measured one: pods of a profile
//             pay nothing for plugins of another
//   together  the measured profile
// Pods go one after the other through the shim's own queue, cycle and gRPC. The arrangements take
// turns every few pods, so that other load on the machine affects all three equally.
#include <glog/logging.h>
#include <sched.h>

#include <algorithm>
#include <cstdio>
#include <deque>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "cli/simulate/host_process.h"
#include "integration/bench/gpu_cluster.h"
#include "integration/bench/scheduling_thread.h"
#include "shim/config/config.h"

namespace outboard::bench {
namespace {

constexpr char kDefault[] = "default-scheduler";
// Consecutive pods of a kind for one arrangement.
constexpr int kTurn = 10;
// Pods of each kind; then the oldest is deleted, so that there is room for any number.
constexpr size_t kRunAtOnce = 200;
// The requirement for these plugins, and the noise between two equal arrangements.
constexpr double kHighestRatio = 1.5;
constexpr double kHighestRatioBeside = 1.1;

struct Options {
  std::string config = "deploy/examples/ai-scheduler.yaml";
  int nodes = 5000;
  int pods = 100;
  int runs = 5;
  std::string only;  // only kinds of pods whose names contain this
  bool check = false;
};

// One of the three arrangements.
struct Arrangement {
  std::string name;
  std::string scheduler;  // of its pods
  std::unique_ptr<simulate::HostProcess> host;
  std::unique_ptr<SchedulingThread> thread;
  std::vector<std::vector<double>> micros;   // by kind of pod
  std::vector<std::deque<std::string>> run;  // their uids, the oldest first
};

absl::Status SetUp(const config::Config& base, const std::vector<config::ProfileSpec>& profiles,
                   const Options& options, Arrangement* arrangement) {
  auto host = simulate::HostProcess::Start("", 0);
  if (!host.ok()) return host.status();
  arrangement->host = *std::move(host);
  config::Config config = base;
  config.scheduler.profiles = profiles;
  arrangement->thread = std::make_unique<SchedulingThread>(
      config, std::vector<std::string>{arrangement->host->address()});
  for (int i = 0; i < options.nodes; ++i) arrangement->thread->AddNode(GpuClusterNode(i));
  for (int i = 0; i < options.nodes; ++i) {
    for (const kube::PodPtr& pod : RunningOn(i)) arrangement->thread->AddPod(pod);
  }
  arrangement->micros.resize(PodKinds().size());
  arrangement->run.resize(PodKinds().size());
  return arrangement->thread->Start();
}

bool Wanted(size_t kind, const Options& options) {
  return absl::StrContains(PodKinds()[kind].name, options.only);
}

// Pins this process and its later children to one of its allowed cores; does nothing with a single
// core.
void StayOnCore(int which) {
  static const cpu_set_t allowed = [] {
    cpu_set_t set;
    CPU_ZERO(&set);
    sched_getaffinity(0, sizeof(set), &set);
    return set;
  }();
  if (CPU_COUNT(&allowed) < 2) return;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed) || which-- > 0) continue;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    sched_setaffinity(0, sizeof(set), &set);
    return;
  }
}

// Microseconds by kind of pod and arrangement.
using Run = std::vector<std::vector<std::vector<double>>>;

// The measured profile and the default one.
struct Profiles {
  config::Config base;
  config::ProfileSpec plain;
  config::ProfileSpec all;
};

// Starts its own hosts: the location of their memory and their core differ from run to run.
absl::StatusOr<Run> Measure(const Profiles& profiles, const Options& options) {
  std::vector<Arrangement> arrangements(3);
  arrangements[0].name = "alone";
  arrangements[1].name = "beside";
  arrangements[2].name = "together";
  const std::vector<config::ProfileSpec> served[] = {
      {profiles.plain}, {profiles.plain, profiles.all}, {profiles.all}};
  // Hosts on one core and this process on another: sharing a core makes a sixth of a call's
  // difference, and the kernel's choice differs from host to host.
  StayOnCore(1);
  for (size_t i = 0; i < arrangements.size(); ++i) {
    arrangements[i].scheduler = served[i].size() == 1 ? served[i][0].scheduler_name : kDefault;
    absl::Status status = SetUp(profiles.base, served[i], options, &arrangements[i]);
    if (!status.ok()) return status;
  }
  StayOnCore(0);
  const int warm_up = options.pods / 5 + kTurn;
  for (int begin = 0; begin < warm_up + options.pods; begin += kTurn) {
    for (size_t kind = 0; kind < PodKinds().size(); ++kind) {
      if (!Wanted(kind, options)) continue;
      for (size_t turn = 0; turn < arrangements.size(); ++turn) {
        // A different arrangement first each time.
        Arrangement& arrangement =
            arrangements[(turn + static_cast<size_t>(begin / kTurn)) % arrangements.size()];
        for (int i = begin; i < begin + kTurn; ++i) {
          const kube::PodPtr pod = ArrivingPod(kind, i, arrangement.scheduler);
          const absl::StatusOr<double> took = arrangement.thread->Schedule(pod);
          if (!took.ok()) {
            return absl::Status(took.status().code(),
                                absl::StrCat(arrangement.name, ": ", took.status().message()));
          }
          std::deque<std::string>& run = arrangement.run[kind];
          run.push_back(pod->uid());
          if (run.size() > kRunAtOnce) {
            arrangement.thread->RemovePod(run.front());
            run.pop_front();
          }
          if (begin >= warm_up) arrangement.micros[kind].push_back(*took);
        }
      }
    }
  }
  Run result(PodKinds().size());
  for (size_t kind = 0; kind < PodKinds().size(); ++kind) {
    for (const Arrangement& arrangement : arrangements)
      result[kind].push_back(arrangement.micros[kind]);
  }
  return result;
}

struct Row {
  std::string name;
  std::vector<size_t> kinds;
};

// Prints a row, and returns whether its ratios are within bounds. Quantiles and ratios are those of
// the median run.
bool Print(const Row& row, const std::vector<Run>& runs) {
  const auto median = [&](const auto& of_run) {
    std::vector<double> values;
    for (const Run& run : runs) values.push_back(of_run(run));
    return Quantile(std::move(values), 0.5);
  };
  const auto micros = [&](const Run& run, size_t arrangement, double q) {
    std::vector<double> all;
    for (const size_t kind : row.kinds)
      all.insert(all.end(), run[kind][arrangement].begin(), run[kind][arrangement].end());
    return Quantile(std::move(all), q);
  };
  const auto ratio_of = [&](size_t arrangement) {
    return median(
        [&](const Run& run) { return micros(run, arrangement, 0.5) / micros(run, 0, 0.5); });
  };
  std::printf("| %s |", row.name.c_str());
  for (size_t i = 0; i < 3; ++i) {
    std::printf(" %.0f / %.0f |", median([&](const Run& run) { return micros(run, i, 0.5); }),
                median([&](const Run& run) { return micros(run, i, 0.99); }));
    if (i > 0) std::printf(" %.2f |", ratio_of(i));
  }
  std::printf("\n");
  return ratio_of(1) <= kHighestRatioBeside && ratio_of(2) <= kHighestRatio;
}

// Makes the default profile comparable: it scores as many nodes as the measured one, and sorts the
// queue alike, as all profiles of a configuration must.
void MakeComparable(const config::ProfileSpec& measured, config::ProfileSpec* plain) {
  plain->percentage_of_nodes_to_score = measured.percentage_of_nodes_to_score;
  if (auto sort = measured.points.find(v1beta1::EXTENSION_POINT_QUEUE_SORT);
      sort != measured.points.end()) {
    plain->points.insert(*sort);
  }
}

absl::StatusOr<Profiles> ReadProfiles(const std::string& file) {
  std::ifstream stream(file);
  std::stringstream text;
  text << stream.rdbuf();
  absl::StatusOr<config::Config> measured = config::ParseConfig(text.str(), file);
  if (!measured.ok()) return measured.status();
  absl::StatusOr<config::Config> plain =
      config::ParseConfig(absl::StrCat("apiVersion: kubescheduler.config.k8s.io/v1\n"
                                       "kind: KubeSchedulerConfiguration\n"
                                       "profiles: [{schedulerName: ",
                                       kDefault, "}]\n"),
                          "default");
  if (!plain.ok()) return plain.status();
  plain->shim.custom_resources = measured->shim.custom_resources;
  MakeComparable(measured->scheduler.profiles[0], &plain->scheduler.profiles[0]);
  return Profiles{*plain, plain->scheduler.profiles[0], measured->scheduler.profiles[0]};
}

absl::Status RunAll(const Options& options) {
  const absl::StatusOr<Profiles> profiles = ReadProfiles(options.config);
  if (!profiles.ok()) return profiles.status();
  std::vector<Run> runs;
  for (int i = 0; i < options.runs; ++i) {
    absl::StatusOr<Run> run = Measure(*profiles, options);
    if (!run.ok()) return run.status();
    runs.push_back(*std::move(run));
  }

  std::vector<Row> rows;
  Row gpus{"**all that ask for GPUs**", {}};
  for (size_t kind = 0; kind < PodKinds().size(); ++kind) {
    if (!Wanted(kind, options)) continue;
    rows.push_back({PodKinds()[kind].name, {kind}});
    if (PodKinds()[kind].gpus) gpus.kinds.push_back(kind);
  }
  if (rows.empty()) return absl::InvalidArgumentError("no matching kind of pods");
  if (gpus.kinds.size() > 1) rows.push_back(std::move(gpus));
  const char* const name = profiles->all.scheduler_name.c_str();
  std::printf(
      "%d nodes, %d runs of %d pods of each kind; filter and score, host and hop included, µs\n\n",
      options.nodes, options.runs, options.pods);
  std::printf(
      "| pods | default profile alone, p50 / p99 | beside %s | ratio | %s | ratio |\n"
      "|---|---:|---:|---:|---:|---:|\n",
      name, name);
  bool cheap = true;
  for (const Row& row : rows) {
    // Kinds of pods with GPUs count together, because their shares in a cluster are unknown.
    const bool is_in_sum =
        row.kinds.size() == 1 && rows.back().kinds.size() > 1 &&
        std::count(rows.back().kinds.begin(), rows.back().kinds.end(), row.kinds.front()) > 0;
    cheap = (Print(row, runs) || is_in_sum) && cheap;
  }
  if (options.check && !cheap) {
    return absl::OutOfRangeError(absl::StrCat("a median is more than ", kHighestRatio,
                                              " times the default profile's, or more than ",
                                              kHighestRatioBeside, " times beside another"));
  }
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const absl::string_view flag = argv[i];
    const bool has_value = i + 1 < argc;
    if (flag == "--check") {
      options.check = true;
    } else if (flag == "--only" && has_value) {
      options.only = argv[++i];
    } else if (flag == "--config" && has_value) {
      options.config = argv[++i];
    } else if (!(flag == "--nodes" && has_value && absl::SimpleAtoi(argv[++i], &options.nodes) &&
                 options.nodes >= 100) &&
               !(flag == "--pods" && has_value && absl::SimpleAtoi(argv[++i], &options.pods) &&
                 options.pods >= kTurn) &&
               !(flag == "--runs" && has_value && absl::SimpleAtoi(argv[++i], &options.runs) &&
                 options.runs > 0)) {
      std::fprintf(
          stderr,
          "plugins_benchmark [--config FILE] [--nodes N] [--pods N] [--runs N] [--only TEXT] "
          "[--check]\n"
          "  --config  its first profile is measured (deploy/examples/ai-scheduler.yaml)\n"
          "  --nodes   100 or more (5000)\n"
          "  --pods    of each kind in each run, 10 or more (100)\n"
          "  --runs    each with new hosts (5)\n"
          "  --only    only kinds of pods whose names contain this\n"
          "  --check   fail if it costs more than 1.5 times the default profile, pods that ask for "
          "GPUs "
          "taken together\n");
      return 2;
    }
  }
  const absl::Status status = RunAll(options);
  if (status.ok()) return 0;
  std::fprintf(stderr, "plugins_benchmark: %s\n", status.ToString().c_str());
  return 1;
}

}  // namespace
}  // namespace outboard::bench

int main(int argc, char** argv) {
  FLAGS_logtostderr = true;
  FLAGS_minloglevel = 1;
  google::InitGoogleLogging(argv[0]);
  return outboard::bench::Main(argc, argv);
}
