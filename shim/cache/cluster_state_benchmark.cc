// The cost of the state per scheduled pod.
#include <benchmark/benchmark.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "shim/cache/cluster_state.h"

namespace outboard::cache {
namespace {

void Fill(ClusterState& state, int nodes, int pods) {
  for (int i = 0; i < nodes; ++i) {
    auto node = std::make_shared<kube::NodeObject>();
    node->node.set_name(absl::StrCat("node-", i));
    node->node.set_uid(node->node.name());
    node->node.mutable_allocatable()->set_cpu_millis(64000);
    node->node.mutable_allocatable()->set_pods(110000);
    (*node->node.mutable_labels())["topology.kubernetes.io/zone"] = absl::StrCat("zone-", i % 3);
    state.UpsertNode(node);
  }
  for (int i = 0; i < pods; ++i) {
    auto pod = std::make_shared<kube::PodObject>();
    pod->pod.set_uid(absl::StrCat("0f8fad5b-d9cb-469f-a165-", i));
    pod->pod.set_namespace_("default");
    pod->pod.set_name(absl::StrCat("pod-", i));
    (*pod->pod.mutable_labels())["app"] = "web";
    auto* container = pod->pod.add_containers();
    container->set_name("c");
    container->mutable_requests()->set_cpu_millis(100);
    container->mutable_requests()->set_memory_bytes(500 << 20);
    state.UpsertPod(pod);
  }
}

// Checks and assumes a pod, takes its host's changes, and forgets it, so that the state does not
// grow.
void BM_AssumeTakeForget(benchmark::State& bench) {
  ClusterState state;
  const int nodes = static_cast<int>(bench.range(0));
  Fill(state, nodes, 10000);
  const auto host = state.AddHost({});
  state.TakeChanges(host, absl::Now());
  std::vector<std::string> uids;
  for (int i = 0; i < 10000; ++i) uids.push_back(absl::StrCat("0f8fad5b-d9cb-469f-a165-", i));
  size_t i = 0;
  for (auto _ : bench) {
    const std::string& uid = uids[i % uids.size()];
    const uint32_t slot = static_cast<uint32_t>(i * 7919 % nodes);
    ++i;
    benchmark::DoNotOptimize(state.CheckFits(uid, slot));
    benchmark::DoNotOptimize(state.Assume(uid, slot));
    benchmark::DoNotOptimize(state.TakeChanges(host, absl::UnixEpoch()));
    benchmark::DoNotOptimize(state.Forget(uid));
    benchmark::DoNotOptimize(state.TakeChanges(host, absl::UnixEpoch()));
  }
}
BENCHMARK(BM_AssumeTakeForget)->Arg(100)->Arg(5000);

// The API server confirms an assumed pod.
void BM_Confirm(benchmark::State& bench) {
  ClusterState state;
  Fill(state, 5000, 1);
  const std::string uid = "0f8fad5b-d9cb-469f-a165-0";
  const kube::PodPtr pending = state.FindPod(uid);
  auto bound = std::make_shared<kube::PodObject>(*pending);
  bound->pod.set_node_name("node-7");
  for (auto _ : bench) {
    benchmark::DoNotOptimize(state.Assume(uid, state.SlotOf("node-7")));
    benchmark::DoNotOptimize(state.UpsertPod(bound));
    benchmark::DoNotOptimize(state.UpsertPod(pending));
  }
}
BENCHMARK(BM_Confirm);

// The longest piece of work on the scheduling thread when a host is added.
void BM_CaptureSnapshot(benchmark::State& bench) {
  ClusterState state;
  Fill(state, 1000, static_cast<int>(bench.range(0)));
  const auto host = state.AddHost({});
  for (auto _ : bench) benchmark::DoNotOptimize(state.TakeSnapshot(host, absl::UnixEpoch()));
  bench.SetItemsProcessed(bench.iterations() * bench.range(0));
}
BENCHMARK(BM_CaptureSnapshot)->Arg(10000)->Arg(100000)->Unit(benchmark::kMillisecond);

// The whole snapshot, as bytes.
void BM_SendSnapshot(benchmark::State& bench) {
  ClusterState state;
  Fill(state, 1000, static_cast<int>(bench.range(0)));
  const auto host = state.AddHost({});
  std::string bytes;
  for (auto _ : bench) {
    const auto snapshot = state.TakeSnapshot(host, absl::UnixEpoch());
    while (const auto piece = snapshot->Next(48 << 10)) piece->SerializeToString(&bytes);
  }
  bench.SetItemsProcessed(bench.iterations() * bench.range(0));
}
BENCHMARK(BM_SendSnapshot)->Arg(10000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace outboard::cache

BENCHMARK_MAIN();
