#include "maintenance_window.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plugin_host/sdk/shared_object.h"
#include "windows.h"

namespace maintenance_window {
namespace {

namespace sdk = outboard::sdk;
namespace v1beta1 = outboard::v1beta1;

constexpr char kAnnotation[] = "outboard.dev/maintenance";

class MaintenanceWindow : public sdk::Plugin,
                          public sdk::NodeFilterPlugin,
                          public sdk::ClusterObserver {
 public:
  MaintenanceWindow(absl::Duration lead, const sdk::PluginContext& context)
      : lead_(lead), cluster_(context.cluster), pushes_(context.pushes) {}

  sdk::Verdict FilterNode(const sdk::Attempt& attempt, const sdk::NodeView& node) const override {
    const auto windows = windows_.find(node.slot());
    if (windows == windows_.end()) return sdk::Verdict::Success();
    if (!windows->second.has_value()) return unreadable_;
    return IsClosed(*windows->second, attempt.now()) ? closed_ : sdk::Verdict::Success();
  }

  // Parses the annotation once per node change, not once per pod.
  void OnReset() override { windows_.clear(); }
  void OnNodeRemoved(sdk::Slot slot, const std::string&) override { windows_.erase(slot); }
  void OnNodeChanged(sdk::Slot slot) override {
    const auto text = cluster_.node(slot).Annotation(kAnnotation);
    if (text.has_value()) {
      windows_[slot] = ParseWindows(*text);
    } else {
      windows_.erase(slot);
    }
  }
  // No cluster event reports the end of a window.
  void OnTick(absl::Time now) override {
    bool has_opened = false;
    for (const auto& [slot, windows] : windows_) {
      has_opened |= windows.has_value() && last_tick_.has_value() &&
                    IsClosed(*windows, *last_tick_) && !IsClosed(*windows, now);
    }
    last_tick_ = now;
    if (!has_opened) return;
    std::vector<std::string> pending;
    for (const auto& [uid, pod] : cluster_.pods()) {
      if (pod->pod.node_name().empty()) pending.push_back(uid);
    }
    if (!pending.empty()) pushes_->Activate(pending);
  }

 private:
  bool IsClosed(const std::vector<Window>& windows, absl::Time now) const {
    for (const Window& window : windows) {
      if (window.Covers(now, lead_)) return true;
    }
    return false;
  }

  const absl::Duration lead_;
  const sdk::ClusterView cluster_;
  sdk::ShimNotifier* const pushes_;
  std::map<sdk::Slot, std::optional<std::vector<Window>>>
      windows_;  // of nodes that have the annotation
  std::optional<absl::Time> last_tick_;
  // Unresolvable, because evicting pods does not end the maintenance.
  const sdk::Verdict closed_ =
      sdk::Verdict::Unresolvable("node(s) were in maintenance, or soon will be");
  const sdk::Verdict unreadable_ =
      sdk::Verdict::Unresolvable("node(s) had a maintenance window that cannot be read");
};

absl::StatusOr<std::unique_ptr<sdk::Plugin>> Create(const sdk::PluginContext& context) {
  const sdk::ArgsObject args = context.args->root();
  const absl::Duration lead = args.Duration("lead", absl::ZeroDuration());
  if (lead < absl::ZeroDuration()) args.Problem("lead", "Invalid value: must not be negative");
  return std::make_unique<MaintenanceWindow>(lead, context);
}

}  // namespace

sdk::PluginDescriptor Descriptor() {
  sdk::PluginDescriptor descriptor;
  descriptor.name = "MaintenanceWindow";
  descriptor.extension_points = {v1beta1::EXTENSION_POINT_FILTER};
  descriptor.args_schema =
      R"({"type": "object", "properties": {"lead": {"type": "string", "default": "0s"}}})";
  descriptor.needed_fields = {"Node.metadata.annotations['outboard.dev/maintenance']"};
  descriptor.wake_up_events = {sdk::WakeOn(
      "Node",
      {v1beta1::ClusterEvent::ACTION_ADD, v1beta1::ClusterEvent::ACTION_UPDATE_NODE_ANNOTATION})};
  descriptor.create = Create;
  return descriptor;
}

}  // namespace maintenance_window

OUTBOARD_PLUGIN_OBJECT(&maintenance_window::Descriptor);
