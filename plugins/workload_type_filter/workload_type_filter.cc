#include "plugins/workload_type_filter/workload_type_filter.h"

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "plugin_host/sdk/gpu_resources.h"
#include "plugin_host/sdk/label_values.h"
#include "plugin_host/sdk/node_sets.h"
#include "plugin_host/sdk/queueing_hint.h"
#include "plugin_host/sdk/resources.h"

namespace outboard::workload_type_filter {
namespace {

constexpr char kName[] = "WorkloadTypeFilter";
constexpr char kTypeLabel[] = "workload-type";
constexpr double kMaxCores = 1e6;

std::string ArgsSchema() {
  return absl::StrCat(R"json({
  "type": "object", "additionalProperties": false,
  "properties": {
    "minCPU": {"type": "number", "minimum": 0, "maximum": 1000000, "default": 2,
      "description": "Cores that must be free on a node for CPU-intensive pods."},
    )json",
                      sdk::kGpuResourceNamesSchema, "}}");
}

// Other plugins use other values of the label (`training`, `inference`).
enum class Need { kNothing, kCpu, kGpu };

Need NeedOf(const v1beta1::Pod& pod) {
  const std::string* type = sdk::FindValue(pod.labels(), kTypeLabel);
  if (type == nullptr) return Need::kNothing;
  if (absl::EqualsIgnoreCase(*type, "CPU-intensive")) return Need::kCpu;
  if (absl::EqualsIgnoreCase(*type, "GPU-intensive")) return Need::kGpu;
  return Need::kNothing;
}

int64_t CpuOf(const v1beta1::Pod& pod) {
  sdk::PodRequestsOptions options;
  options.use_status = true;
  return sdk::ComputePodRequests(pod, options).cpu_millis;
}

struct Needs : sdk::AttemptState {
  Need need = Need::kNothing;
};

class WorkloadTypeFilter : public sdk::Plugin,
                           public sdk::FilterPlugin,
                           public sdk::QueueingHintPlugin,
                           public sdk::ClusterObserver {
 public:
  WorkloadTypeFilter(int64_t min_cpu_millis, sdk::GpuResources gpus,
                     const sdk::ClusterView& cluster)
      : min_cpu_millis_(min_cpu_millis), gpus_(std::move(gpus)), cluster_(cluster) {}

  void Filter(const sdk::Attempt& attempt, const sdk::NodeBlock& block,
              sdk::FilterSink& sink) const override {
    const auto* state = attempt.filter_state<Needs>();
    if (state == nullptr) {
      auto& made = attempt.NewFilterState<Needs>();
      made.need = NeedOf(attempt.pod().proto());
      if (made.need == Need::kGpu) without_gpus_.Follow(attempt.cluster().nodes());
      state = &made;
    }
    switch (state->need) {
      case Need::kNothing:
        return;
      case Need::kCpu: {
        const sdk::NodeTable& nodes = attempt.cluster().nodes();
        block.ForEach([&](int i, sdk::Slot slot) {
          const int64_t allocatable = nodes.allocatable_cpu[slot];
          if (allocatable - nodes.requested_cpu[slot] >= min_cpu_millis_) return;
          // Evicting pods helps only if the node is large enough.
          sink.Reject(i, allocatable >= min_cpu_millis_ ? cpu_taken_ : no_cpu_);
        });
        return;
      }
      case Need::kGpu: {
        const auto is_without = [&](sdk::Slot slot) { return has_gpus_[slot] == 0; };
        sink.RejectAll(without_gpus_.Bits(0, block, is_without), no_gpu_);
        return;
      }
    }
  }

  // A node helps if it is large enough, and if it was not or grew. A pod that releases CPU helps
  // CPU-intensive pods. A changed label of the pod itself helps it.
  sdk::Hint QueueingHint(const sdk::PodView& pod, const sdk::ObjectChange& change) const override {
    const Need need = NeedOf(pod.proto());
    bool helps;
    if (change.new_node != nullptr) {
      helps = CouldTake(need, *change.new_node) &&
              (change.old_node == nullptr || !CouldTake(need, *change.old_node) ||
               (need == Need::kCpu && change.new_node->allocatable().cpu_millis() >
                                          change.old_node->allocatable().cpu_millis()));
    } else if (change.new_object != nullptr) {
      helps = need != Need::kCpu;  // A ResourceSlice: a node's devices.
    } else if (change.new_pod != nullptr && change.new_pod->uid() == pod.uid()) {
      helps = true;
    } else {
      const v1beta1::Pod& before = *change.old_pod;
      const bool had_place = !before.node_name().empty() || !before.nominated_node_name().empty();
      const int64_t left = change.new_pod == nullptr ? 0 : CpuOf(*change.new_pod);
      helps = need != Need::kGpu && had_place && CpuOf(before) > left;
    }
    return helps ? sdk::Hint::kQueue : sdk::Hint::kSkip;
  }

  void OnReset() override {
    gpus_.claims().Clear();
    has_gpus_.clear();
    without_gpus_.Forget();
  }
  void OnNodeChanged(sdk::Slot slot) override {
    if (slot >= has_gpus_.size()) has_gpus_.resize(slot + 1, 0);
    const uint8_t has = gpus_.AllocatableOn(cluster_.node(slot)) > 0 ? 1 : 0;
    if (std::exchange(has_gpus_[slot], has) != has) without_gpus_.Forget();
  }
  void OnObjectChanged(const v1beta1::ClusterObject* old,
                       const v1beta1::ClusterObject& object) override {
    if (gpus_.claims().Set(object)) ReadNodes();
  }
  void OnObjectRemoved(const v1beta1::ClusterObject& object) override {
    if (gpus_.claims().Remove(object)) ReadNodes();
  }

 private:
  // A claim may be the first, with which the devices of all nodes count.
  void ReadNodes() {
    for (const sdk::Slot slot : cluster_.node_order()) OnNodeChanged(slot);
  }
  // Whether the node could take the pod if it were empty.
  bool CouldTake(Need need, const v1beta1::Node& node) const {
    switch (need) {
      case Need::kNothing:
        return true;
      case Need::kCpu:
        return node.allocatable().cpu_millis() >= min_cpu_millis_;
      case Need::kGpu:
        break;
    }
    const auto& extended = node.allocatable().scalar();
    for (const std::string& name : gpus_.names()) {
      const auto it = extended.find(name);
      if (it != extended.end() && it->second > 0) return true;
    }
    return gpus_.claims().active() && gpus_.claims().DevicesOn(node.name()) > 0;
  }

  const int64_t min_cpu_millis_;
  const sdk::GpuResources gpus_;
  const sdk::ClusterView cluster_;
  std::vector<uint8_t> has_gpus_;  // By slot.
  // One set, because the result is the same for all GPU-intensive pods.
  mutable sdk::NodeSets<int> without_gpus_;
  const sdk::Verdict cpu_taken_ = sdk::Verdict::Unschedulable("Node lacks CPU resources");
  const sdk::Verdict no_cpu_ = sdk::Verdict::Unresolvable("Node lacks CPU resources");
  const sdk::Verdict no_gpu_ = sdk::Verdict::Unresolvable("Node lacks GPU resources");
};

}  // namespace

sdk::PluginDescriptor Descriptor() {
  using Event = v1beta1::ClusterEvent;
  sdk::PluginDescriptor d;
  d.name = kName;
  d.extension_points = {v1beta1::EXTENSION_POINT_FILTER};
  d.args_schema = ArgsSchema();
  d.wake_up_events = {
      sdk::WakeOn("Pod", {Event::ACTION_DELETE, Event::ACTION_UPDATE_POD_LABEL,
                          Event::ACTION_UPDATE_POD_SCALE_DOWN}),
      sdk::WakeOn("Node", {Event::ACTION_ADD, Event::ACTION_UPDATE_NODE_ALLOCATABLE}),
      sdk::WakeOn(sdk::kResourceSlices, {Event::ACTION_ADD, Event::ACTION_UPDATE_OTHER})};
  sdk::DeclareGpuClaims(&d.declared_resources);
  d.signature = sdk::SignedParts(
      d.needed_fields, {"spec.containers", absl::StrCat("metadata.labels['", kTypeLabel, "']")});
  d.maturity = sdk::Maturity::kBeta;
  d.create = [](const sdk::PluginContext& context) -> absl::StatusOr<std::unique_ptr<sdk::Plugin>> {
    const sdk::ArgsObject root = context.args->root();
    double min_cpu = root.Double("minCPU", 2);
    if (!(min_cpu >= 0 && min_cpu <= kMaxCores)) {
      root.Problem("minCPU",
                   absl::StrCat("Invalid value: ", min_cpu, ": not in valid range [0, 1000000]"));
      min_cpu = 0;
    }
    // Rounded up, as Kubernetes rounds requests.
    const auto millis = static_cast<int64_t>(std::ceil(min_cpu * 1000 - 1e-6));
    return std::make_unique<WorkloadTypeFilter>(millis, sdk::GpuResources::Read(root),
                                                context.cluster);
  };
  return d;
}

}  // namespace outboard::workload_type_filter
