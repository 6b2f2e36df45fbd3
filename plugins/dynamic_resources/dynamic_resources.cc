#include "plugins/dynamic_resources/dynamic_resources.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "plugin_host/sdk/device_classes.h"
#include "plugin_host/sdk/post_filter.h"
#include "plugin_host/sdk/queueing_hint.h"
#include "plugin_host/sdk/resources.h"
#include "plugin_host/sdk/validation.h"

namespace outboard::dynamic_resources {
namespace {

using sdk::Verdict;

const char kArgsSchema[] = R"json({
  "type": "object", "additionalProperties": false,
  "properties": {
    "filterTimeout": {"type": "string", "default": "10s",
      "description": "Maximum time of the search for devices on a node; 0s: unlimited."},
    "bindingTimeout": {"type": "string", "default": "600s",
      "description": "Maximum time for devices to become ready; at least 1s."}}})json";

// kube-scheduler's error if the attempt did not reach this plugin's PreFilter.
constexpr char kNotFound[] = "not found";

Verdict Refuse(absl::string_view feature) {
  return Verdict::Unresolvable(absl::StrCat("pod uses ", feature, ", which plugin ",
                                            "DynamicResources decides; this host does not serve it "
                                            "yet"));
}

struct Wanted {
  std::string resource;
  std::string device_class;  // Empty: no class provides it.
};

// The pod's extended resources, by name, if a class provides at least one of them.
std::vector<Wanted> WantedBy(const v1beta1::Pod& pod, const sdk::DeviceClasses& classes) {
  std::vector<Wanted> wanted;
  if (classes.empty()) return wanted;
  bool any = false;
  for (const auto& [resource, amount] : sdk::ComputePodRequests(pod).extended) {
    if (amount == 0) continue;
    if (!sdk::IsExtendedResourceName(resource) &&
        !absl::StartsWith(resource, sdk::kDeviceClassPrefix)) {
      continue;
    }
    const std::string* device_class = classes.ClassOf(resource);
    any |= device_class != nullptr;
    wanted.push_back({resource, device_class == nullptr ? "" : *device_class});
  }
  if (!any) wanted.clear();
  return wanted;
}

// Exists for every pod, as in kube-scheduler: its presence means that PreFilter ran.
struct State : sdk::AttemptState {
  struct Resource {
    std::string name;
    // For nodes without a device plugin, if a class provides the resource.
    std::optional<Verdict> refusal;
  };
  // All that kube-scheduler would check on each node; empty if no class provides any of them.
  std::vector<Resource> resources;
};

class DynamicResources : public sdk::Plugin,
                         public sdk::PreEnqueuePlugin,
                         public sdk::PreFilterPlugin,
                         public sdk::FilterPlugin,
                         public sdk::PostFilterPlugin,
                         public sdk::ScorePlugin,
                         public sdk::ReservePlugin,
                         public sdk::PreBindPlugin,
                         public sdk::QueueingHintPlugin,
                         public sdk::ClusterObserver {
 public:
  // kube-scheduler holds pods whose claims do not exist; this host does not know claims.
  Verdict PreEnqueue(const sdk::PodView&, const sdk::ClusterView&, absl::Time) const override {
    return Verdict::Success();
  }

  Verdict PreFilter(const sdk::Attempt& attempt, sdk::PreFilterResult*) const override {
    auto& state = attempt.NewFilterState<State>();
    const v1beta1::Pod& pod = attempt.pod().proto();
    if (!pod.claims().empty()) {
      return Refuse(absl::StrCat("resource claim \"", pod.claims(0).name(), "\""));
    }
    const std::vector<Wanted> wanted = WantedBy(pod, device_classes_);
    if (wanted.empty()) return Verdict::Skip();
    for (const Wanted& resource : wanted) {
      state.resources.push_back({resource.resource, std::nullopt});
      if (resource.device_class.empty()) continue;
      state.resources.back().refusal = Refuse(
          absl::StrCat("resource ", resource.resource, " of device class \"", resource.device_class,
                       "\", which the node has no device plugin for"));
    }
    return Verdict::Success();
  }

  // NodeResourcesFit handles nodes whose device plugin provides the resource.
  void Filter(const sdk::Attempt& attempt, const sdk::NodeBlock& block,
              sdk::FilterSink& sink) const override {
    const auto* state = attempt.filter_state<State>();
    block.ForEach([&](int i, sdk::Slot slot) {
      if (state == nullptr) {
        sink.Fail(i, kNotFound);
        return;
      }
      const auto& allocatable = attempt.cluster().node(slot).proto().allocatable().scalar();
      for (const State::Resource& resource : state->resources) {
        const auto it = allocatable.find(resource.name);
        if (it != allocatable.end() && (it->second > 0 || !resource.refusal)) continue;
        sink.Reject(i, resource.refusal ? *resource.refusal : no_such_resource_);
        return;
      }
    });
  }

  Verdict PostFilter(const sdk::Attempt& attempt, sdk::DryRun&,
                     sdk::PostFilterAnswer*) const override {
    const auto* state = attempt.filter_state<State>();
    if (state == nullptr) return Verdict::Error(kNotFound);
    return Verdict(v1beta1::CODE_UNSCHEDULABLE, state->resources.empty()
                                                    ? "no new claims to deallocate"
                                                    : "still not schedulable");
  }

  // Only claims' allocations have a score, and there are none.
  Verdict Score(const sdk::Attempt& attempt, absl::Span<const sdk::Slot>,
                absl::Span<int64_t> raw) const override {
    if (attempt.filter_state<State>() == nullptr) return Verdict::Error(kNotFound);
    std::fill(raw.begin(), raw.end(), 0);
    return Verdict::Success();
  }

  // Pods that get here have nothing to reserve or bind.
  Verdict Reserve(const sdk::Attempt&, const sdk::NodeView&, sdk::ReserveAnswer*) override {
    return Verdict::Success();
  }
  void Unreserve(const sdk::Attempt&, absl::string_view, std::vector<sdk::WaitDecision>*) override {
  }
  Verdict PreBind(const sdk::Attempt&, absl::string_view, const sdk::PreBindProgress&) override {
    return Verdict::Success();
  }

  sdk::Hint QueueingHint(const sdk::PodView& pod, const sdk::ObjectChange& change) const override {
    if (change.new_pod == nullptr) return sdk::Hint::kQueue;
    return change.new_pod->uid() == pod.uid() ? sdk::Hint::kQueue : sdk::Hint::kSkip;
  }

  void OnReset() override { device_classes_.Clear(); }
  void OnObjectChanged(const v1beta1::ClusterObject* old,
                       const v1beta1::ClusterObject& object) override {
    device_classes_.Change(old, object);
  }
  void OnObjectRemoved(const v1beta1::ClusterObject& object) override {
    device_classes_.Remove(object);
  }

 private:
  const Verdict no_such_resource_ = Verdict::Unresolvable("cannot fit resource");
  sdk::DeviceClasses device_classes_;
};

