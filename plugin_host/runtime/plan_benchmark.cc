// Several pods placed in one call, without transport: the host's time for each.
#include <benchmark/benchmark.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "plugin_host/runtime/benchmark_session.h"
#include "plugin_host/sdk/pod_groups.h"
#include "plugin_host/sdk/testing/builders.h"
#include "plugins/builtin_plugins.h"

namespace outboard::runtime {
namespace {

using sdk::testing::PodBuilder;

struct Bench {
  explicit Bench(int nodes, bool groups) {
    if (!RegisterBuiltinPlugins(&registry).ok()) abort();
    v1beta1::ConfigureRequest request = DefaultProfile(registry);
    if (groups) {
      for (auto& point : *request.mutable_profiles(0)->mutable_points()) {
        if (point.extension_point() == v1beta1::EXTENSION_POINT_PRE_FILTER)
          point.add_plugins("AtomicReplicaCoordinator");
      }
    }
    v1beta1::ConfigureResponse configured;
    session.Configure(request, &configured);
    if (!configured.problems().empty()) abort();
    FillSession(nodes, &session);
    v1beta1::CycleRequest& cycle = *call.mutable_cycle();
    cycle.mutable_header()->set_profile("default-scheduler");
    cycle.mutable_search();
    cycle.set_deadline_micros(60'000'000);
  }
  void Plan(benchmark::State& state, int pods) {
    uint64_t attempt = 0;
    for (auto _ : state) {
      response.Clear();
      call.mutable_cycle()->mutable_header()->set_attempt_id(attempt +=
                                                             static_cast<uint64_t>(pods));
      if (!session.Plan(call, absl::UnixEpoch(), &response).ok()) abort();
      if (response.plan().placements_size() != pods) return state.SkipWithError("not placed");
      state.PauseTiming();
      v1beta1::SyncRequest end;
      end.set_phase(v1beta1::SyncRequest::PHASE_DELTA);
      end.set_version(2);
      for (int i = 0; i < pods; ++i) end.add_ended_attempts(attempt + static_cast<uint64_t>(i));
      if (!session.Apply(end, absl::UnixEpoch()).ok()) abort();
      state.ResumeTiming();
    }
    state.counters["time_per_pod"] =
        benchmark::Counter(static_cast<double>(state.iterations()) * pods,
                           benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  }

  sdk::PluginRegistry registry;
  Session session{"s", &registry};
  v1beta1::PlanRequest call;
  v1beta1::PlanResponse response;
};

// Interchangeable pods, one call. Arguments: nodes; pods.
void BM_Batch(benchmark::State& state) {
  Bench bench(static_cast<int>(state.range(0)), /*groups=*/false);
  const int pods = static_cast<int>(state.range(1));
  v1beta1::SyncRequest more;
  more.set_phase(v1beta1::SyncRequest::PHASE_DELTA);
  more.set_version(2);
  for (int i = 0; i < pods; ++i) {
    *more.add_changes()->mutable_pod_upsert()->mutable_pod() =
        PodBuilder(absl::StrCat("b", i)).Requests({{"cpu", "500m"}, {"memory", "1Gi"}});
    if (i > 0) bench.call.add_next_pod_uids(absl::StrCat("default/b", i));
  }
  if (!bench.session.Apply(more, absl::UnixEpoch()).ok()) abort();
  bench.call.mutable_cycle()->set_pod_uid("default/b0");
  bench.Plan(state, pods);
}
BENCHMARK(BM_Batch)->Args({5000, 64})->Args({5000, 1000})->Unit(benchmark::kMicrosecond);

// A group, one call. Arguments: nodes; members; 1: all in one rack of 100.
void BM_Group(benchmark::State& state) {
  Bench bench(static_cast<int>(state.range(0)), /*groups=*/true);
  const int pods = static_cast<int>(state.range(1));
  v1beta1::SyncRequest more;
  more.set_phase(v1beta1::SyncRequest::PHASE_DELTA);
  more.set_version(2);
  v1beta1::GenericObject* group =
      more.add_changes()->mutable_object_upsert()->mutable_generic_object();
  group->set_resource(std::string(sdk::GroupResource(sdk::GroupDialect::kKubernetes)));
  group->set_namespace_("default");
  group->set_name("g");
  group->set_uid("uid-g");
  group->set_resource_version("1");
  group->set_json(absl::StrCat(
      R"({"metadata": {"name": "g"}, "spec": {"schedulingPolicy": {"gang": {"minCount": )", pods,
      "}}",
      state.range(2) != 0 ? R"(, "schedulingConstraints": {"topology": [{"key": "rack"}]})" : "",
      "}}"));
  for (int i = 0; i < pods; ++i) {
    PodBuilder pod(absl::StrCat("b", i));
    pod.Requests({{"cpu", "500m"}, {"memory", "1Gi"}});
    pod.proto().set_pod_group_name("g");
    pod.proto().set_scheduler_name("default-scheduler");
    *more.add_changes()->mutable_pod_upsert()->mutable_pod() = pod;
  }
  if (!bench.session.Apply(more, absl::UnixEpoch()).ok()) abort();
  bench.call.mutable_cycle()->set_pod_uid("default/b0");
  bench.call.set_place_group(true);
  bench.Plan(state, pods);
}
BENCHMARK(BM_Group)
    ->Args({5000, 4, 0})
    ->Args({5000, 4, 1})
    ->Args({5000, 64, 1})
    ->Args({5000, 1000, 0})
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace outboard::runtime
