// `./dev bench gangs`: groups and interchangeable pods, through the shim's own queue, cycle and
// gRPC.
//
// 5,000 nodes in racks of 100, the default profile with AtomicReplicaCoordinator, Kubernetes' own
// PodGroups. All pods wait before the clock starts, and binds succeed at once. Each case and each
// run has its own host and cluster; the median run is printed.
#include <glog/logging.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "cli/simulate/host_process.h"
#include "integration/bench/scheduling_thread.h"
#include "shim/config/config.h"

namespace outboard::bench {
namespace {

constexpr char kConfiguration[] = R"yaml(
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
profiles:
- schedulerName: default-scheduler
  plugins: {multiPoint: {enabled: [{name: AtomicReplicaCoordinator}]}}
  pluginConfig: [{name: NotServed, args: {served: [spec.schedulingGroup]}}]
---
apiVersion: config.outboard.dev/v1alpha1
kind: ShimConfiguration
hosts: [{name: host-0, address: "unix:/nowhere"}]
customResources: [{resource: podgroups.v1alpha2.scheduling.k8s.io}]
)yaml";
constexpr int kNodesPerRack = 100;

struct Options {
  int nodes = 5000;
  int runs = 3;
  bool check = false;
};

struct Case {
  const char* what;
  int groups;  // 0: single pods
  int pods;    // of each group, or in total
  bool in_rack;
  double least_pods_per_second;  // with --check; 0: none
  double most_algorithm_micros;  // of each pod; 0: none
};
constexpr Case kCases[] = {
    {"1,000 interchangeable pods", 0, 1000, false, 0, 0},
    {"10,000 interchangeable pods", 0, 10000, false, 0, 0},
    // Upstream's own groups with topology: 492 to 630.
    {"1,000 gangs of 4, rack required", 1000, 4, true, 630, 0},
    {"one gang of 1,000", 1, 1000, false, 630, 0},
    {"9 gangs of 100, rack required", 9, 100, true, 630, 0},
};

kube::NodePtr MakeNode(int index) {
  auto node = std::make_shared<kube::NodeObject>();
  const std::string name = absl::StrCat("node-", index);
  node->node.set_uid(absl::StrCat("uid-", name));
  node->node.set_name(name);
  auto& labels = *node->node.mutable_labels();
  labels["kubernetes.io/hostname"] = name;
  labels["topology.kubernetes.io/zone"] = absl::StrCat("zone-", index % 3);
  labels["topology.kubernetes.io/rack"] = absl::StrCat("rack-", index / kNodesPerRack);
  v1beta1::ResourceList* allocatable = node->node.mutable_allocatable();
  allocatable->set_cpu_millis(4000);
  allocatable->set_memory_bytes(int64_t{32} << 30);
  allocatable->set_ephemeral_storage_bytes(int64_t{100} << 30);
  allocatable->set_pods(110);
  node->resource_version = "1";
  return node;
}

kube::PodPtr MakePod(const std::string& name, const std::string& group) {
  auto pod = std::make_shared<kube::PodObject>();
  pod->pod.set_uid(absl::StrCat("uid-of-", name));
  pod->pod.set_namespace_("default");
  pod->pod.set_name(name);
  pod->pod.set_scheduler_name("default-scheduler");
  pod->pod.set_pod_group_name(group);
  v1beta1::ResourceList* requests = pod->pod.add_containers()->mutable_requests();
  requests->set_cpu_millis(100);
  requests->set_memory_bytes(int64_t{500} << 20);
  pod->resource_version = "1";
  return pod;
}

kube::ClusterObjectPtr MakeGroup(const std::string& name, int size, bool in_rack) {
  auto object = std::make_shared<kube::ClusterObject>();
  v1beta1::GenericObject* custom = object->object.mutable_generic_object();
  custom->set_resource("podgroups.v1alpha2.scheduling.k8s.io");
  custom->set_namespace_("default");
  custom->set_name(name);
  custom->set_uid(absl::StrCat("uid-of-", name));
  custom->set_resource_version("1");
  const char* const topology =
      in_rack
          ? R"(, "schedulingConstraints": {"topology": [{"key": "topology.kubernetes.io/rack"}]})"
          : "";
  object->object_uid = custom->uid();
  custom->set_json(absl::StrCat(R"({"metadata": {"name": ")", name,
                                R"("}, "spec": {"schedulingPolicy": {"gang": {"minCount": )", size,
                                "}}", topology, "}}"));
  object->resource_version = "1";
  return object;
}

absl::StatusOr<SchedulingThread::Took> RunOnce(const config::Config& config, const Options& options,
                                               const Case& which) {
  absl::StatusOr<std::unique_ptr<simulate::HostProcess>> host = simulate::HostProcess::Start("", 0);
  if (!host.ok()) return host.status();
  SchedulingThread thread(config, {(*host)->address()});
  for (int i = 0; i < options.nodes; ++i) thread.AddNode(MakeNode(i));
  if (absl::Status status = thread.Start(); !status.ok()) return status;
  const int groups = std::max(1, which.groups);
  for (int g = 0; g < groups; ++g) {
    const std::string group = which.groups == 0 ? "" : absl::StrCat("group-", g);
    if (!group.empty()) thread.AddObject(MakeGroup(group, which.pods, which.in_rack));
    for (int i = 0; i < which.pods; ++i)
      thread.AddPod(MakePod(absl::StrCat("pod-", g, "-", i), group));
  }
  return thread.ScheduleAll(groups * which.pods);
}

absl::Status Run(const Options& options) {
  absl::StatusOr<config::Config> config = config::ParseConfig(kConfiguration, "gangs.cc");
  if (!config.ok()) return config.status();
  printf(
      "%d nodes, racks of %d, the median of %d runs; shim and host, binds not included\n\n"
      "| pods | pods/s | µs a pod, filter and score | in all |\n|---|---:|---:|---:|\n",
      options.nodes, kNodesPerRack, options.runs);
  bool slow = false;
  for (const Case& which : kCases) {
    std::vector<double> seconds, micros;
    const int pods = std::max(1, which.groups) * which.pods;
    for (int run = 0; run < options.runs; ++run) {
      const auto took = RunOnce(*config, options, which);
      if (!took.ok())
        return absl::InternalError(absl::StrCat(which.what, ": ", took.status().message()));
      seconds.push_back(took->seconds);
      micros.push_back(took->algorithm_micros / pods);
    }
    const double rate = pods / Quantile(seconds, 0.5);
    printf("| %s | %.0f | %.1f | %.3f s |\n", which.what, rate, Quantile(micros, 0.5),
           Quantile(seconds, 0.5));
    fflush(stdout);
    slow |= rate < which.least_pods_per_second;
  }
  if (options.check && slow)
    return absl::DeadlineExceededError("fewer pods/s than upstream's own gangs");
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  constexpr char kUsage[] =
      "gangs_benchmark [--nodes N] [--runs N] [--check]\n"
      "  --nodes   100 or more (5000)\n"
      "  --runs    of each case, each with new hosts (3)\n"
      "  --check   fail if gangs are slower than upstream's own (630 pods/s)\n";
  Options options;
  for (int i = 1; i < argc; ++i) {
    const absl::string_view flag = argv[i];
    const bool has_value = i + 1 < argc;
    if (flag == "--check") {
      options.check = true;
    } else if (flag == "--nodes" && has_value && absl::SimpleAtoi(argv[i + 1], &options.nodes) &&
               options.nodes >= kNodesPerRack) {
      ++i;
    } else if (flag == "--runs" && has_value && absl::SimpleAtoi(argv[i + 1], &options.runs) &&
               options.runs > 0) {
      ++i;
    } else {
      fputs(kUsage, flag == "--help" ? stdout : stderr);
      return flag == "--help" ? 0 : 2;
    }
  }
  const absl::Status status = Run(options);
  if (status.ok()) return 0;
  fprintf(stderr, "gangs_benchmark: %s\n", status.ToString().c_str());
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
