// `./dev bench plugins`: what the plugins of one more profile cost, filter and score, beside the
// default profile.
//
// The configuration's first profile is the one that is measured. Three arrangements, each with a
// host of its own on a Unix socket and the same nodes and pods:
//   alone     the default profile, and no other
//   beside    the default profile, while the host also serves the measured one: pods of a profile
//             pay nothing for plugins of another
//   together  the measured profile
// Pods go one after the other through the shim's own queue, cycle and gRPC; the arrangements take
// turns every few pods, so that whatever else the machine does meets all three.
#include <glog/logging.h>

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
#include "integration/bench/gpu_cluster.h"
#include "integration/bench/scheduling_thread.h"
#include "shim/config/config.h"
#include "shim/simulate/host_process.h"

namespace outboard::bench {
namespace {

constexpr char kDefault[] = "default-scheduler";
// Pods of a kind before it is the next arrangement's turn.
constexpr int kTurn = 10;
// Of each kind; then the oldest ends, so that any number finds room.
constexpr size_t kRunAtOnce = 200;
// What the issue that asked for these plugins allows, and what noise does to two equal ones.
constexpr double kHighestRatio = 1.5;
constexpr double kHighestRatioBeside = 1.1;

struct Options {
  std::string config = "deploy/examples/ai-scheduler.yaml";
  int nodes = 5000;
  int pods = 300;
  std::string only;  // kinds of pods whose names contain this
  bool check = false;
};

// One of the three.
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

struct Row {
  std::string name;
  std::vector<std::vector<double>> micros;  // by arrangement
};

// Prints a row, and says whether its ratios are within bounds.
bool Print(const Row& row) {
  std::vector<double> p50, p99;
  for (const std::vector<double>& micros : row.micros) {
    p50.push_back(Quantile(micros, 0.5));
    p99.push_back(Quantile(micros, 0.99));
  }
  std::printf("| %s | %.0f / %.0f | %.0f / %.0f | %.2f | %.0f / %.0f | %.2f |\n", row.name.c_str(),
              p50[0], p99[0], p50[1], p99[1], p50[1] / p50[0], p50[2], p99[2], p50[2] / p50[0]);
  return p50[1] <= kHighestRatioBeside * p50[0] && p50[2] <= kHighestRatio * p50[0];
}

absl::Status Run(const Options& options) {
  std::ifstream stream(options.config);
  std::stringstream text;
  text << stream.rdbuf();
  absl::StatusOr<config::Config> measured = config::ParseConfig(text.str(), options.config);
  if (!measured.ok()) return measured.status();
  const config::ProfileSpec& all = measured->scheduler.profiles[0];
  const absl::StatusOr<config::Config> empty =
      config::ParseConfig(absl::StrCat("apiVersion: kubescheduler.config.k8s.io/v1\n"
                                       "kind: KubeSchedulerConfiguration\n"
                                       "profiles: [{schedulerName: ",
                                       kDefault, "}]\n"),
                          "default");
  if (!empty.ok()) return empty.status();
  const config::ProfileSpec& plain = empty->scheduler.profiles[0];

  std::vector<Arrangement> arrangements(3);
  arrangements[0] = {"alone", kDefault, nullptr, nullptr, {}, {}};
  arrangements[1] = {"beside", kDefault, nullptr, nullptr, {}, {}};
  arrangements[2] = {"together", all.scheduler_name, nullptr, nullptr, {}, {}};
  const std::vector<config::ProfileSpec> profiles[] = {{plain}, {plain, all}, {all}};
  for (size_t i = 0; i < arrangements.size(); ++i) {
    absl::Status status = SetUp(*empty, profiles[i], options, &arrangements[i]);
    if (!status.ok()) return status;
  }

  const int warm_up = options.pods / 5 + kTurn;
  for (int begin = 0; begin < warm_up + options.pods; begin += kTurn) {
    for (size_t kind = 0; kind < PodKinds().size(); ++kind) {
      if (!Wanted(kind, options)) continue;
      for (size_t turn = 0; turn < arrangements.size(); ++turn) {
        // Another one first each time.
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

  std::vector<Row> rows;
  Row gpus{"**all that ask for GPUs**", std::vector<std::vector<double>>(arrangements.size())};
  for (size_t kind = 0; kind < PodKinds().size(); ++kind) {
    if (!Wanted(kind, options)) continue;
    Row row{PodKinds()[kind].name, {}};
    for (size_t i = 0; i < arrangements.size(); ++i) {
      const std::vector<double>& micros = arrangements[i].micros[kind];
      row.micros.push_back(micros);
      if (PodKinds()[kind].gpus)
        gpus.micros[i].insert(gpus.micros[i].end(), micros.begin(), micros.end());
    }
    rows.push_back(std::move(row));
  }
  if (rows.empty()) return absl::InvalidArgumentError("there are no such pods");
  if (!gpus.micros[0].empty()) rows.push_back(std::move(gpus));
  std::printf("%d nodes, %d pods of each kind; filter and score, host and hop included, µs\n\n",
              options.nodes, static_cast<int>(rows[0].micros[0].size()));
  std::printf(
      "| pods | default profile alone, p50 / p99 | beside %s | ratio | %s | ratio |\n"
      "|---|---:|---:|---:|---:|---:|\n",
      all.scheduler_name.c_str(), all.scheduler_name.c_str());
  bool cheap = true;
  for (const Row& row : rows) cheap = Print(row) && cheap;
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
                 options.pods >= kTurn)) {
      std::fprintf(
          stderr,
          "plugins_benchmark [--config FILE] [--nodes N] [--pods N] [--only TEXT] [--check]\n"
          "  --config  its first profile is measured (deploy/examples/ai-scheduler.yaml)\n"
          "  --nodes   100 or more (5000)\n"
          "  --pods    of each kind, 10 or more (300)\n"
          "  --only    kinds of pods whose names contain it\n"
          "  --check   fail if it costs more than 1.5 times the default profile\n");
      return 2;
    }
  }
  const absl::Status status = Run(options);
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
