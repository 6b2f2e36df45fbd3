#include "cli/simulate/trace/workload.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <random>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace outboard::simulate::trace {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kPi = 3.14159265358979323846;
constexpr double kHour = 3600;
constexpr int kCpusPerGpu = 12;  // of a node; jobs request fewer
constexpr int kMemoryGiPerGpu = 128;
constexpr int kJobCpusPerGpu = 8;
constexpr int kJobMemoryGiPerGpu = 64;

// Training: percentage of jobs by number of GPUs.
struct Size {
  int gpus;
  double weight;
};
constexpr Size kTrainingSizes[] = {{1, 55}, {2, 10}, {4, 12}, {8, 15}, {16, 5}, {32, 3}};
constexpr double kTrainingMedian = 124;  // seconds, with one GPU
constexpr double kTrainingGrowth = 0.6;  // the median grows with this power of the GPUs
constexpr double kTrainingSigma = 1.8;
constexpr double kInferenceMedian = 4 * kHour;
constexpr double kInferenceSigma = 0.8;
constexpr double kInferenceTwoGpus = 0.3;
constexpr int kInferencePriority = 1000;
// Arrivals in the busiest hour relative to the mean, minus 1.
constexpr double kDayAmplitude = 0.8;
constexpr double kBusiestHour = 14;

// Distributions of the standard library may differ between libraries.
class Chance {
 public:
  explicit Chance(uint64_t seed) : engine_(seed) {}
  // In [0, 1).
  double Uniform() { return static_cast<double>(engine_() >> 11) * 0x1.0p-53; }
  double LogNormal(double median, double sigma) {
    const double radius = std::sqrt(-2 * std::log(1 - Uniform()));
    return median * std::exp(sigma * radius * std::cos(2 * kPi * Uniform()));
  }

 private:
  std::mt19937_64 engine_;
};

struct JobLine {
  double arrival;
  Json json;
};

double Milliseconds(double seconds) { return std::round(seconds * 1000) / 1000; }

void Ask(int gpus, Json* job) {
  (*job)["gpus"] = gpus;
  (*job)["cpu"] = gpus * kJobCpusPerGpu;
  (*job)["memory"] = absl::StrCat(gpus * kJobMemoryGiPerGpu, "Gi");
}

class Maker {
 public:
  explicit Maker(const WorkloadOptions& options)
      : options_(options), chance_(options.seed), seconds_(options.hours * kHour) {}

  std::vector<JobLine> Make() {
    const double offered = options_.load * options_.nodes * options_.gpus_per_node * seconds_;
    // Generates jobs until they request enough; the last one requests the rest.
    for (double left = offered * options_.training_share; left > 0;) left -= Training(left);
    for (double left = offered * (1 - options_.training_share); left > 0;) left -= Inference(left);
    std::stable_sort(lines_.begin(), lines_.end(),
                     [](const JobLine& a, const JobLine& b) { return a.arrival < b.arrival; });
    return std::move(lines_);
  }

 private:
  double Run(double median, double sigma, double left, int gpus) {
    const double run = std::min(chance_.LogNormal(median, sigma), seconds_);
    return Milliseconds(std::max(1.0, std::min(run, left / gpus)));
  }

  double Training(double left) {
    const int gpus = TrainingSize();
    const double run =
        Run(kTrainingMedian * std::pow(gpus, kTrainingGrowth), kTrainingSigma, left, gpus);
    int per_pod = std::min(gpus, options_.gpus_per_node);
    if (gpus == per_pod && gpus > 1 && chance_.Uniform() < options_.small_gang_share)
      per_pod = std::max(1, gpus / 4);
    // Sizes are powers of two; a node may have another number of GPUs.
    while (gpus % per_pod != 0) --per_pod;
    const double arrival = Milliseconds(chance_.Uniform() * seconds_);
    Json job = {{"job", absl::StrCat("train-", ++trainings_)},
                {"class", absl::StrCat("training-", gpus)},
                {"arrival", arrival},
                {"run", run}};
    if (gpus > per_pod) {
      job["replicas"] = gpus / per_pod;
      job["gang"] = true;
    }
    Ask(per_pod, &job);
    if (options_.checkpoint_seconds >= 0) job["checkpointEvery"] = options_.checkpoint_seconds;
    Add(arrival, std::move(job));
    return run * gpus;
  }

