#include "plugin_host/sdk/testing/preemption_harness.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "plugin_host/cache/cluster_cache.h"
#include "plugin_host/runtime/evaluator.h"
#include "plugin_host/runtime/profile.h"
#include "plugin_host/sdk/plugin_registry.h"
#include "plugin_host/sdk/testing/figures.h"

namespace outboard::sdk::testing {
namespace {

constexpr char kPreemptionProfile[] = "default-scheduler";

class Room : public Plugin, public NodeFilterPlugin {
 public:
  Verdict FilterNode(const Attempt& attempt, const NodeView& node) const override {
    if (node.Label("closed")) return Verdict::Unresolvable("closed");
    if (node.Label("broken")) return Verdict::Error("broken");
    const Resources& wanted = attempt.pod().usage().requests;
    const auto is_short = [&](absl::string_view resource, int64_t amount) {
      return amount > 0 && node.Requested(resource) + amount > node.Allocatable(resource);
    };
    if (is_short("pods", 1)) return Verdict::Unschedulable("Too many pods");
    if (is_short("cpu", wanted.cpu_millis)) return Verdict::Unschedulable("Insufficient cpu");
    if (is_short("memory", wanted.memory_bytes))
      return Verdict::Unschedulable("Insufficient memory");
    for (const auto& [resource, amount] : wanted.extended) {
      if (is_short(resource, amount))
        return Verdict::Unschedulable(absl::StrCat("Insufficient ", resource));
    }
    return Verdict::Success();
  }
};

}  // namespace

PluginDescriptor RoomFilter() {
  PluginDescriptor room;
  room.name = "Room";
  room.extension_points = {v1beta1::EXTENSION_POINT_FILTER};
  room.create = [](const PluginContext&) -> absl::StatusOr<std::unique_ptr<Plugin>> {
    return std::make_unique<Room>();
  };
  return room;
}

struct PreemptionHarness::Impl : runtime::PushTarget {
  Figures figures;
  PluginRegistry registry;
  host_cache::ClusterCache cache;
  std::shared_ptr<const runtime::Profile> profile;
  runtime::Evaluator evaluator{&cache};
  absl::Time now = absl::FromUnixSeconds(1000);
  uint64_t last_attempt = 0;
  Slot next_slot = 0;
  std::vector<std::string> activated;

  // The profile removes its observers from the cache.
  ~Impl() override { profile.reset(); }
  void Decide(const std::string&, const WaitDecision&) override {}
  void SortKeysChanged(absl::Span<const std::string>) override {}
  void GateChanged(absl::Span<const std::string>) override {}
  void Activate(const std::string&, absl::Span<const std::string> uids) override {
    activated.insert(activated.end(), uids.begin(), uids.end());
  }
  void Write(const std::string&, v1beta1::Effect) override {}

  void Apply(v1beta1::SyncRequest request) {
    if (request.version() == 0) request.set_version(cache.version() + 1);
    const absl::Status applied = cache.Apply(request, now);
    ASSERT_TRUE(applied.ok()) << applied;
  }
};

absl::StatusOr<std::unique_ptr<PreemptionHarness>> PreemptionHarness::Create(
    const PluginDescriptor& plugin, const std::vector<PluginDescriptor>& filters,
    absl::string_view args_json) {
  auto impl = std::make_unique<Impl>();
  v1beta1::ProfileConfig config;
  config.set_name(kPreemptionProfile);
  if (absl::Status added = impl->registry.Add(plugin); !added.ok()) return added;
  v1beta1::PointConfig* post_filter = config.add_points();
  post_filter->set_extension_point(v1beta1::EXTENSION_POINT_POST_FILTER);
  post_filter->add_plugins(plugin.name);
  v1beta1::PointConfig* filter = config.add_points();
  filter->set_extension_point(v1beta1::EXTENSION_POINT_FILTER);
  v1beta1::PointConfig pre_filter;
  pre_filter.set_extension_point(v1beta1::EXTENSION_POINT_PRE_FILTER);
  for (const PluginDescriptor& descriptor : filters) {
    if (absl::Status added = impl->registry.Add(descriptor); !added.ok()) return added;
    filter->add_plugins(descriptor.name);
    const auto& points = descriptor.extension_points;
    if (std::count(points.begin(), points.end(), v1beta1::EXTENSION_POINT_PRE_FILTER) > 0)
      pre_filter.add_plugins(descriptor.name);
  }
  if (pre_filter.plugins_size() > 0) *config.add_points() = pre_filter;
  if (!args_json.empty()) {
    v1beta1::PluginArgs* args = config.add_args();
    args->set_plugin(plugin.name);
    args->set_args_json(std::string(args_json));
  }
  google::protobuf::RepeatedPtrField<v1beta1::ConfigProblem> problems;
  impl->profile = runtime::Profile::Create(config, impl->registry, &impl->cache, impl.get(),
                                           &problems, &impl->figures);
  if (impl->profile == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrJoin(problems, "\n", [](std::string* out, const v1beta1::ConfigProblem& problem) {
          absl::StrAppend(out, problem.field(), problem.field().empty() ? "" : ": ",
                          problem.message());
        }));
  }
  v1beta1::SyncRequest snapshot;
  snapshot.set_version(1);
  for (auto phase :
       {v1beta1::SyncRequest::PHASE_SNAPSHOT_BEGIN, v1beta1::SyncRequest::PHASE_SNAPSHOT_END}) {
    snapshot.set_phase(phase);
    impl->Apply(snapshot);
  }
  return std::unique_ptr<PreemptionHarness>(new PreemptionHarness(std::move(impl)));
}

