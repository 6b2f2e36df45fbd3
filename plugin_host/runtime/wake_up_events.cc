#include "plugin_host/runtime/wake_up_events.h"

#include "absl/algorithm/container.h"

namespace outboard::runtime {
namespace {

using v1beta1::ClusterEvent;

constexpr absl::string_view kAnyResource = "*";
constexpr absl::string_view kNode = "Node";

bool Covers(absl::string_view registered, absl::string_view resource) {
  return registered == kAnyResource || registered == resource ||
         (registered == "Pod" && (resource == "AssignedPod" || resource == "UnscheduledPod"));
}

}  // namespace

std::vector<ClusterEvent> WakeUpEventsOf(const sdk::PluginDescriptor& descriptor) {
  std::vector<ClusterEvent> events = descriptor.wake_up_events;
  const auto registers = [&](ClusterEvent::Action action) {
    return absl::c_any_of(events, [&](const ClusterEvent& event) {
      return event.resource() == kNode && absl::c_linear_search(event.actions(), action);
    });
  };
  if (registers(ClusterEvent::ACTION_ADD) && !registers(ClusterEvent::ACTION_UPDATE_NODE_TAINT)) {
    events.push_back(sdk::WakeOn(std::string(kNode), {ClusterEvent::ACTION_UPDATE_NODE_TAINT}));
  }
  return events;
}

bool AnyRegistered(const std::vector<ClusterEvent>& registered, absl::string_view resource,
                   ClusterEvent::Action action) {
  return absl::c_any_of(registered, [&](const ClusterEvent& event) {
    return Covers(event.resource(), resource) && absl::c_linear_search(event.actions(), action);
  });
}

}  // namespace outboard::runtime
