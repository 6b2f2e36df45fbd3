// One fused cycle, without transport: the host's time for a plain pod with the plugins of the
// default profile.
//   outboard_runtime_benchmark --benchmark_min_time=1
#include <benchmark/benchmark.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "plugin_host/runtime/benchmark_session.h"
#include "plugin_host/runtime/plugin_times.h"
#include "plugin_host/runtime/session.h"
#include "plugin_host/sdk/testing/builders.h"
#include "plugins/builtin_plugins.h"

namespace outboard::runtime {
namespace {

using sdk::testing::PodBuilder;

// Arguments: nodes; percentageOfNodesToScore (0: adaptive, as in the default profile).
void BM_Cycle(benchmark::State& state) {
  sdk::PluginRegistry registry;
  if (!RegisterBuiltinPlugins(&registry).ok()) abort();
  Session session("s", &registry);
  v1beta1::ConfigureResponse configured;
  session.Configure(DefaultProfile(registry), &configured);
  if (!configured.problems().empty()) return state.SkipWithError("not configured");
  FillSession(static_cast<int>(state.range(0)), &session);
  v1beta1::CycleRequest request;
  request.mutable_header()->set_profile("default-scheduler");
  request.mutable_header()->set_attempt_id(1);
  request.set_pod_uid("default/p");
  request.set_percentage_of_nodes_to_score(static_cast<uint32_t>(state.range(1)));
  v1beta1::CycleResponse response;
  uint32_t offset = 0;
  for (auto _ : state) {
    response.Clear();
    request.mutable_search()->set_start_offset(offset);
    if (!session.Cycle(request, absl::UnixEpoch(), &response).ok()) abort();
    offset = (offset + response.evaluation().filter().processed()) %
             static_cast<uint32_t>(state.range(0));
  }
  state.counters["scored"] =
      static_cast<double>(response.evaluation().score().plugins().empty()
                              ? 0
                              : response.evaluation().score().plugins(0).scores().size());
}
// The same without the times of plugins (plugin_times.h): the difference is their cost.
void BM_CycleWithoutTimes(benchmark::State& state) {
  SetSlowPluginCall(absl::ZeroDuration());
  BM_Cycle(state);
  SetSlowPluginCall(absl::Milliseconds(50));
}
BENCHMARK(BM_CycleWithoutTimes)->Args({1000, 0})->Args({5000, 0})->Unit(benchmark::kMicrosecond);
BENCHMARK(BM_Cycle)
    ->Args({100, 0})
    ->Args({1000, 0})
    ->Args({5000, 0})
    ->Args({20000, 0})
    ->Args({5000, 100})
    ->Unit(benchmark::kMicrosecond);

// Affinity of pods of BM_AffinityCycle to pods with the same label `app`.
enum Affinity {
  kNothing,               // For the pod to place; the others as with kApartOnHosts.
  kTogetherInZone,        // Required.
  kApartOnHosts,          // Required.
  kPreferApartOnHosts,    // Preferred.
  kPreferTogetherInZone,  // Preferred.
};

v1beta1::Pod AffinityPod(const std::string& name, int app, Affinity kind) {
  PodBuilder pod(name);
  pod.Requests({{"cpu", "100m"}, {"memory", "500Mi"}}).Label("app", absl::StrCat("app-", app));
  if (kind == kNothing) return pod;
  v1beta1::Affinity* affinity = pod.proto().mutable_affinity();
  const bool together = kind == kTogetherInZone || kind == kPreferTogetherInZone;
  auto* rules = together ? affinity->mutable_pod_affinity() : affinity->mutable_pod_anti_affinity();
  v1beta1::PodAffinityTerm* term;
  if (kind == kTogetherInZone || kind == kApartOnHosts) {
    term = rules->add_required_during_scheduling_ignored_during_execution();
  } else {
    auto* weighted = rules->add_preferred_during_scheduling_ignored_during_execution();
    weighted->set_weight(100);
    term = weighted->mutable_pod_affinity_term();
  }
  term->set_topology_key(together ? "topology.kubernetes.io/zone" : "kubernetes.io/hostname");
  (*term->mutable_label_selector()->mutable_match_labels())["app"] = absl::StrCat("app-", app);
  return pod;
}

// Two pods per node in four apps, all with the same affinity, and one pod of the first app to
// place. Arguments: nodes; Affinity; whether another pod of the app is added and removed before
// each cycle.
void BM_AffinityCycle(benchmark::State& state) {
  sdk::PluginRegistry registry;
  if (!RegisterBuiltinPlugins(&registry).ok()) abort();
  Session session("s", &registry);
  v1beta1::ConfigureResponse configured;
  session.Configure(DefaultProfile(registry), &configured);
  if (!configured.problems().empty()) return state.SkipWithError("not configured");
  const int nodes = static_cast<int>(state.range(0));
  const Affinity affinity = static_cast<Affinity>(state.range(1));
  FillSession(nodes, &session);
  v1beta1::SyncRequest more;
  more.set_phase(v1beta1::SyncRequest::PHASE_DELTA);
  more.set_version(1);
  for (int i = 0; i < 2 * nodes; ++i) {
    v1beta1::Pod* pod = more.add_changes()->mutable_pod_upsert()->mutable_pod();
    *pod = AffinityPod(absl::StrCat("wishing-", i), i * 4 / (2 * nodes),
                       affinity == kNothing ? kApartOnHosts : affinity);
    pod->set_node_name(absl::StrCat("node-", i % nodes));
  }
  for (const char* name : {"wisher", "passer-by"}) {
    *more.add_changes()->mutable_pod_upsert()->mutable_pod() = AffinityPod(name, 0, affinity);
  }
  if (!session.Apply(more, absl::UnixEpoch()).ok()) abort();
  v1beta1::SyncRequest come;
  come.set_phase(v1beta1::SyncRequest::PHASE_DELTA);
  come.set_version(1);
  come.add_changes()->mutable_pod_placement()->set_uid("default/passer-by");
  v1beta1::SyncRequest go = come;
  come.mutable_changes(0)->mutable_pod_placement()->set_state(v1beta1::PLACEMENT_STATE_ASSUMED);
  come.mutable_changes(0)->mutable_pod_placement()->set_slot(nodes / 2);
  go.mutable_changes(0)->mutable_pod_placement()->set_state(v1beta1::PLACEMENT_STATE_UNPLACED);
  v1beta1::CycleRequest request;
  request.mutable_header()->set_profile("default-scheduler");
  request.mutable_header()->set_attempt_id(1);
  request.set_pod_uid("default/wisher");
  request.mutable_search();
  v1beta1::CycleResponse response;
  uint32_t offset = 0;
  for (auto _ : state) {
    if (state.range(2) != 0) {
      if (!session.Apply(come, absl::UnixEpoch()).ok()) abort();
      if (!session.Apply(go, absl::UnixEpoch()).ok()) abort();
    }
    response.Clear();
    request.mutable_search()->set_start_offset(offset);
    if (!session.Cycle(request, absl::UnixEpoch(), &response).ok()) abort();
    offset = (offset + response.evaluation().filter().processed()) % static_cast<uint32_t>(nodes);
  }
  state.counters["processed"] = static_cast<double>(response.evaluation().filter().processed());
  state.counters["scored"] =
      static_cast<double>(response.evaluation().score().plugins().empty()
                              ? 0
                              : response.evaluation().score().plugins(0).scores().size());
}
BENCHMARK(BM_AffinityCycle)
    ->Args({5000, kNothing, 0})
    ->Args({5000, kTogetherInZone, 0})
    ->Args({5000, kApartOnHosts, 0})
    ->Args({5000, kApartOnHosts, 1})
    ->Args({5000, kPreferApartOnHosts, 0})
    ->Args({5000, kPreferTogetherInZone, 0})
    ->Unit(benchmark::kMicrosecond);

// Two pods of `app: web` on every node, a service that selects them, and pods to place: `hard` with
// a constraint over zones, `soft` with the profile's defaults for the service's pods.
void AddSpreadPods(int nodes, Session* session) {
  v1beta1::SyncRequest request;
  request.set_phase(v1beta1::SyncRequest::PHASE_DELTA);
  request.set_version(2);
  for (int i = 0; i < 2 * nodes; ++i) {
    *request.add_changes()->mutable_pod_upsert()->mutable_pod() =
        PodBuilder(absl::StrCat("web-", i))
            .Label("app", "web")
            .OnNode(absl::StrCat("node-", i % nodes));
  }
  auto* service = request.add_changes()->mutable_object_upsert()->mutable_service();
  service->set_namespace_("default");
  service->set_name("web");
  (*service->mutable_selector())["app"] = "web";
  *request.add_changes()->mutable_pod_upsert()->mutable_pod() =
      PodBuilder("soft").Label("app", "web").Requests({{"cpu", "500m"}, {"memory", "1Gi"}});
  v1beta1::Pod hard =
      PodBuilder("hard").Label("app", "web").Requests({{"cpu", "500m"}, {"memory", "1Gi"}});
  auto* constraint = hard.add_topology_spread_constraints();
  constraint->set_topology_key("topology.kubernetes.io/zone");
  constraint->set_max_skew(2);
  constraint->set_when_unsatisfiable(
      v1beta1::TopologySpreadConstraint::WHEN_UNSATISFIABLE_DO_NOT_SCHEDULE);
  (*constraint->mutable_label_selector()->mutable_match_labels())["app"] = "web";
  *request.add_changes()->mutable_pod_upsert()->mutable_pod() = hard;
  if (!session->Apply(request, absl::UnixEpoch()).ok()) abort();
}

// Arguments: nodes; percentageOfNodesToScore; 1: the pod has a hard constraint, 0: the defaults'
// soft ones. Between two cycles a pod of the service is removed and added again, like the deltas of
// a real run.
void BM_SpreadCycle(benchmark::State& state) {
  sdk::PluginRegistry registry;
  if (!RegisterBuiltinPlugins(&registry).ok()) abort();
  Session session("s", &registry);
  v1beta1::ConfigureResponse configured;
  session.Configure(DefaultProfile(registry), &configured);
  if (!configured.problems().empty()) return state.SkipWithError("not configured");
  const int nodes = static_cast<int>(state.range(0));
  FillSession(nodes, &session);
  AddSpreadPods(nodes, &session);
  v1beta1::CycleRequest request;
  request.mutable_header()->set_profile("default-scheduler");
  request.set_pod_uid(state.range(2) != 0 ? "default/hard" : "default/soft");
  request.set_percentage_of_nodes_to_score(static_cast<uint32_t>(state.range(1)));
  v1beta1::CycleResponse response;
  v1beta1::SyncRequest delta;
  delta.set_phase(v1beta1::SyncRequest::PHASE_DELTA);
  delta.set_version(2);
  *delta.add_changes()->mutable_pod_upsert()->mutable_pod() =
      PodBuilder("web-0").Label("app", "web").OnNode("node-0");
  uint64_t attempt = 0;
  uint32_t offset = 0;
  for (auto _ : state) {
    state.PauseTiming();
    if (!session.Apply(delta, absl::UnixEpoch()).ok()) abort();
    response.Clear();
    request.mutable_header()->set_attempt_id(++attempt);
    request.mutable_search()->set_start_offset(offset);
    state.ResumeTiming();
    if (!session.Cycle(request, absl::UnixEpoch(), &response).ok()) abort();
    offset = (offset + response.evaluation().filter().processed()) % static_cast<uint32_t>(nodes);
  }
  if (response.evaluation().score().plugins().empty())
    return state.SkipWithError("nothing was scored");
  state.counters["scored"] =
      static_cast<double>(response.evaluation().score().plugins(0).scores().size());
}
BENCHMARK(BM_SpreadCycle)
    ->Args({5000, 0, 1})
    ->Args({5000, 0, 0})
    ->Args({5000, 100, 1})
    ->Args({5000, 100, 0})
    ->Unit(benchmark::kMicrosecond);

// What a change of a placed pod costs the cache and the plugins' indexes.
void BM_PodUpdate(benchmark::State& state) {
  sdk::PluginRegistry registry;
  if (!RegisterBuiltinPlugins(&registry).ok()) abort();
  Session session("s", &registry);
  v1beta1::ConfigureResponse configured;
  session.Configure(DefaultProfile(registry), &configured);
  FillSession(5000, &session);
  AddSpreadPods(5000, &session);
  v1beta1::SyncRequest delta;
  delta.set_phase(v1beta1::SyncRequest::PHASE_DELTA);
  delta.set_version(2);
  *delta.add_changes()->mutable_pod_upsert()->mutable_pod() =
      PodBuilder("web-0").Label("app", "web").OnNode("node-0");
  for (auto _ : state) {
    if (!session.Apply(delta, absl::UnixEpoch()).ok()) abort();
  }
}
BENCHMARK(BM_PodUpdate)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace outboard::runtime
