// `./dev bench hop`: the cost of one call to the plugin host, by arrangement and cluster size.
//
// Starts a real outboard-host on a Unix socket and calls it as the shim does, with the default
// plugins and a plain pod:
//   fused  one message each way on the cycle stream: PreFilter, Filter, PreScore and Score
//   unary  the same four steps as four calls
//   empty  one unary call that does nothing (Probe), only the transport
#include <glog/logging.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/simulate/host_process.h"
#include "outboard/v1beta1/plugin_host.grpc.pb.h"
#include "shim/cache/cluster_state.h"
#include "shim/clock.h"
#include "shim/config/config.h"
#include "shim/framework/algorithm.h"
#include "shim/hosts/grpc_host_client.h"
#include "shim/hosts/host_loop.h"
#include "shim/hosts/plans.h"

namespace outboard {
namespace {

constexpr int kWarmUp = 200;
constexpr int kCalls = 3000;

kube::NodePtr MakeNode(int index) {
  auto node = std::make_shared<kube::NodeObject>();
  const std::string name = absl::StrCat("node-", index);
  node->node.set_uid(name);
  node->node.set_name(name);
  auto& labels = *node->node.mutable_labels();
  labels["kubernetes.io/hostname"] = name;
  labels["topology.kubernetes.io/zone"] = absl::StrCat("zone-", index % 3);
  v1beta1::ResourceList* allocatable = node->node.mutable_allocatable();
  allocatable->set_cpu_millis(4000);
  allocatable->set_memory_bytes(int64_t{32} << 30);
  allocatable->set_pods(110);
  node->resource_version = "1";
  return node;
}

kube::PodPtr MakePod() {
  auto pod = std::make_shared<kube::PodObject>();
  pod->pod.set_uid("pod");
  pod->pod.set_namespace_("default");
  pod->pod.set_name("pod");
  pod->pod.set_scheduler_name("default-scheduler");
  v1beta1::ResourceList* requests = pod->pod.add_containers()->mutable_requests();
  requests->set_cpu_millis(100);
  requests->set_memory_bytes(int64_t{500} << 20);
  pod->resource_version = "1";
  return pod;
}

struct Timing {
  double p50_us = 0;
  double p99_us = 0;
  double cpu_us = 0;  // of this process, for each call
};

double CpuMicros() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  const auto micros = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_usec);
  };
  return micros(usage.ru_utime) + micros(usage.ru_stime);
}

absl::StatusOr<Timing> Measure(const std::function<absl::Status()>& call) {
  std::vector<double> micros;
  double cpu_before = 0;
  for (int i = 0; i < kWarmUp + kCalls; ++i) {
    if (i == kWarmUp) cpu_before = CpuMicros();
    const absl::Time began = SteadyNow();
    if (absl::Status status = call(); !status.ok()) return status;
    if (i >= kWarmUp) micros.push_back(absl::ToDoubleMicroseconds(SteadyNow() - began));
  }
  const double cpu = (CpuMicros() - cpu_before) / kCalls;
  std::sort(micros.begin(), micros.end());
  return Timing{micros[micros.size() / 2], micros[micros.size() * 99 / 100], cpu};
}

// A connected host with `num_nodes` nodes and one pod.
class Bench {
 public:
  absl::Status SetUp(int num_nodes) {
    auto process = simulate::HostProcess::Start("", 0);
    if (!process.ok()) return process.status();
    process_ = *std::move(process);
    absl::StatusOr<hosts::HostConnection> host;
    const absl::Time give_up = SteadyNow() + absl::Seconds(10);
    do {
      channel_ = hosts::NewHostChannel(process_->address());
      host = hosts::Handshake(channel_, absl::Milliseconds(200));
    } while (!host.ok() && SteadyNow() < give_up);
    if (!host.ok()) return host.status();
    auto config =
        config::ParseConfig(absl::StrCat("apiVersion: config.outboard.dev/v1alpha1\nkind: "
                                         "ShimConfiguration\nhosts: [{name: bench, address: \"",
                                         process_->address(), "\"}]\n"),
                            "bench");
    if (!config.ok()) return config.status();
    auto plans = hosts::MakePlans(*config, {"bench"}, {{"bench", host->info}});
    if (!plans.ok()) return plans.status();
    profile_ = plans->profiles[0].algorithm;
    client_ = std::make_unique<hosts::GrpcHostClient>(&loop_, "bench", *host);
    // The same host without its fast path, so that the algorithm runs point by point.
    hosts::HostConnection plain = *host;
    plain.info.clear_capabilities();
    plain_client_ = std::make_unique<hosts::GrpcHostClient>(&loop_, "bench", plain);
    auto configured = client_->Configure(plans->configure["bench"], SteadyNow() + absl::Seconds(5));
    if (!configured.ok()) return configured.status();

    for (int i = 0; i < num_nodes; ++i) cluster_.UpsertNode(MakeNode(i));
    pod_ = MakePod();
    cluster_.UpsertPod(pod_);
    const cache::ClusterState::Cursor cursor = cluster_.AddHost({});
    for (const auto& chunk : cluster_.TakeChanges(cursor, SteadyNow())) client_->SendChanges(chunk);
    version_ = cluster_.VersionOf(cursor);
    client_->AwaitSnapshot(version_);
    const absl::Time ready_by = SteadyNow() + absl::Seconds(30);
    while (!client_->usable()) {
      loop_.Wait(ready_by);
      if (SteadyNow() > ready_by) return absl::UnavailableError("the host is not ready in time");
    }
    return absl::OkStatus();
  }

