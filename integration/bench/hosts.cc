// The cost of one pod's way through the scheduler with the given hosts: `./dev bench hosts` starts
// the hosts and this program.
//
// This program makes nodes and pods, with --claims 1 also devices and a claim for each pod; binds
// and other writes succeed at once. Everything between is the shim's own: queue, cycle,
// ExtensionPointRunner, gRPC. Pods go one after the other: the time is latency, and the rate is the
// maximum of one scheduling thread.
#include <glog/logging.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "integration/bench/scheduling_thread.h"
#include "shim/config/config.h"
#include "shim/kube/wire/document.h"
#include "shim/kube/wire/json_decode.h"

namespace outboard {
namespace {

constexpr int kWarmUp = 200;

struct Flags {
  std::string config;
  std::vector<std::string> addresses;
  std::vector<int> pids;  // of the hosts, in the same order
  int nodes = 5000;
  int pods = 2000;
  int claims = 0;  // of each pod
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
    } else if (name == "--claims") {
      ok = absl::SimpleAtoi(value, &flags.claims) && (flags.claims == 0 || flags.claims == 1);
    } else if (name == "--host") {
      // PID=ADDRESS
      const std::vector<std::string> parts = absl::StrSplit(value, absl::MaxSplits('=', 1));
      ok = parts.size() == 2 && absl::SimpleAtoi(parts[0], &flags.pids.emplace_back());
      if (ok) flags.addresses.push_back(parts[1]);
    } else {
      ok = false;
    }
    if (!ok) return absl::InvalidArgumentError(absl::StrCat("invalid flag: ", name, " ", value));
  }
  if (flags.addresses.empty())
    return absl::InvalidArgumentError("missing flag: --host PID=ADDRESS");
  return flags;
}

// Labels as in clouds, with a price.
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
  v1beta1::ResourceList* allocatable = node->node.mutable_allocatable();
  allocatable->set_cpu_millis(4000);
  allocatable->set_memory_bytes(int64_t{32} << 30);
  allocatable->set_ephemeral_storage_bytes(int64_t{100} << 30);
  allocatable->set_pods(110);
  node->resource_version = "1";
  return node;
}

constexpr char kClaims[] = "resourceclaims.v1.resource.k8s.io";

// An object as the API server stores it. `text`: the part after the metadata.
kube::ClusterObjectPtr MakeObject(const std::string& resource, const std::string& name,
                                  const std::string& text) {
  const std::string where = resource == kClaims ? R"("namespace":"default",)" : "";
  const auto document = kube::ParseJson(
      name,
      absl::StrCat("{\"apiVersion\":\"resource.k8s.io/v1\",\"metadata\":{\"name\":\"", name, "\",",
                   where, "\"uid\":\"", name, "-uid\",\"resourceVersion\":\"1\"},", text, "}"));
  CHECK(document.ok()) << document.status();
  auto object = kube::DecodeCustomObject(resource, *document);
  CHECK(object.ok()) << object.status();
  return *std::move(object);
}

// A class for all devices, eight devices on each node, and a claim for one device for each pod.
std::vector<kube::ClusterObjectPtr> MakeDevices(int nodes, int pods) {
  std::vector<kube::ClusterObjectPtr> objects;
  objects.push_back(MakeObject("deviceclasses.v1.resource.k8s.io", "gpus", R"("spec":{})"));
  for (int i = 0; i < nodes; ++i) {
    const std::string node = absl::StrCat("node-", i);
    std::string devices;
    for (int j = 0; j < 8; ++j)
      absl::StrAppend(&devices, j == 0 ? "" : ",", R"({"name":"gpu-)", j, "\"}");
    objects.push_back(MakeObject(
        "resourceslices.v1.resource.k8s.io", node,
        absl::StrCat(R"("spec":{"driver":"gpu.example.com","nodeName":")", node,
                     R"(","pool":{"name":")", node,
                     R"(","generation":0,"resourceSliceCount":1},"devices":[)", devices, "]}")));
  }
  for (int i = 0; i < pods; ++i) {
    objects.push_back(MakeObject(
        kClaims, absl::StrCat("claim-", i),
        R"("spec":{"devices":{"requests":[{"name":"gpu","exactly":{"deviceClassName":"gpus","allocationMode":"ExactCount","count":1}}]}})"));
  }
  return objects;
}

kube::PodPtr MakePod(int index, int claims) {
  auto pod = std::make_shared<kube::PodObject>();
  pod->pod.set_uid(absl::StrCat("uid-", index));
  pod->pod.set_namespace_("default");
  pod->pod.set_name(absl::StrCat("pod-", index));
  pod->pod.set_scheduler_name("default-scheduler");
  v1beta1::ResourceList* requests = pod->pod.add_containers()->mutable_requests();
  requests->set_cpu_millis(100);
  requests->set_memory_bytes(int64_t{500} << 20);
  for (int i = 0; i < claims; ++i) {
    v1beta1::PodResourceClaim* claim = pod->pod.add_claims();
    claim->set_name("gpu");
    claim->set_claim_name(absl::StrCat("claim-", index));
  }
  pod->resource_version = "1";
  return pod;
}

// CPU time of a process with all its threads, in microseconds; 0 if it has ended.
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
  std::ifstream stream(flags.config);
  std::stringstream text;
  text << stream.rdbuf();
  absl::StatusOr<config::Config> config = config::ParseConfig(text.str(), flags.config);
  if (!config.ok()) return config.status();
  bench::SchedulingThread thread(*config, flags.addresses);
  for (int i = 0; i < flags.nodes; ++i) thread.AddNode(MakeNode(i));
  if (flags.claims > 0) thread.AddOwnObjects(MakeDevices(flags.nodes, kWarmUp + flags.pods));
  if (absl::Status status = thread.Start(); !status.ok()) return status;

  std::vector<double> micros;
  absl::Time began;
  double own_cpu = 0;
  double hosts_cpu = 0;
  for (int i = 0; i < kWarmUp + flags.pods; ++i) {
    if (i == kWarmUp) {
      micros.clear();
      hosts_cpu = HostsCpuMicros(flags.pids);
      own_cpu = CpuMicrosOf(getpid());
      began = absl::Now();
    }
    const absl::StatusOr<double> took = thread.Schedule(MakePod(i, flags.claims));
    if (!took.ok()) return took.status();
    micros.push_back(*took);
  }
  const double seconds = absl::ToDoubleSeconds(absl::Now() - began);
  printf(
      "{\"p50Micros\":%.1f,\"p99Micros\":%.1f,\"podsPerSecond\":%.0f,\"shimCpuMicros\":%.1f,"
      "\"hostsCpuMicros\":%.1f}\n",
      bench::Quantile(micros, 0.5), bench::Quantile(micros, 0.99), flags.pods / seconds,
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
