#include "plugins/node_name/node_name.h"

#include <memory>

#include "plugin_host/sdk/node_local_plugin.h"

namespace outboard::node_name {
namespace {

class NodeName : public sdk::Plugin, public sdk::NodeLocalPlugin, public sdk::FilterPlugin {
 public:
  void Filter(const sdk::Attempt& attempt, const sdk::NodeBlock& block,
              sdk::FilterSink& sink) const override {
    const std::string& wanted = attempt.pod().proto().node_name();
    if (wanted.empty()) return;
    block.ForEach([&](int i, sdk::Slot slot) {
      if (attempt.cluster().node(slot).name() != wanted) sink.Reject(i, mismatch_);
    });
  }

 private:
  const sdk::Verdict mismatch_ =
      sdk::Verdict::Unresolvable("node(s) didn't match the requested node name");
};

}  // namespace

sdk::PluginDescriptor Descriptor() {
  sdk::PluginDescriptor d;
  d.name = "NodeName";
  d.extension_points = {v1beta1::EXTENSION_POINT_FILTER};
  d.wake_up_events = {sdk::WakeOn("Node", {v1beta1::ClusterEvent::ACTION_ADD})};
  d.signature = {{"spec.nodeName"}};
  d.maturity = sdk::Maturity::kBeta;
  d.create = [](const sdk::PluginContext&) -> absl::StatusOr<std::unique_ptr<sdk::Plugin>> {
    return std::make_unique<NodeName>();
  };
  return d;
}

}  // namespace outboard::node_name
