// What one pod's way through the scheduler costs with the given hosts: `./dev bench hosts` starts
// them, and this program.
//
// Nodes and pods are made here; binds succeed at once. Everything between is the shim's own: queue,
// cycle, host panel, gRPC. One pod after the other, so the time is latency, and the rate what one
// scheduling thread does at most.
#include <glog/logging.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <deque>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "shim/config/config.h"
#include "shim/cycle/scheduler.h"
#include "shim/hosts/host_loop.h"
#include "shim/hosts/host_set.h"

namespace outboard {
namespace {

constexpr int kWarmUp = 200;

struct Flags {
  std::string config;
  std::vector<std::string> addresses;
  std::vector<int> pids;  // of the hosts, in the same order
  int nodes = 5000;
  int pods = 2000;
};

absl::StatusOr<Flags> ParseFlags(int argc, char** argv) {
  Flags flags;
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i];
    if (i + 1 == argc) return absl::InvalidArgumentError(absl::StrCat(name, " needs a value"));
    const std::string value = argv[i + 1];
    bool ok = true;
    if (name == "--config") {
      flags.config = value;
    } else if (name == "--nodes") {
      ok = absl::SimpleAtoi(value, &flags.nodes) && flags.nodes > 0;
    } else if (name == "--pods") {
      ok = absl::SimpleAtoi(value, &flags.pods) && flags.pods > 0;
    } else if (name == "--host") {
      // PID=ADDRESS
      const std::vector<std::string> parts = absl::StrSplit(value, absl::MaxSplits('=', 1));
      ok = parts.size() == 2 && absl::SimpleAtoi(parts[0], &flags.pids.emplace_back());
      if (ok) flags.addresses.push_back(parts[1]);
    } else {
      ok = false;
    }
    if (!ok) return absl::InvalidArgumentError(absl::StrCat("not understood: ", name, " ", value));
  }
  if (flags.addresses.empty()) return absl::InvalidArgumentError("--host PID=ADDRESS is needed");
  return flags;
}

// As a cloud's nodes are labelled, with a price.
kube::NodePtr MakeNode(int index) {
  auto node = std::make_shared<kube::NodeObject>();
  const std::string name = absl::StrCat("node-", index);
  node->node.set_uid(absl::StrCat("11111111-2222-3333-4444-", index));
  node->node.set_name(name);
  auto& labels = *node->node.mutable_labels();
  labels["kubernetes.io/hostname"] = name;
  labels["kubernetes.io/arch"] = "amd64";
  labels["kubernetes.io/os"] = "linux";
  labels["node.kubernetes.io/instance-type"] = "standard-4";
  labels["topology.kubernetes.io/region"] = "region-1";
  labels["topology.kubernetes.io/zone"] = absl::StrCat("zone-", index % 3);
  labels["node-pool"] = absl::StrCat("pool-", index % 20);
  labels["price"] = absl::StrCat(index % 97);
  v1alpha1::ResourceList* allocatable = node->node.mutable_allocatable();
  allocatable->set_cpu_millis(4000);
  allocatable->set_memory_bytes(int64_t{32} << 30);
  allocatable->set_ephemeral_storage_bytes(int64_t{100} << 30);
  allocatable->set_pods(110);
  node->resource_version = "1";
  return node;
}

kube::PodPtr MakePod(int index) {
  auto pod = std::make_shared<kube::PodObject>();
  pod->pod.set_uid(absl::StrCat("uid-", index));
  pod->pod.set_namespace_("default");
  pod->pod.set_name(absl::StrCat("pod-", index));
  pod->pod.set_scheduler_name("default-scheduler");
  v1alpha1::ResourceList* requests = pod->pod.add_containers()->mutable_requests();
  requests->set_cpu_millis(100);
  requests->set_memory_bytes(int64_t{500} << 20);
  pod->resource_version = "1";
  return pod;
}

// Binds succeed; nothing else is expected to happen.
class BindAtOnce final : public cycle::Effects {
 public:
  void Bind(const cycle::BindOrder& order, absl::Time) override { orders_.push_back(order); }
  void Evict(const cycle::EvictOrder&, absl::Time) override {}
  void RecordPreempted(const kube::PodObject&, const std::string&, const std::string&,
                       const std::string&, bool, absl::Time) override {}
  void Write(const cycle::EffectOrder&, absl::Time) override {}
  void RecordScheduled(const kube::PodObject&, const std::string&, const std::string&,
                       absl::Time) override {}
  void RecordFailed(const kube::PodObject& pod, const std::string&, const std::string& message,
                    absl::Time) override {
    failure = absl::StrCat(pod.key(), ": ", message);
  }
  void PatchStatus(const kube::PodObject&, const std::optional<cycle::PodScheduledFalse>&,
                   const std::optional<std::string>&, absl::Time) override {}
  void CarryOut(cycle::Scheduler* scheduler, absl::Time now) {
    while (!orders_.empty()) {
      const cycle::BindOrder order = std::move(orders_.front());
      orders_.pop_front();
      auto bound = std::make_shared<kube::PodObject>(*order.pod);
      bound->pod.set_node_name(order.node_name);
      bound->resource_version = "2";
      scheduler->OnBindEnded(order.attempt_id, cycle::BindEnd::kBound, "", now);
      scheduler->OnPodUpsert(bound, now);
      ++bound_count;
    }
  }
  int bound_count = 0;
  std::string failure;

 private:
  std::deque<cycle::BindOrder> orders_;
};

// How long filter and score took, all hosts included.
class CycleTimes final : public cycle::Observer {
 public:
  void OnAlgorithm(const kube::PodObject&, const cycle::AlgorithmProfile&,
                   const cycle::AlgorithmResult&, const v1alpha1::CycleResponse&,
                   absl::Duration took) override {
    micros.push_back(absl::ToDoubleMicroseconds(took));
  }
  std::vector<double> micros;
};

