// Objects for the tests of reload: a plugin that requires a label, in several builds.
#include <memory>

#include "plugin_host/sdk/shared_object.h"

#if defined(OBJECT_stranger)
#undef OUTBOARD_ABI_NUMBER
#define OUTBOARD_ABI_NUMBER 999
#endif
#if defined(OBJECT_good)
constexpr char kReason[] = "node(s) had no label good";
#else
constexpr char kReason[] = "node(s) had no label better";
#endif
#if defined(OBJECT_twin)
constexpr char kName[] = "NodeName";  // as a built-in one
#else
constexpr char kName[] = "Labelled";
#endif

namespace {

class Labelled : public outboard::sdk::Plugin, public outboard::sdk::NodeFilterPlugin {
 public:
  outboard::sdk::Verdict FilterNode(const outboard::sdk::Attempt& attempt,
                                    const outboard::sdk::NodeView& node) const override {
    if (node.Label("good").has_value()) return outboard::sdk::Verdict::Success();
    return outboard::sdk::Verdict::Unschedulable(kReason);
  }
};

outboard::sdk::PluginDescriptor Descriptor() {
  outboard::sdk::PluginDescriptor descriptor;
  descriptor.name = kName;
  descriptor.extension_points = {outboard::v1beta1::EXTENSION_POINT_FILTER};
  descriptor.args_schema = kReason;  // the tests distinguish builds by it
  descriptor.wake_up_events = {
      outboard::sdk::WakeOn("Node", {outboard::v1beta1::ClusterEvent::ACTION_ADD})};
  descriptor.create = [](const outboard::sdk::PluginContext&)
      -> absl::StatusOr<std::unique_ptr<outboard::sdk::Plugin>> {
    return std::make_unique<Labelled>();
  };
  return descriptor;
}

}  // namespace

#if defined(OBJECT_nameless)
extern "C" __attribute__((visibility("default"))) void* outboard_unused();
void* outboard_unused() { return reinterpret_cast<void*>(&Descriptor); }
#else
OUTBOARD_PLUGIN_OBJECT(&Descriptor);
#endif
