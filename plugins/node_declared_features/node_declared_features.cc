#include "plugins/node_declared_features/node_declared_features.h"

#include <algorithm>
#include <memory>

#include "plugin_host/sdk/queueing_hint.h"

namespace outboard::node_declared_features {
namespace {

using Event = v1beta1::ClusterEvent;

// Marks that PreFilter ran; the required features are in the pod.
struct Required : sdk::AttemptState {};

// The shim infers the required features when it reads the pod, from fields that the contract does
// not have.
class NodeDeclaredFeatures : public sdk::Plugin,
                             public sdk::PreFilterPlugin,
                             public sdk::FilterPlugin,
                             public sdk::QueueingHintPlugin {
 public:
  sdk::Verdict PreFilter(const sdk::Attempt& attempt, sdk::PreFilterResult* result) const override {
    if (attempt.pod().proto().required_node_features().empty()) return sdk::Verdict::Skip();
    attempt.NewFilterState<Required>();
    return sdk::Verdict::Success();
  }

  void Filter(const sdk::Attempt& attempt, const sdk::NodeBlock& block,
              sdk::FilterSink& sink) const override {
    const bool prepared = attempt.filter_state<Required>() != nullptr;
    const auto& required = attempt.pod().proto().required_node_features();
    block.ForEach([&](int i, sdk::Slot slot) {
      if (!prepared) {
        sink.Fail(i, "error reading \"PreFilterNodeDeclaredFeatures\" from cycle-state: not found");
        return;
      }
      // Both lists are sorted.
      const auto& declared = attempt.cluster().node(slot).proto().declared_features();
      if (!std::includes(declared.begin(), declared.end(), required.begin(), required.end())) {
        sink.Reject(i, mismatch_);
      }
    });
  }

  // Any change of a node's features queues the pod. A pod's own update queues only that pod, and
  // only if its required features changed.
  sdk::Hint QueueingHint(const sdk::PodView& pod, const sdk::ObjectChange& change) const override {
    const auto same = [](const auto& a, const auto& b) {
      return std::equal(a.begin(), a.end(), b.begin(), b.end());
    };
    bool helps = true;
    if (change.new_pod != nullptr) {
      helps = change.new_pod->uid() == pod.uid() && !same(change.old_pod->required_node_features(),
                                                          change.new_pod->required_node_features());
    } else if (change.old_node != nullptr) {
      helps = !same(change.old_node->declared_features(), change.new_node->declared_features());
    }
    return helps ? sdk::Hint::kQueue : sdk::Hint::kSkip;
  }

 private:
  const sdk::Verdict mismatch_ =
      sdk::Verdict::Unresolvable("node(s) didn't match Pod's required features");
};

}  // namespace

sdk::PluginDescriptor Descriptor() {
  sdk::PluginDescriptor d;
  d.name = "NodeDeclaredFeatures";
  d.extension_points = {v1beta1::EXTENSION_POINT_PRE_FILTER, v1beta1::EXTENSION_POINT_FILTER};
  d.wake_up_events = {
      sdk::WakeOn("Node", {Event::ACTION_ADD, Event::ACTION_UPDATE_NODE_DECLARED_FEATURE}),
      sdk::WakeOn("Pod", {Event::ACTION_UPDATE_POD_LABEL, Event::ACTION_UPDATE_POD_SCALE_DOWN,
                          Event::ACTION_UPDATE_POD_TOLERATION,
                          Event::ACTION_UPDATE_POD_SCHEDULING_GATES_ELIMINATED,
                          Event::ACTION_UPDATE_OTHER})};
  d.signature = {{"spec.containers"}};
  d.maturity = sdk::Maturity::kBeta;
  d.create = [](const sdk::PluginContext&) -> absl::StatusOr<std::unique_ptr<sdk::Plugin>> {
    return std::make_unique<NodeDeclaredFeatures>();
  };
  sdk::RequireEarlierPoint(&d, v1beta1::EXTENSION_POINT_FILTER,
                           v1beta1::EXTENSION_POINT_PRE_FILTER);
  return d;
}

}  // namespace outboard::node_declared_features
