#include "plugins/not_served/not_served.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "plugins/not_served/device_classes.h"

namespace outboard::not_served {
namespace {

std::string Message(const std::string& feature, const std::string& plugin) {
  return absl::StrCat("pod uses ", feature, ", which plugin ", plugin,
                      " decides; this host does not serve it yet");
}

// What the pod itself needs that nobody judges; absent: nothing.
std::optional<std::string> UnservedFeature(const v1alpha1::Pod& pod) {
  for (const v1alpha1::Volume& volume : pod.volumes()) {
    if (volume.source() != "unknown") continue;
    return Message(absl::StrCat("volume \"", volume.name(), "\" of an unknown kind"),
                   "NodeVolumeLimits");
  }
  if (!pod.resource_claims().empty()) {
    return Message(absl::StrCat("resource claim \"", pod.resource_claims(0), "\""),
                   "DynamicResources");
  }
  if (!pod.pod_group_name().empty()) {
    return Message(absl::StrCat("scheduling group \"", pod.pod_group_name(), "\""),
                   "GangScheduling");
  }
  return std::nullopt;
}

// What DynamicResources would have to allocate on nodes where no device plugin has it.
struct WantedDevices : sdk::AttemptState {
  struct Resource {
    std::string name;
    sdk::Verdict refusal;
  };
  std::vector<Resource> resources;
};

class NotServed : public sdk::Plugin,
                  public sdk::PreFilterPlugin,
                  public sdk::FilterPlugin,
                  public sdk::ClusterObserver {
 public:
  sdk::Verdict PreFilter(const sdk::Attempt& attempt, sdk::PreFilterResult* result) const override {
    if (std::optional<std::string> message = UnservedFeature(attempt.pod().proto())) {
      return sdk::Verdict::Unresolvable(*std::move(message));
    }
    const std::vector<DeviceClasses::Mapped> mapped =
        device_classes_.WantedBy(attempt.pod().proto());
    if (mapped.empty()) return sdk::Verdict::Skip();
    auto& wanted = attempt.NewFilterState<WantedDevices>();
    for (const DeviceClasses::Mapped& resource : mapped) {
      wanted.resources.push_back(
          {resource.resource,
           sdk::Verdict::Unresolvable(Message(
               absl::StrCat("resource ", resource.resource, " of device class \"",
                            resource.device_class, "\", which the node has no device plugin for"),
               "DynamicResources"))});
    }
    return sdk::Verdict::Success();
  }

  // A node whose device plugin provides the resource is NodeResourcesFit's business, as in
  // kube-scheduler.
  void Filter(const sdk::Attempt& attempt, const sdk::NodeBlock& block,
              sdk::FilterSink& sink) const override {
    const auto* wanted = attempt.filter_state<WantedDevices>();
    if (wanted == nullptr) return;
    block.ForEach([&](int i, sdk::Slot slot) {
      for (const WantedDevices::Resource& resource : wanted->resources) {
        if (attempt.cluster().node(slot).Allocatable(resource.name) > 0) continue;
        sink.Reject(i, resource.refusal);
        return;
      }
    });
  }

  void OnReset() override { device_classes_.Clear(); }
  void OnObjectChanged(const v1alpha1::ClusterObject* old,
                       const v1alpha1::ClusterObject& object) override {
    if (old != nullptr && old->has_device_class()) device_classes_.Remove(old->device_class());
    if (object.has_device_class()) device_classes_.Add(object.device_class());
  }
  void OnObjectRemoved(const v1alpha1::ClusterObject& object) override {
    if (object.has_device_class()) device_classes_.Remove(object.device_class());
  }

 private:
  DeviceClasses device_classes_;
};

}  // namespace

sdk::PluginDescriptor Descriptor() {
  sdk::PluginDescriptor d;
  d.name = "NotServed";
  d.extension_points = {v1alpha1::PRE_FILTER, v1alpha1::FILTER};
  // A node may come, or come to have a device plugin; a class may cease to stand for the resource.
  using Event = v1alpha1::ClusterEvent;
  d.wake_up_events = {sdk::WakeOn("Node", {Event::ADD, Event::UPDATE_NODE_ALLOCATABLE}),
                      sdk::WakeOn("DeviceClass", {Event::ADD, Event::DELETE, Event::UPDATE_OTHER})};
  d.maturity = sdk::Maturity::kBeta;
  d.create = [](const sdk::PluginContext&) -> absl::StatusOr<std::unique_ptr<sdk::Plugin>> {
    return std::make_unique<NotServed>();
  };
  return d;
}

}  // namespace outboard::not_served
