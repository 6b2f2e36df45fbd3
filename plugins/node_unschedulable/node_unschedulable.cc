#include "plugins/node_unschedulable/node_unschedulable.h"

#include <memory>

#include "plugin_host/sdk/node_local_plugin.h"
#include "plugin_host/sdk/queueing_hint.h"
#include "plugin_host/sdk/tolerations.h"

namespace outboard::node_unschedulable {
namespace {

class NodeUnschedulable : public sdk::Plugin,
                          public sdk::NodeLocalPlugin,
                          public sdk::FilterPlugin,
                          public sdk::QueueingHintPlugin {
 public:
  NodeUnschedulable() {
    cordon_.set_key("node.kubernetes.io/unschedulable");
    cordon_.set_effect(v1beta1::TAINT_EFFECT_NO_SCHEDULE);
  }

  void Filter(const sdk::Attempt& attempt, const sdk::NodeBlock& block,
              sdk::FilterSink& sink) const override {
    const std::vector<uint8_t>& unschedulable = attempt.cluster().nodes().unschedulable;
    uint64_t cordoned = 0;
    block.ForEach(
        [&](int i, sdk::Slot slot) { cordoned |= uint64_t{unschedulable[slot] != 0} << i; });
    if (cordoned == 0 || sdk::ToleratesAny(attempt.pod().proto().tolerations(), cordon_)) return;
    sink.RejectAll(cordoned, unschedulable_);
  }

  sdk::Hint QueueingHint(const sdk::PodView& pod, const sdk::ObjectChange& change) const override {
    bool helps;
    if (change.new_pod != nullptr) {
      helps = change.new_pod->uid() == pod.uid() &&
              sdk::ToleratesAny(change.new_pod->tolerations(), cordon_);
    } else {
      helps = !change.new_node->unschedulable() &&
              (change.old_node == nullptr || change.old_node->unschedulable());
    }
    return helps ? sdk::Hint::kQueue : sdk::Hint::kSkip;
  }

 private:
  v1beta1::Taint cordon_;
  const sdk::Verdict unschedulable_ = sdk::Verdict::Unresolvable("node(s) were unschedulable");
};

}  // namespace

sdk::PluginDescriptor Descriptor() {
  sdk::PluginDescriptor d;
  d.name = "NodeUnschedulable";
  d.extension_points = {v1beta1::EXTENSION_POINT_FILTER};
  d.wake_up_events = {sdk::WakeOn("Node", {v1beta1::ClusterEvent::ACTION_ADD,
                                           v1beta1::ClusterEvent::ACTION_UPDATE_NODE_TAINT}),
                      sdk::WakeOn("Pod", {v1beta1::ClusterEvent::ACTION_UPDATE_POD_TOLERATION})};
  d.signature = {{"spec.tolerations"}};
  d.maturity = sdk::Maturity::kBeta;
  d.create = [](const sdk::PluginContext&) -> absl::StatusOr<std::unique_ptr<sdk::Plugin>> {
    return std::make_unique<NodeUnschedulable>();
  };
  return d;
}

}  // namespace outboard::node_unschedulable