// Without allocations the arguments have no effect; invalid values are still reported.
void CheckArgs(const sdk::ArgsObject& args) {
  constexpr char kFilterTimeout[] = "filterTimeout";
  constexpr char kBindingTimeout[] = "bindingTimeout";
  const auto text = [](absl::Duration value) {
    return value == absl::ZeroDuration() ? "0s" : absl::FormatDuration(value);
  };
  if (const absl::Duration value = args.Duration(kFilterTimeout, absl::Seconds(10));
      value < absl::ZeroDuration()) {
    args.Problem(kFilterTimeout, sdk::InvalidValue(text(value), "must be zero or positive"));
  }
  if (const absl::Duration value = args.Duration(kBindingTimeout, absl::Seconds(600));
      value < absl::Seconds(1)) {
    args.Problem(kBindingTimeout, sdk::InvalidValue(text(value), "must be at least 1 second"));
  }
}

}  // namespace

sdk::PluginDescriptor Descriptor() {
  sdk::PluginDescriptor d;
  d.name = "DynamicResources";
  d.extension_points = {v1beta1::EXTENSION_POINT_PRE_ENQUEUE, v1beta1::EXTENSION_POINT_PRE_FILTER,
                        v1beta1::EXTENSION_POINT_FILTER,      v1beta1::EXTENSION_POINT_POST_FILTER,
                        v1beta1::EXTENSION_POINT_SCORE,       v1beta1::EXTENSION_POINT_RESERVE,
                        v1beta1::EXTENSION_POINT_PRE_BIND};
  d.args_schema = kArgsSchema;
  // As kube-scheduler's, except for ResourceClaims and ResourceSlices, which the cluster cache does
  // not have, and for generated claims in a pod's status, which the contract does not carry.
  using Event = v1beta1::ClusterEvent;
  d.wake_up_events = {sdk::WakeOn("Node", {Event::ACTION_ADD, Event::ACTION_UPDATE_NODE_LABEL,
                                           Event::ACTION_UPDATE_NODE_ALLOCATABLE}),
                      sdk::WakeOn("Pod", {Event::ACTION_UPDATE_OTHER}),
                      sdk::WakeOn("DeviceClass", {Event::ACTION_ADD, Event::ACTION_UPDATE_OTHER})};
  // Pods without claims need no call there, and pods with claims do not get that far.
  d.interests = {sdk::InterestIn(v1beta1::EXTENSION_POINT_PRE_ENQUEUE, {}),
                 sdk::InterestIn(v1beta1::EXTENSION_POINT_RESERVE, {})};
  d.signature = {{"spec.containers", "spec.resourceClaims"}};
  d.maturity = sdk::Maturity::kBeta;
  d.create = [](const sdk::PluginContext& context) -> absl::StatusOr<std::unique_ptr<sdk::Plugin>> {
    CheckArgs(context.args->root());
    return std::make_unique<DynamicResources>();
  };
  sdk::RequireEarlierPoint(&d, v1beta1::EXTENSION_POINT_FILTER,
                           v1beta1::EXTENSION_POINT_PRE_FILTER);
  sdk::RequireEarlierPoint(&d, v1beta1::EXTENSION_POINT_POST_FILTER,
                           v1beta1::EXTENSION_POINT_PRE_FILTER);
  sdk::RequireEarlierPoint(&d, v1beta1::EXTENSION_POINT_SCORE, v1beta1::EXTENSION_POINT_PRE_FILTER);
  return d;
}

}  // namespace outboard::dynamic_resources
