// `./dev bench packing`: the share of a cluster's GPUs in use when no more pods fit, on Alibaba's
// trace of 2023 ("openb"), with the method of "Beware of Fragmentation" (USENIX ATC'23).
//
// Pods arrive and none leaves, until they have requested 130 % of the GPU capacity. Each goes
// through a session of the plugin host: cache, PreFilter, Filter, PreScore and Score of
// NodeResourcesFit, NodeAffinity and GPUPacking. A policy selects one of the feasible nodes:
//   random    any, and any of its GPUs
//   best-fit  ⌊100·(1 − cpu_left/128000/2 − gpu_left/8000/2)⌋, ties by name
//   packing   GPUPacking's score
// CPU, memory, GPU models and the room on each single GPU are hard constraints.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "integration/bench/csv.h"
#include "plugin_host/runtime/session.h"
#include "plugins/builtin_plugins.h"

namespace outboard {
namespace {

constexpr int kWhole = 1000;  // Thousandths of a GPU.
constexpr double kLoad = 1.3;
constexpr int64_t kMib = int64_t{1} << 20;
constexpr char kProfile[] = "packing";

struct Machine {
  std::string name;
  int64_t cpu_millis = 0, memory_mib = 0, gpus = 0;
  std::string model;
};
struct Task {
  int64_t cpu_millis = 0, memory_mib = 0, gpus = 0, milli = 0;
  std::string models;  // `A|B`; empty: any.
  int64_t demand() const { return gpus * milli; }
};
struct Trace {
  std::vector<Machine> machines;
  std::vector<Task> tasks;
  int64_t capacity = 0;
};

struct Options {
  std::string trace = "../shared/traces";
  std::string pods = "openb_pod_list_default.csv";
  int seeds = 10;
  int first_seed = 42;
  int copies = 1;
  bool learn = false;
  bool redraws_only = false;
  bool check = false;
};

// The rows of a file of the trace; the optional columns come last.
absl::StatusOr<std::vector<std::vector<std::string>>> ReadFile(
    const std::string& path, const std::vector<std::string>& required,
    const std::vector<std::string>& optional) {
  std::ifstream file(path);
  if (!file) {
    return absl::NotFoundError(
        absl::StrCat("cannot read ", path,
                     ": --trace FOLDER must be the folder with the openb trace, two files of "
                     "cluster-trace-gpu-v2023 in github.com/alibaba/clusterdata"));
  }
  return bench::ReadCsv(path, required, optional, &file);
}

bool Numbers(const std::vector<std::string>& row, size_t first,
             std::initializer_list<int64_t*> values) {
  for (int64_t* value : values) {
    if (!absl::SimpleAtoi(row[first++], value) || *value < 0) return false;
  }
  return true;
}

absl::StatusOr<Trace> ReadTrace(const std::string& folder, const std::string& pods_file,
                                int copies) {
  Trace trace;
  const std::string nodes = folder + "/openb_node_list_gpu_node.csv";
  auto rows = ReadFile(nodes, {"sn", "model", "cpu_milli", "memory_mib", "gpu"}, {});
  if (!rows.ok()) return rows.status();
  for (const auto& row : *rows) {
    Machine machine;
    machine.name = row[0];
    machine.model = row[1];
    if (!Numbers(row, 2, {&machine.cpu_millis, &machine.memory_mib, &machine.gpus}))
      return absl::InvalidArgumentError(absl::StrCat(nodes, ": node ", row[0], " is malformed"));
    trace.capacity += machine.gpus * kWhole;
    trace.machines.push_back(std::move(machine));
  }
  const std::string pods = absl::StrCat(folder, "/", pods_file);
  rows = ReadFile(pods, {"name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli"}, {"gpu_spec"});
  if (!rows.ok()) return rows.status();
  for (const auto& row : *rows) {
    Task task;
    task.models = row[5];
    if (!Numbers(row, 1, {&task.cpu_millis, &task.memory_mib, &task.gpus, &task.milli}) ||
        task.milli > kWhole || (task.milli < kWhole && task.gpus > 1)) {
      return absl::InvalidArgumentError(absl::StrCat(pods, ": pod ", row[0], " is malformed"));
    }
    trace.tasks.push_back(std::move(task));
  }
  const size_t machines = trace.machines.size();
  for (int copy = 1; copy < copies; ++copy) {
    for (size_t i = 0; i < machines; ++i) {
      trace.machines.push_back(trace.machines[i]);
      absl::StrAppend(&trace.machines.back().name, "-", copy);
    }
  }
  trace.capacity *= copies;
  if (trace.capacity == 0 || trace.tasks.empty())
    return absl::InvalidArgumentError("the trace has no GPUs or no pods");
  std::sort(trace.machines.begin(), trace.machines.end(),
            [](const Machine& a, const Machine& b) { return a.name < b.name; });
  return trace;
}

// The published arrivals: every task once, then random ones again until the requests suffice, in
// random order. With `redraws_only` all are drawn, with replacement.
std::vector<const Task*> Arrivals(const Trace& trace, bool redraws_only, std::mt19937_64* random) {
  std::vector<const Task*> arrivals;
  int64_t demand = 0;
  const auto add = [&](const Task& task) {
    arrivals.push_back(&task);
    demand += task.demand();
  };
  if (!redraws_only) {
    for (const Task& task : trace.tasks) add(task);
  }
  while (static_cast<double>(demand) < kLoad * static_cast<double>(trace.capacity))
    add(trace.tasks[(*random)() % trace.tasks.size()]);
  for (size_t i = arrivals.size(); i > 1; --i)
    std::swap(arrivals[i - 1], arrivals[(*random)() % i]);
  return arrivals;
}

// GPUPacking's arguments: the shapes of 95 % of the tasks, the most frequent first.
std::string TargetWorkload(const Trace& trace) {
  std::map<std::tuple<int64_t, int64_t, int64_t, std::string>, int64_t> counts;
  for (const Task& task : trace.tasks)
    ++counts[{task.cpu_millis, task.gpus, std::max<int64_t>(1, task.milli), task.models}];
  std::vector<std::pair<int64_t, std::string>> shapes;
  for (const auto& [shape, count] : counts) {
    const auto& [cpu, gpus, milli, models] = shape;
    std::string names;
    if (!models.empty())
      names = absl::StrCat("\"", absl::StrReplaceAll(models, {{"|", "\",\""}}), "\"");
    shapes.emplace_back(
        count, absl::StrCat("{\"cpuMillis\":", cpu, ",\"gpus\":", gpus, ",\"gpuMilli\":", milli,
                            ",\"models\":[", names, "],\"weight\":", count, "}"));
  }
  std::stable_sort(shapes.begin(), shapes.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::string> taken;
  double covered = 0;
  for (const auto& [count, text] : shapes) {
    if (covered >= 0.95 * static_cast<double>(trace.tasks.size())) break;
    covered += static_cast<double>(count);
    taken.push_back(text);
  }
  return absl::StrCat("{\"targetWorkload\":[", absl::StrJoin(taken, ","), "]}");
}

enum class Policy { kRandom, kBestFit, kPacking };

// One cluster that fills up.
class Replay {
 public:
  Replay(const Trace& trace, Policy policy, const std::string& packing_args, uint64_t seed)
      : trace_(trace), policy_(policy), random_(seed) {
    Must(RegisterBuiltinPlugins(&registry_));
    session_ = std::make_unique<runtime::Session>("s", &registry_);
    Configure(packing_args);
    v1beta1::SyncRequest snapshot;
    snapshot.set_version(++version_);
    snapshot.set_phase(v1beta1::SyncRequest::PHASE_SNAPSHOT_BEGIN);
    for (size_t i = 0; i < trace.machines.size(); ++i) AddMachine(i, &snapshot);
    Must(session_->Apply(snapshot, now_));
    snapshot.Clear();
    snapshot.set_version(version_);
    snapshot.set_phase(v1beta1::SyncRequest::PHASE_SNAPSHOT_END);
    Must(session_->Apply(snapshot, now_));
  }

  // Tries to place a pod.
  void Arrive(const Task& task) {
    const std::string uid = absl::StrCat("default/pod-", ++arrived_);
    v1beta1::Pod* pod = delta_.add_changes()->mutable_pod_upsert()->mutable_pod();
    Fill(task, uid, pod);
    const v1beta1::Pod copy = *pod;
    Flush();
    v1beta1::CycleRequest request;
    request.mutable_header()->set_profile(kProfile);
    request.mutable_header()->set_attempt_id(arrived_);
    request.set_pod_uid(uid);
    request.set_percentage_of_nodes_to_score(100);
    v1beta1::CycleResponse response;
    const absl::Time begin = absl::Now();
    const runtime::CallStatus status = session_->Cycle(request, now_, &response);
    (task.gpus > 0 ? micros_ : micros_without_gpus_)
        .push_back(absl::ToDoubleMicroseconds(absl::Now() - begin));
    if (!status.ok() || response.evaluation().filter().has_error() ||
        response.evaluation().score().has_error())
      Die(absl::StrCat("a cycle failed: ", status.message(), response.ShortDebugString()));
    std::vector<size_t> feasible;
    for (size_t i = 0; i < response.evaluation().filter().processed(); ++i) {
      if ((response.evaluation().filter().feasible()[i / 8] >> (i % 8)) & 1) feasible.push_back(i);
    }
    delta_.add_ended_attempts(arrived_);
    if (feasible.empty()) {
      delta_.add_changes()->mutable_pod_remove()->set_uid(uid);
      return;
    }
    const size_t chosen = Choose(task, feasible, response.evaluation().score());
    Place(task, chosen, copy);
  }

  void Tick() { session_->Tick(now_); }
  double AllocatedPercent() const {
    return 100.0 * static_cast<double>(allocated_) / static_cast<double>(trace_.capacity);
  }
  // Of the cycles of pods with and without GPUs.
  const std::vector<double>& micros() const { return micros_; }
  const std::vector<double>& micros_without_gpus() const { return micros_without_gpus_; }

 private:
  struct Left {
    int64_t cpu_millis = 0, memory_mib = 0;
    std::vector<int64_t> idle;
    int64_t total = 0;
  };

  [[noreturn]] static void Die(const std::string& message) {
    std::fprintf(stderr, "packing_benchmark: %s\n", message.c_str());
    std::exit(1);
  }
  static void Must(const absl::Status& status) {
    if (!status.ok()) Die(std::string(status.message()));
  }

  void Configure(const std::string& packing_args) {
    v1beta1::ConfigureRequest request;
    request.set_session_id("s");
    auto* profile = request.add_profiles();
    profile->set_name(kProfile);
    const auto enable = [&](v1beta1::ExtensionPoint point, std::vector<std::string> plugins) {
      auto* config = profile->add_points();
      config->set_extension_point(point);
      for (std::string& plugin : plugins) config->add_plugins(std::move(plugin));
    };
    enable(v1beta1::EXTENSION_POINT_PRE_FILTER, {"NodeAffinity", "NodeResourcesFit", "GPUPacking"});
    enable(v1beta1::EXTENSION_POINT_FILTER, {"NodeAffinity", "NodeResourcesFit", "GPUPacking"});
    if (policy_ == Policy::kPacking) {
      enable(v1beta1::EXTENSION_POINT_PRE_SCORE, {"GPUPacking"});
      enable(v1beta1::EXTENSION_POINT_SCORE, {"GPUPacking"});
    }
    auto* args = profile->add_args();
    args->set_plugin("GPUPacking");
    args->set_args_json(packing_args);
    v1beta1::ConfigureResponse response;
    session_->Configure(request, &response);
    if (!response.problems().empty())
      Die(absl::StrCat("the host rejected the profile: ", response.ShortDebugString()));
  }

  void AddMachine(size_t slot, v1beta1::SyncRequest* snapshot) {
    const Machine& machine = trace_.machines[slot];
    auto* upsert = snapshot->add_changes()->mutable_node_upsert();
    upsert->set_slot(static_cast<uint32_t>(slot));
    v1beta1::Node* node = upsert->mutable_node();
    node->set_uid(machine.name);
    node->set_name(machine.name);
    (*node->mutable_labels())["nvidia.com/gpu.product"] = machine.model;
    node->mutable_allocatable()->set_cpu_millis(machine.cpu_millis);
    node->mutable_allocatable()->set_memory_bytes(machine.memory_mib * kMib);
    node->mutable_allocatable()->set_pods(1000000);
    (*node->mutable_allocatable()->mutable_scalar())["nvidia.com/gpu"] = machine.gpus;
    Left left;
    left.cpu_millis = machine.cpu_millis;
    left.memory_mib = machine.memory_mib;
    left.idle.assign(static_cast<size_t>(machine.gpus), kWhole);
    left.total = machine.gpus * kWhole;
    left_.push_back(std::move(left));
  }

  // Whole GPUs as a resource, fractions as KAI's annotation.
  void Fill(const Task& task, const std::string& uid, v1beta1::Pod* pod) const {
    pod->set_uid(uid);
    pod->set_namespace_("default");
    pod->set_name(uid.substr(uid.find('/') + 1));
    pod->set_creation_unix_seconds(static_cast<int64_t>(arrived_));
    v1beta1::ResourceList* requests = pod->add_containers()->mutable_requests();
    requests->set_cpu_millis(task.cpu_millis);
    requests->set_memory_bytes(task.memory_mib * kMib);
    if (task.gpus > 0 && task.milli == kWhole)
      (*requests->mutable_scalar())["nvidia.com/gpu"] = task.gpus;
    if (task.gpus > 0 && task.milli < kWhole)
      (*pod->mutable_annotations())["gpu-fraction"] = absl::StrFormat("%.3f", task.milli / 1000.0);
    if (task.gpus > 0 && !task.models.empty()) {
      auto* requirement = pod->mutable_affinity()
                              ->mutable_node_affinity()
                              ->mutable_required_during_scheduling_ignored_during_execution()
                              ->add_node_selector_terms()
                              ->add_match_expressions();
      requirement->set_key("nvidia.com/gpu.product");
      requirement->set_operator_(v1beta1::SelectorRequirement::OPERATOR_IN);
      for (const absl::string_view model : absl::StrSplit(task.models, '|'))
        requirement->add_values(std::string(model));
    }
  }

  void Flush() {
    delta_.set_phase(v1beta1::SyncRequest::PHASE_DELTA);
    delta_.set_version(++version_);
    Must(session_->Apply(delta_, now_));
    delta_.Clear();
  }

  size_t Choose(const Task& task, const std::vector<size_t>& feasible,
                const v1beta1::ScoreResponse& response) {
    if (feasible.size() == 1) return feasible[0];
    if (policy_ == Policy::kRandom) return feasible[random_() % feasible.size()];
    size_t best = 0;
    int64_t best_score = -1;
    for (size_t i = 0; i < feasible.size(); ++i) {
      int64_t score;
      if (policy_ == Policy::kPacking) {
        score = static_cast<unsigned char>(response.plugins(0).scores()[i]);
      } else {
        const Left& left = left_[feasible[i]];
        score = static_cast<int64_t>(
            100 * (1 - static_cast<double>(left.cpu_millis - task.cpu_millis) / 128000 / 2 -
                   static_cast<double>(left.total - task.demand()) / 8000 / 2));
      }
      if (score > best_score) {
        best_score = score;
        best = feasible[i];
      }
    }
    return best;
  }

  // The benchmark's own accounting, which detects a host that accepts a pod that does not fit.
  void Place(const Task& task, size_t slot, v1beta1::Pod pod) {
    Left& left = left_[slot];
    left.cpu_millis -= task.cpu_millis;
    left.memory_mib -= task.memory_mib;
    std::vector<size_t> devices;
    for (int64_t n = 0; n < task.gpus; ++n) {
      std::vector<size_t> able;
      for (size_t i = 0; i < left.idle.size(); ++i) {
        if (left.idle[i] >= task.milli) able.push_back(i);
      }
      if (able.empty()) Die(absl::StrCat("a pod does not fit on a GPU of ", NodeName(slot)));
      const size_t device =
          policy_ == Policy::kRandom
              ? able[random_() % able.size()]
              : *std::min_element(able.begin(), able.end(),
                                  [&](size_t a, size_t b) { return left.idle[a] < left.idle[b]; });
      left.idle[device] -= task.milli;
      devices.push_back(device);
    }
    if (left.cpu_millis < 0 || left.memory_mib < 0)
      Die(absl::StrCat("a pod does not fit on ", NodeName(slot)));
    left.total -= task.demand();
    allocated_ += task.demand();
    if (policy_ == Policy::kRandom && !devices.empty()) {
      std::string names;
      for (const size_t device : devices) absl::StrAppend(&names, "gpu-", device, ",NVIDIA,0,0:");
      (*pod.mutable_annotations())["hami.io/vgpu-devices-allocated"] = names + ";";
      *delta_.add_changes()->mutable_pod_upsert()->mutable_pod() = pod;
    }
    auto* placement = delta_.add_changes()->mutable_pod_placement();
    placement->set_uid(pod.uid());
    placement->set_state(v1beta1::PLACEMENT_STATE_ASSUMED);
    placement->set_slot(static_cast<uint32_t>(slot));
  }
  const std::string& NodeName(size_t slot) const { return trace_.machines[slot].name; }

  const Trace& trace_;
  const Policy policy_;
  std::mt19937_64 random_;
  sdk::PluginRegistry registry_;
  std::unique_ptr<runtime::Session> session_;
  const absl::Time now_ = absl::UnixEpoch();
  v1beta1::SyncRequest delta_;
  int64_t version_ = 0;
  uint64_t arrived_ = 0;
  int64_t allocated_ = 0;
  std::vector<Left> left_;
  std::vector<double> micros_, micros_without_gpus_;
};

double Quantile(std::vector<double>* values, double q) {
  if (values->empty()) return 0;
  const auto at = static_cast<size_t>(q * static_cast<double>(values->size() - 1));
  std::nth_element(values->begin(), values->begin() + static_cast<std::ptrdiff_t>(at),
                   values->end());
  return (*values)[at];
}

int Run(const Options& options) {
  absl::StatusOr<Trace> trace = ReadTrace(options.trace, options.pods, options.copies);
  if (!trace.ok()) {
    std::fprintf(stderr, "packing_benchmark: %s\n", std::string(trace.status().message()).c_str());
    return 2;
  }
  const std::string packing_args = options.learn ? "{}" : TargetWorkload(*trace);
  const std::pair<Policy, const char*> policies[] = {
      {Policy::kRandom, "random"}, {Policy::kBestFit, "best-fit"}, {Policy::kPacking, "packing"}};
  double sums[3] = {0, 0, 0};
  std::vector<double> micros, micros_without_gpus;
  std::printf("%6s %9s %9s %9s %9s\n", "seed", "arrivals", "random", "best-fit", "packing");
  for (int seed = options.first_seed; seed < options.first_seed + options.seeds; ++seed) {
    std::mt19937_64 random(static_cast<uint64_t>(seed));
    const std::vector<const Task*> arrivals = Arrivals(*trace, options.redraws_only, &random);
    std::printf("%6d %9zu", seed, arrivals.size());
    for (int i = 0; i < 3; ++i) {
      Replay replay(*trace, policies[i].first, packing_args, static_cast<uint64_t>(seed));
      size_t arrived = 0;
      for (const Task* task : arrivals) {
        replay.Arrive(*task);
        // The host's clock, as if 100 pods arrived each second.
        if (++arrived % 100 == 0) replay.Tick();
      }
      std::printf(" %8.2f%%", replay.AllocatedPercent());
      std::fflush(stdout);
      sums[i] += replay.AllocatedPercent();
      if (policies[i].first == Policy::kPacking) {
        micros.insert(micros.end(), replay.micros().begin(), replay.micros().end());
        micros_without_gpus.insert(micros_without_gpus.end(), replay.micros_without_gpus().begin(),
                                   replay.micros_without_gpus().end());
      }
    }
    std::printf("\n");
  }
  for (double& sum : sums) sum /= options.seeds;
  std::printf(
      "{\"nodes\":%zu,\"gpus\":%lld,\"seeds\":%d,\"load_percent\":130,\"random\":%.2f,"
      "\"best_fit\":%.2f,\"packing\":%.2f,\"cycle_p50_us\":%.0f,\"cycle_p99_us\":%.0f,"
      "\"cycle_without_gpus_p50_us\":%.0f,\"cycle_without_gpus_p99_us\":%.0f}\n",
      trace->machines.size(), static_cast<long long>(trace->capacity / kWhole), options.seeds,
      sums[0], sums[1], sums[2], Quantile(&micros, 0.5), Quantile(&micros, 0.99),
      Quantile(&micros_without_gpus, 0.5), Quantile(&micros_without_gpus, 0.99));
  if (!options.check) return 0;
  const bool as_expected =
      sums[0] >= 86.5 && sums[0] <= 88.4 && sums[1] >= 92.6 && sums[1] <= 93.7 && sums[2] >= 95.0;
  if (!as_expected) {
    std::fprintf(stderr,
                 "packing_benchmark: expected random 86.5..88.4, best-fit 92.6..93.7 and "
                 "packing 95.0 or more\n");
  }
  return as_expected ? 0 : 1;
}

int Main(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const absl::string_view flag = argv[i];
    const bool has_value = i + 1 < argc;
    if (flag == "--learn") {
      options.learn = true;
    } else if (flag == "--redraws-only") {
      options.redraws_only = true;
    } else if (flag == "--check") {
      options.check = true;
    } else if (flag == "--trace" && has_value) {
      options.trace = argv[++i];
    } else if (flag == "--pods" && has_value) {
      options.pods = argv[++i];
    } else if (!(flag == "--seeds" && has_value && absl::SimpleAtoi(argv[++i], &options.seeds) &&
                 options.seeds > 0) &&
               !(flag == "--copies" && has_value && absl::SimpleAtoi(argv[++i], &options.copies) &&
                 options.copies > 0) &&
               !(flag == "--first-seed" && has_value &&
                 absl::SimpleAtoi(argv[++i], &options.first_seed) && options.first_seed >= 0)) {
      std::fprintf(
          stderr,
          "packing_benchmark [--trace FOLDER] [--pods FILE] [--seeds N] [--first-seed N] [--copies "
          "N] "
          "[--learn] [--redraws-only] [--check]\n"
          "  --trace         folder of the openb trace (default ../shared/traces)\n"
          "  --pods          its list of pods (openb_pod_list_default.csv)\n"
          "  --seeds         number of runs (10), from --first-seed (42)\n"
          "  --copies        multiple of the trace's nodes, to measure the time of a cycle (1)\n"
          "  --learn         GPUPacking learns the workload from arriving pods\n"
          "  --redraws-only  draw all arrivals with replacement, instead of the trace "
          "once and redraws\n"
          "  --check         fail unless the figures match the published ones\n");
      return 2;
    }
  }
  return Run(options);
}

}  // namespace
}  // namespace outboard

int main(int argc, char** argv) { return outboard::Main(argc, argv); }
