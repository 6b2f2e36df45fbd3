#include "plugins/scheduling_gates/scheduling_gates.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "plugin_host/sdk/queueing_hint.h"

namespace outboard::scheduling_gates {
namespace {

class SchedulingGates : public sdk::Plugin,
                        public sdk::PreEnqueuePlugin,
                        public sdk::QueueingHintPlugin {
 public:
  sdk::Verdict PreEnqueue(const sdk::PodView& pod, const sdk::ClusterView& cluster,
                          absl::Time now) const override {
    const auto& gates = pod.proto().scheduling_gates();
    if (gates.empty()) return sdk::Verdict::Success();
    return sdk::Verdict::Unresolvable(
        absl::StrCat("waiting for scheduling gates: [", absl::StrJoin(gates, " "), "]"));
  }

  sdk::Hint QueueingHint(const sdk::PodView& pod, const sdk::ObjectChange& change) const override {
    return change.new_pod->uid() == pod.uid() ? sdk::Hint::kQueue : sdk::Hint::kSkip;
  }
};

}  // namespace

sdk::PluginDescriptor Descriptor() {
  sdk::PluginDescriptor d;
  d.name = "SchedulingGates";
  d.extension_points = {v1beta1::EXTENSION_POINT_PRE_ENQUEUE};
  d.wake_up_events = {
      sdk::WakeOn("Pod", {v1beta1::ClusterEvent::ACTION_UPDATE_POD_SCHEDULING_GATES_ELIMINATED})};
  d.interests = {sdk::InterestIn(v1beta1::EXTENSION_POINT_PRE_ENQUEUE, {"spec.schedulingGates"})};
  d.maturity = sdk::Maturity::kBeta;
  d.create = [](const sdk::PluginContext&) -> absl::StatusOr<std::unique_ptr<sdk::Plugin>> {
    return std::make_unique<SchedulingGates>();
  };
  return d;
}

}  // namespace outboard::scheduling_gates