// CPU that a process has used, all its threads, in microseconds; 0 if it is gone.
double CpuMicrosOf(int pid) {
  std::ifstream stream(absl::StrCat("/proc/", pid, "/stat"));
  std::stringstream text;
  text << stream.rdbuf();
  const std::string all = text.str();
  const size_t end = all.rfind(')');  // of the program's name
  if (end == std::string::npos) return 0;
  const std::vector<std::string> fields =
      absl::StrSplit(all.substr(end + 1), ' ', absl::SkipEmpty());
  double user = 0;
  double system = 0;
  if (fields.size() < 13 || !absl::SimpleAtod(fields[11], &user) ||
      !absl::SimpleAtod(fields[12], &system)) {
    return 0;
  }
  return (user + system) * 1e6 / static_cast<double>(sysconf(_SC_CLK_TCK));
}

double HostsCpuMicros(const std::vector<int>& pids) {
  double sum = 0;
  for (const int pid : pids) sum += CpuMicrosOf(pid);
  return sum;
}

absl::Status Run(const Flags& flags) {
  absl::StatusOr<config::Config> parsed = [&]() -> absl::StatusOr<config::Config> {
    std::ifstream stream(flags.config);
    std::stringstream text;
    text << stream.rdbuf();
    return config::ParseConfig(text.str(), flags.config);
  }();
  if (!parsed.ok()) return parsed.status();
  auto config = std::make_shared<config::Config>(*std::move(parsed));
  config->shim.hosts.assign(flags.addresses.size(), config::HostSpec());
  for (size_t i = 0; i < flags.addresses.size(); ++i) {
    config->shim.hosts[i].name = absl::StrCat("host-", i);
    config->shim.hosts[i].address = flags.addresses[i];
  }
  config->shim.deadlines.cycle = absl::Seconds(10);

  hosts::HostLoop loop;
  BindAtOnce effects;
  CycleTimes times;
  cycle::SchedulerOptions options;
  options.cycle_deadline = config->shim.deadlines.cycle;
  absl::Time now = absl::Now();
  cycle::Scheduler scheduler(options, queue::QueueOptions(), &effects, &times, nullptr, now);
  hosts::HostSet host_set(config, "bench", &loop, &scheduler);
  scheduler.SetProfileNames({"default-scheduler"});
  for (int i = 0; i < flags.nodes; ++i) scheduler.OnNodeUpsert(MakeNode(i), now);
  for (const config::HostSpec& spec : config->shim.hosts) {
    auto channel = hosts::NewHostChannel(spec.address);
    absl::StatusOr<v1alpha1::GetHostInfoResponse> info;
    const absl::Time give_up = absl::Now() + absl::Seconds(30);
    do {
      info = hosts::Handshake(channel, absl::Seconds(1));
      if (!info.ok()) channel = hosts::NewHostChannel(spec.address);
    } while (!info.ok() && absl::Now() < give_up);
    if (!info.ok()) return info.status();
    absl::Status taken = host_set.OnHandshake({spec.name, spec.address, std::nullopt, 0},
                                              std::move(channel), *std::move(info), now);
    if (!taken.ok()) return taken;
  }
  const absl::Time ready_by = absl::Now() + absl::Seconds(60);
  while (!host_set.AllReady()) {
    if (absl::Now() > ready_by) return absl::UnavailableError("not all hosts become ready");
    loop.Wait(absl::Now() + absl::Milliseconds(50));
    host_set.Tick(absl::Now());
  }

  absl::Time began;
  double own_cpu = 0;
  double hosts_cpu = 0;
  for (int i = 0; i < kWarmUp + flags.pods; ++i) {
    if (i == kWarmUp) {
      times.micros.clear();
      hosts_cpu = HostsCpuMicros(flags.pids);
      own_cpu = CpuMicrosOf(getpid());
      began = absl::Now();
    }
    now = absl::Now();
    scheduler.OnPodUpsert(MakePod(i), now);
    scheduler.ScheduleOne(now);
    effects.CarryOut(&scheduler, now);
    loop.RunReady();
    scheduler.Tick(now);
    host_set.Tick(now);
    if (!effects.failure.empty()) return absl::InternalError(effects.failure);
  }
  const double seconds = absl::ToDoubleSeconds(absl::Now() - began);
  if (effects.bound_count != kWarmUp + flags.pods) return absl::InternalError("not all were bound");
  std::sort(times.micros.begin(), times.micros.end());
  const auto quantile = [&](double q) {
    return times.micros[static_cast<size_t>(q * static_cast<double>(times.micros.size() - 1))];
  };
  printf(
      "{\"p50Micros\":%.1f,\"p99Micros\":%.1f,\"podsPerSecond\":%.0f,\"shimCpuMicros\":%.1f,"
      "\"hostsCpuMicros\":%.1f}\n",
      quantile(0.5), quantile(0.99), flags.pods / seconds,
      (CpuMicrosOf(getpid()) - own_cpu) / flags.pods,
      (HostsCpuMicros(flags.pids) - hosts_cpu) / flags.pods);
  return absl::OkStatus();
}

}  // namespace
}  // namespace outboard

int main(int argc, char** argv) {
  FLAGS_logtostderr = true;
  FLAGS_minloglevel = 1;
  google::InitGoogleLogging(argv[0]);
  const auto flags = outboard::ParseFlags(argc, argv);
  absl::Status status = flags.ok() ? outboard::Run(*flags) : flags.status();
  if (status.ok()) return 0;
  fprintf(stderr, "outboard-bench-hosts: %s\n", status.ToString().c_str());
  return 1;
}