  double Inference(double left) {
    const int gpus = options_.gpus_per_node > 1 && chance_.Uniform() < kInferenceTwoGpus ? 2 : 1;
    const double run = Run(kInferenceMedian, kInferenceSigma, left, gpus);
    double arrival = 0;
    double height = 0;
    do {  // Rejection sampling by the time of day; two tries on average.
      arrival = Milliseconds(chance_.Uniform() * seconds_);
      height = 1 + kDayAmplitude * std::cos(2 * kPi * (arrival / kHour - kBusiestHour) / 24);
    } while (chance_.Uniform() * (1 + kDayAmplitude) >= height);
    Json job = {{"job", absl::StrCat("serve-", ++services_)},
                {"class", "inference"},
                {"arrival", arrival},
                {"run", run},
                {"priority", kInferencePriority}};
    Ask(gpus, &job);
    Add(arrival, std::move(job));
    return run * gpus;
  }

  int TrainingSize() {
    const int largest = options_.nodes * options_.gpus_per_node;
    double total = 0;
    for (const Size& size : kTrainingSizes) total += size.gpus <= largest ? size.weight : 0;
    double point = chance_.Uniform() * total;
    int gpus = 1;
    for (const Size& size : kTrainingSizes) {
      if (size.gpus > largest || point < 0) break;
      gpus = size.gpus;
      point -= size.weight;
    }
    return gpus;
  }

  void Add(double arrival, Json job) {
    if (options_.declared != 0) {
      const double run = job["run"];
      job["annotations"] = {{"outboard/run-seconds", absl::StrCat(static_cast<int64_t>(
                                                         std::ceil(run * options_.declared)))}};
    }
    if (options_.scheduler_name != "default-scheduler")
      job["schedulerName"] = options_.scheduler_name;
    lines_.push_back({arrival, std::move(job)});
  }

  const WorkloadOptions options_;
  Chance chance_;
  const double seconds_;
  std::vector<JobLine> lines_;
  int trainings_ = 0;
  int services_ = 0;
};

std::string ClusterYaml(const WorkloadOptions& options) {
  std::string yaml;
  for (int i = 0; i < options.nodes; ++i) {
    const int gpus = options.gpus_per_node;
    absl::StrAppend(&yaml, i == 0 ? "" : "---\n", "apiVersion: v1\nkind: Node\nmetadata:\n",
                    "  name: gpu-", i, "\n  labels: {kubernetes.io/hostname: gpu-", i, "}\n",
                    "status:\n  allocatable: {cpu: \"", gpus * kCpusPerGpu,
                    "\", memory: ", gpus * kMemoryGiPerGpu, "Gi, pods: \"110\", nvidia.com/gpu: \"",
                    gpus, "\"}\n");
  }
  return yaml;
}

}  // namespace

absl::Status CheckWorkloadOptions(const WorkloadOptions& options) {
  const auto within = [](double value, double low, double high) {
    return value >= low && value <= high;
  };
  if (!within(options.nodes, 1, 100000))
    return absl::InvalidArgumentError("--nodes must be from 1 to 100000");
  if (!within(options.gpus_per_node, 1, 64))
    return absl::InvalidArgumentError("--gpus-per-node must be from 1 to 64");
  if (!within(options.load, 0.001, 10))
    return absl::InvalidArgumentError("--load must be from 0.001 to 10");
  if (!within(options.hours, 0.01, 24 * 366))
    return absl::InvalidArgumentError("--hours must be from 0.01 to 8784");
  if (!within(options.training_share, 0, 1))
    return absl::InvalidArgumentError("--training must be from 0 to 1");
  if (!within(options.small_gang_share, 0, 1))
    return absl::InvalidArgumentError("--small-gangs must be from 0 to 1");
  if (!within(options.checkpoint_seconds, -1, 1e6))
    return absl::InvalidArgumentError("--checkpoint must be from -1 to 1000000");
  if (options.declared != 0 && !within(options.declared, 1, 1000))
    return absl::InvalidArgumentError("--declared must be 0, or from 1 to 1000");
  if (options.scheduler_name.empty())
    return absl::InvalidArgumentError("--scheduler-name must not be empty");
  return absl::OkStatus();
}

Workload MakeWorkload(const WorkloadOptions& options) {
  Workload workload;
  workload.cluster_yaml = ClusterYaml(options);
  absl::StrAppend(&workload.trace, "# outboard generate-workload --nodes ", options.nodes,
                  " --gpus-per-node ", options.gpus_per_node, " --load ", options.load, " --hours ",
                  options.hours, " --training ", options.training_share, " --small-gangs ",
                  options.small_gang_share, " --checkpoint ", options.checkpoint_seconds,
                  " --declared ", options.declared, " --seed ", options.seed, " --scheduler-name ",
                  options.scheduler_name, "\n");
  for (const JobLine& line : Maker(options).Make())
    absl::StrAppend(&workload.trace, line.json.dump(), "\n");
  return workload;
}

}  // namespace outboard::simulate::trace