  absl::Status Cycle(framework::HostClient* client) {
    framework::AlgorithmRequest request;
    request.hosts = {{client, version_}};
    request.profile = &profile_;
    request.pod = pod_.get();
    request.attempt_id = ++attempt_;
    const framework::AlgorithmResult& result = algorithm_.Run(request);
    if (result.outcome == framework::AlgorithmResult::Outcome::kPlaced) {
      host_micros_ = algorithm_.response().evaluation_micros();
      return absl::OkStatus();
    }
    return absl::InternalError(absl::StrCat("the pod was not placed: ", result.status.ToString()));
  }

  absl::Status Run(int num_nodes) {
    if (absl::Status status = SetUp(num_nodes); !status.ok()) return status;
    auto fused = Measure([this] { return Cycle(client_.get()); });
    if (!fused.ok()) return fused.status();
    const long host_micros = static_cast<long>(host_micros_);  // as printf wants it
    auto unary = Measure([this] { return Cycle(plain_client_.get()); });
    if (!unary.ok()) return unary.status();
    auto stub = v1beta1::PluginHostService::NewStub(channel_);
    auto empty = Measure([&stub] {
      grpc::ClientContext context;
      v1beta1::ProbeResponse response;
      return stub->Probe(&context, v1beta1::ProbeRequest(), &response).ok()
                 ? absl::OkStatus()
                 : absl::UnavailableError("probe");
    });
    if (!empty.ok()) return empty.status();
    printf("| %d | %.0f / %.0f | %.0f | %ld | %.0f / %.0f | %.0f | %.0f / %.0f | %.1f |\n",
           num_nodes, fused->p50_us, fused->p99_us, fused->cpu_us, host_micros, unary->p50_us,
           unary->p99_us, unary->cpu_us, empty->p50_us, empty->p99_us,
           1000.0 * fused->p50_us / num_nodes);
    fflush(stdout);
    return absl::OkStatus();
  }

 private:
  std::unique_ptr<simulate::HostProcess> process_;
  hosts::HostLoop loop_;
  std::shared_ptr<grpc::Channel> channel_;
  cache::ClusterState cluster_;
  framework::Algorithm algorithm_{&cluster_};
  framework::AlgorithmProfile profile_;
  kube::PodPtr pod_;
  std::unique_ptr<hosts::GrpcHostClient> client_;
  std::unique_ptr<hosts::GrpcHostClient> plain_client_;
  uint64_t attempt_ = 0;
  int64_t version_ = 0;
  int64_t host_micros_ = 0;
};

int Main() {
  printf("Default plugins, a plain pod, %d calls each; µs, p50 / p99; CPU is the shim's side.\n\n",
         kCalls);
  printf(
      "| nodes | fused | CPU | host's share | unary, 4 calls | CPU | empty call | fused ns/node "
      "|\n");
  printf("|---:|---:|---:|---:|---:|---:|---:|---:|\n");
  for (const int nodes : {100, 1000, 5000, 20000}) {
    if (absl::Status status = Bench().Run(nodes); !status.ok()) {
      fprintf(stderr, "outboard-bench-hop: %s\n", status.ToString().c_str());
      return 1;
    }
  }
  return 0;
}

}  // namespace
}  // namespace outboard

int main(int, char** argv) {
  FLAGS_logtostderr = true;
  FLAGS_minloglevel = 1;
  google::InitGoogleLogging(argv[0]);
  return outboard::Main();
}