PreemptionHarness::PreemptionHarness(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
PreemptionHarness::~PreemptionHarness() = default;

void PreemptionHarness::AddNode(const v1beta1::Node& node) {
  v1beta1::SyncRequest request;
  request.set_phase(v1beta1::SyncRequest::PHASE_DELTA);
  v1beta1::NodeUpsert* upsert = request.add_changes()->mutable_node_upsert();
  upsert->set_slot(impl_->next_slot++);
  *upsert->mutable_node() = node;
  impl_->Apply(request);
}

void PreemptionHarness::AddPod(const v1beta1::Pod& pod) {
  v1beta1::SyncRequest request;
  request.set_phase(v1beta1::SyncRequest::PHASE_DELTA);
  *request.add_changes()->mutable_pod_upsert()->mutable_pod() = pod;
  impl_->Apply(request);
}

void PreemptionHarness::Nominate(const std::string& uid, const std::string& node) {
  v1beta1::SyncRequest request;
  request.set_phase(v1beta1::SyncRequest::PHASE_DELTA);
  v1beta1::PodPlacement* placement = request.add_changes()->mutable_pod_placement();
  placement->set_uid(uid);
  placement->set_state(v1beta1::PLACEMENT_STATE_NOMINATED);
  placement->set_slot(cluster().nodes().slot_by_name.at(node));
  impl_->Apply(request);
}

void PreemptionHarness::AddBudget(const v1beta1::PodDisruptionBudget& budget) {
  v1beta1::ClusterObject object;
  *object.mutable_pod_disruption_budget() = budget;
  AddObject(object);
}

void PreemptionHarness::AddObject(const v1beta1::ClusterObject& object) {
  v1beta1::SyncRequest request;
  request.set_phase(v1beta1::SyncRequest::PHASE_DELTA);
  *request.add_changes()->mutable_object_upsert() = object;
  impl_->Apply(request);
}

void PreemptionHarness::SetNow(absl::Time now) { impl_->now = now; }

v1beta1::PostFilterResponse PreemptionHarness::Attempt(const v1beta1::Pod& pod) {
  AddPod(pod);
  const PodRecord& record = *impl_->cache.FindPod(pod.uid());
  runtime::AttemptRecord attempt;
  attempt.Begin(++impl_->last_attempt, pod.uid(), impl_->profile);
  v1beta1::PreFilterResponse pre_filter;
  impl_->evaluator.PreFilter(attempt, record, impl_->now, &pre_filter);
  EXPECT_FALSE(pre_filter.has_rejection() || pre_filter.has_node_names())
      << "not supported: PreFilter restricts the nodes: " << pre_filter.ShortDebugString();
  v1beta1::FilterResponse filter;
  std::vector<Slot> feasible;
  impl_->evaluator.Filter(attempt, record, impl_->now, cluster().node_order(), {}, &filter,
                          &feasible);
  EXPECT_TRUE(feasible.empty()) << "the pod fits without preemption";
  v1beta1::PostFilterResponse response;
  impl_->evaluator.PostFilter(attempt, record, impl_->now, {}, &response);
  return response;
}

std::vector<std::string> PreemptionHarness::Tick() {
  impl_->cache.Tick(impl_->now);
  return std::exchange(impl_->activated, {});
}

ClusterView PreemptionHarness::cluster() const { return impl_->cache.view(); }

std::optional<double> PreemptionHarness::Metric(
    const std::string& name, const std::vector<std::string>& label_values) const {
  return impl_->figures.Find({name, label_values});
}

namespace {

class TryEach : public Plugin, public PostFilterPlugin {
 public:
  Verdict PostFilter(const Attempt& attempt, DryRun& dry_run,
                     PostFilterAnswer* answer) const override {
    const std::vector<PodRecord*> pods = attempt.cluster().nodes().pods[0];
    for (PodRecord* pod : pods) {
      dry_run.Begin(0);
      EXPECT_FALSE(dry_run.Filter().ok());
      EXPECT_TRUE(dry_run.RemovePod(*pod).ok());
      if (dry_run.Filter().ok()) answer->candidates.push_back({0, {pod}, {}, 0});
      dry_run.End();
    }
    return Verdict::Success();
  }
};

}  // namespace

PluginDescriptor TryEachPod() {
  PluginDescriptor preemptor;
  preemptor.name = "TryEachPod";
  preemptor.extension_points = {v1beta1::EXTENSION_POINT_POST_FILTER};
  preemptor.create = [](const PluginContext&) { return std::make_unique<TryEach>(); };
  return preemptor;
}

}  // namespace outboard::sdk::testing
